"""The contest of the execution-time models: macro-F1 on answered cases of the held-back days."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from tests.kits.job_frames import frame
from tocsin.core.decision import NewCase
from tocsin.core.stages import Stage
from tocsin.core.verdict import CaseStatus
from tocsin.learn.contest import Night
from tocsin.learn.contest_execution import ExecutionContest, macro_f1
from tocsin.learn.journal import Journal
from tocsin.learn.nightly import Nightly, Outcome
from tocsin.learn.train_execution import train_on_store
from tocsin.models.registry import Registry
from tocsin.store import cases, tables
from tocsin.store.database import Store, open_store
from tocsin.store.home import Home
from tocsin.store.jobs import upsert

DAY = 86_400
FIRST = 1_700_000_000
MINING = "cryptomining"
EVERY = 600
"""Seconds between two jobs; every third one mines."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(Home(tmp_path / "home").prepare().url) as opened:
        yield opened


def add(store: Store, first: int, count: int, *, swapped: bool = False, answered: bool = True) -> int:
    """Screened jobs; miners draw more power, or, `swapped`, less. The last instant is returned."""
    rows, screened = [], []
    for n in range(first, first + count):
        mines, at = n % 3 == 0, FIRST + EVERY * n
        high = mines != swapped
        key = f"lab:{n}@{at}"
        rows.append(
            {
                "job_id": n,
                "submit": at,
                "start": at + 10,
                "end": at + 1010,
                "known_at": at + 1070,
                "user": f"u{n % 7}",
                "script": f"{n % 21:064x}",
                "outcome": "completed",
                "state": "COMPLETED",
                "elapsed": 1000,
                "energy": (900.0 if high else 300.0) + n % 50,
                "cpu_seconds": 500 + n % 100,
                "alloc_cpus": 4,
            }
        )
        screened.append(
            {
                "job": key,
                "cluster": "lab",
                "user": f"u{n % 7}",
                "submit": at,
                "operations": {MINING: float(mines)},
            }
        )
    upsert(store, frame(*rows))
    with store.writing() as connection:
        connection.execute(sa.insert(tables.screenings), screened)
    if answered:
        answer(store, rows)
    return int(rows[-1]["known_at"])


def answer(store: Store, rows: list[dict[str, object]]) -> None:
    for row in rows:
        mines = int(str(row["job_id"])) % 3 == 0
        document = {"operations": [MINING], "user": row["user"], "script": row["script"]}
        new = NewCase(
            cause=f"case of {row['job_id']}",
            job=f"lab:{row['job_id']}@{row['submit']}",
            opened=int(str(row["submit"])),
            document=document,
        )
        with store.writing() as connection:
            number, _ = cases.open_case(connection, new)
        status = CaseStatus.CONFIRMED if mines else CaseStatus.DISMISSED
        cases.answer(store, number, status, who="ada", at=int(str(row["submit"])))


def night(store: Store, registry: Registry, now: int) -> Outcome:
    run = Nightly(
        registry=registry,
        contests={"workload": ExecutionContest()},
        journal=Journal(registry.folder / "nightly.json"),
        night=Night(store=store, now=now, holdback_days=1),
        day="2026-11-17",
    )
    [found] = run.run("workload")
    return found


def test_a_model_of_how_miners_behave_now_replaces_the_old_one(store: Store, tmp_path: Path) -> None:
    registry = Registry(tmp_path / "home" / "models")
    known = add(store, 0, 300)
    assert train_on_store(store, registry, now=known).promoted
    now = add(store, 300, 900, swapped=True)  # more than the window of the training
    found = night(store, registry, now)
    assert found.state == "promoted", found.why
    assert found.result is not None
    assert (found.result.figure, found.result.champion < 0.5 < found.result.challenger) == ("macro_f1", True)
    assert registry.champion("workload", Stage.END) == "2"
    energy = next(drift for drift in found.drift if drift.name == "energy")
    assert energy.strength == "strong"


def test_without_answers_nothing_is_retrained(store: Store, tmp_path: Path) -> None:
    registry = Registry(tmp_path / "home" / "models")
    known = add(store, 0, 300)
    assert train_on_store(store, registry, now=known).promoted
    found = night(store, registry, known)
    assert (found.state, "nothing new to train on yet" in found.why) == ("skipped", True)
    # scripts of their own, which nobody answered for
    now = add(store, 900, 300, answered=False)
    with store.writing() as connection:
        connection.execute(sa.update(tables.jobs).where(tables.jobs.c.job_id >= 900).values(script="f" * 64))
    found = night(store, registry, now)
    assert (found.state, "0 of the" in found.why, "see: tocsin cases" in found.why) == ("skipped", True, True)
    assert registry.versions("workload") == ["1"]


def test_macro_f1_is_the_mean_over_operations_and_both_answers() -> None:
    truth = {"a": np.array([1.0, 1.0, 0.0, np.nan]), "b": np.array([np.nan, np.nan, np.nan, 0.0])}
    seen = {"a": np.array([True, False, False, True]), "b": np.zeros(4, bool)}
    found = macro_f1(truth, seen, np.ones(4))
    assert found == pytest.approx((2 / 3 + 2 / 3 + 1.0) / 3)
    assert np.isnan(macro_f1({"a": np.full(4, np.nan)}, seen, np.ones(4)))
