"""The model for ended jobs: trained by hand, and every β days by `tocsin screen`."""

import json
import re
import time
from pathlib import Path

import pytest

from tests.kits.command_line import Tocsin
from tests.kits.job_frames import frame
from tests.kits.sign_screener import by_signs
from tocsin.app.app import App
from tocsin.app.retraining import Retraining
from tocsin.core.stages import Stage
from tocsin.core.verdict import CaseStatus
from tocsin.models.registry import Registry
from tocsin.store import cases
from tocsin.store.cases import Case
from tocsin.store.database import open_store
from tocsin.store.home import Home
from tocsin.store.jobs import upsert
from tocsin.store.scriptfiles import save_script

__all__ = ["by_signs"]

pytestmark = pytest.mark.usefixtures("by_signs")

DAY = 86_400
MINER = "#!/bin/bash\n./gcc -o stratum+tcp://any.example:3333 -u me &\n"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Jobs that ended within the last day; the miners, one in three, draw more power."""
    made = Home(tmp_path / "home").prepare()
    digests = [save_script(made.scripts, "srun ./a.out\n"), save_script(made.scripts, MINER)]
    now = int(time.time())
    rows = [
        {
            "job_id": n,
            "user": f"u{n % 7}",
            "script": digests[n % 3 == 0],
            "submit": now - 90_000 + 100 * n,
            "start": now - 89_000 + 100 * n,
            "end": now - 88_000 + 100 * n,
            "known_at": now - 88_000 + 100 * n,
            "outcome": "completed",
            "state": "COMPLETED",
            "elapsed": 1000,
            "cpu_seconds": 990 if n % 3 == 0 else 400 + n,
            "energy": 900.0 + n if n % 3 == 0 else 300.0 + n,
            "power": (900.0 + n if n % 3 == 0 else 300.0 + n) / 1000,
            "alloc_cpus": 4,
        }
        for n in range(1, 301)
    ]
    with open_store(made.url) as store:
        upsert(store, frame(*rows))
    return made


def confirm_all(home: Home) -> None:
    with open_store(home.url) as store:
        for case in cases.list_cases(store):
            cases.answer(store, case.id, CaseStatus.CONFIRMED, who="ada", at=case.opened)


def test_screened_jobs_train_the_model_for_ended_jobs(
    tocsin: Tocsin, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOCSIN_WORKLOAD__BETA_DAYS", "0")
    refused = tocsin("train", "execution")
    assert (refused.code, "run: tocsin screen" in refused.err) == (1, True)
    assert tocsin("screen").err == "300 jobs screened, 100 rogue\n"  # with 0, it learns nothing by itself
    unconfirmed = tocsin("train", "execution")
    assert "cryptomining is not used: people confirmed 0" in unconfirmed.err
    assert "workload 1 is stored but not in use" in unconfirmed.out
    confirm_all(home)
    said = tocsin("train", "execution", "--json")
    assert said.code == 0, said.err
    trained = json.loads(said.out)
    mining = trained["operations"]["cryptomining"]
    assert (mining["jobs"], mining["positive"], trained["promoted"]) == (300, 100, True)
    assert mining["dropped"]["power"] == "is the same as energy, or proportional to it"
    assert "cyber" in trained["untrained"]
    told = tocsin("train", "execution", "--no-promote")
    assert re.search("^  dropped: .*flops.*: is known of no job$", told.out, re.MULTILINE)
    assert "  dropped: power: is the same as energy, or proportional to it\n" in told.out
    assert "workload 3 is stored but not in use" in told.out
    assert "cyber was not trained" in told.err


def test_screen_retrains_after_a_day(
    tocsin: Tocsin, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOCSIN_WORKLOAD__BETA_DAYS", "0")
    assert tocsin("screen").err == "300 jobs screened, 100 rogue\n"
    monkeypatch.delenv("TOCSIN_WORKLOAD__BETA_DAYS")
    confirm_all(home)
    said = tocsin("screen")
    assert said.err == (
        "0 jobs screened, 0 rogue\nretrained the model for ended jobs (cryptomining): workload 1 is now in use\n"
    )
    assert tocsin("screen").err == "0 jobs screened, 0 rogue\n"  # it is not due again
    registry = Registry(home.models)
    card = registry.card("workload", "1")
    assert (card.stage, card.rows, card.promotions[0].why) == (
        Stage.END,
        300,
        "retrained (workload.beta_days)",
    )
    with App(folder=str(home.root), environ={"HOME": str(tmp_path)}) as app, Retraining(app) as retraining:
        later = card.created + DAY
        assert outcome(retraining, later - 1) is None
        sentence = "retrained the model for ended jobs (cryptomining): workload 2 is now in use"
        assert outcome(retraining, later) == sentence
        assert registry.champion("workload", Stage.END) == "2"
        # Whoever switches it off has the last word.
        assert (
            "no model in use for end"
            in tocsin("models", "rollback", "workload", "--stage", "end", "--none").err
        )
        assert outcome(retraining, later + 2 * DAY) is None
        assert registry.champion("workload", Stage.END) is None
        tocsin("models", "promote", "workload", "2")
        assert "workload 3 is now in use" in str(outcome(retraining, later + DAY))


def test_jobs_that_died_at_once_lead_to_no_model_and_no_case(tocsin: Tocsin, tmp_path: Path) -> None:
    """Fifteen miners that ran for a second, and innocent jobs that ran for two: nothing is learned from that."""
    home = Home(tmp_path / "home").prepare()
    digests = [save_script(home.scripts, "srun ./a.out\n"), save_script(home.scripts, MINER)]
    now = int(time.time())
    rows = [
        {
            "job_id": n,
            "user": f"u{n % 7}",
            "script": digests[n <= 15],
            "submit": now - 20_000 + 100 * n,
            "start": now - 19_900 + 100 * n,
            "end": now - 19_899 + 100 * n,
            "known_at": now - 19_890 + 100 * n,
            "outcome": "failed" if n <= 15 else "completed",
            "elapsed": 1 if n <= 15 else 1000,
            "cpu_seconds": 0 if n <= 15 else 900 + n,
            "time_limit": 7200 if n <= 15 else 60,
            "alloc_cpus": 4,
        }
        for n in range(1, 151)
    ]
    with open_store(home.url) as store:
        upsert(store, frame(*rows))
    assert "15 rogue" in tocsin("screen").err
    confirm_all(home)
    before = len(list_all(home))
    refused = tocsin("train", "execution")
    assert (refused.code, "0 of the 135 jobs" in refused.err) == (1, True)
    assert Registry(home.models).champion("workload", Stage.END) is None
    assert len(list_all(home)) == before


def list_all(home: Home) -> list[Case]:
    with open_store(home.url) as store:
        return cases.list_cases(store, None)


def test_a_failed_retraining_is_reported_and_not_repeated_every_minute(
    tocsin: Tocsin, home: Home, tmp_path: Path
) -> None:
    tocsin("screen")
    confirm_all(home)
    assert tocsin("train", "execution").code == 0
    now = int(time.time())
    plain = {"script": save_script(home.scripts, "srun ./a.out\n"), "outcome": "completed", "energy": 5.0}
    times = {"submit": now - 500, "start": now - 400, "end": now - 300, "known_at": now - 240}
    with open_store(home.url) as store:
        upsert(store, frame(*({"job_id": 1000 + n, **plain, **times} for n in range(20))))
    tocsin("screen")
    with App(folder=str(home.root), environ={"HOME": str(tmp_path)}) as app, Retraining(app) as retraining:
        later = now - 1000 + 5 * DAY  # all miners ended before these five days
        sentence = outcome(retraining, later)
        assert sentence is not None
        assert "could not be retrained: 0 of the 20 jobs" in sentence
        assert outcome(retraining, later + 60) is None
    assert Registry(home.models).champion("workload", Stage.END) == "2"  # it stays, though it is old


def outcome(retraining: Retraining, now: int) -> str | None:
    """What it says in the end, if it is due."""
    assert retraining.poll(now) is None
    if retraining._child is None:
        return None
    assert retraining._child.pipe.poll(300)
    return retraining.poll(now)
