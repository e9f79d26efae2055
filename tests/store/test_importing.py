"""Imports: repeated, interrupted and resumed."""

import signal
import subprocess
import sys
from dataclasses import replace

import pytest
import sqlalchemy as sa

from tests.kits.job_frames import Log, many
from tocsin.core.errors import InputError
from tocsin.core.intake import Batch
from tocsin.store.database import Store, open_store
from tocsin.store.importing import run_import
from tocsin.store.jobs import load
from tocsin.store.tables import imports


def test_a_log_is_stored_and_a_second_time_changes_nothing(store: Store) -> None:
    first = run_import(store, Log(250))
    assert (first.read, first.new, first.updated, first.unchanged) == (250, 250, 0, 0)
    again = run_import(store, Log(250))
    assert (again.read, again.new, again.updated, again.unchanged) == (250, 0, 0, 250)
    assert again.resumed_from == 0
    assert again.rows_per_second == pytest.approx(250 / again.seconds)
    assert load(store).height == 250


def test_bad_records_and_notes_are_told(store: Store) -> None:
    log = Log(5, notes=["times are taken as UTC"])
    log.rejects.add("no end", [4, 9])
    summary = run_import(store, log)
    assert summary.rejects.counts == {"no end": 2}
    assert summary.rejects.lines == {"no end": [4, 9]}
    assert summary.notes == ["times are taken as UTC"]


def test_progress_is_told_after_each_batch_is_stored(store: Store) -> None:
    seen: list[tuple[int, int]] = []

    def progress(batch: Batch) -> None:
        seen.append((batch.position, load(store).height))

    run_import(store, Log(250), progress=progress)
    assert seen == [(100, 100), (200, 200), (250, 250)]


def test_an_interrupted_import_goes_on_from_where_it_stopped(store: Store) -> None:
    def interrupt(batch: Batch) -> None:
        if batch.position == 200:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_import(store, Log(450), progress=interrupt)
    other = run_import(store, replace(Log(10), identity="other"))
    assert other.resumed_from == 0
    rest = run_import(store, Log(450))
    assert (rest.resumed_from, rest.read, rest.new) == (200, 250, 250)
    with store.reading() as connection:
        row = connection.execute(sa.select(imports).where(imports.c.identity == "log")).one()
    assert (row.read, row.new, row.position) == (450, 450, 450)
    assert row.finished is not None


def test_a_batch_that_fails_leaves_nothing_of_itself(store: Store) -> None:
    class Broken(Log):
        def batches(self, resume: int = 0):  # type: ignore[no-untyped-def]  # as in Log
            yield Batch(many(5), read=5, position=5)
            yield Batch(many(5, first=6).with_columns(submit=None), read=5, position=10)

    with pytest.raises(InputError, match="no submit"):
        run_import(store, Broken(10))
    assert load(store).height == 5
    assert run_import(store, Log(20)).resumed_from == 5


def test_a_killed_import_loses_and_doubles_nothing(url: str) -> None:
    program = (
        "import sys, time; from tests.kits.job_frames import Log;"
        "from tocsin.store.database import open_store; from tocsin.store.importing import run_import;"
        "run_import(open_store(sys.argv[1]), Log(100_000, size=500), progress=lambda b: print(b.position, flush=True))"
    )
    victim = subprocess.Popen([sys.executable, "-c", program, url], stdout=subprocess.PIPE, text=True)
    assert victim.stdout is not None
    positions = [int(victim.stdout.readline()) for _ in range(5)]
    victim.send_signal(signal.SIGKILL)
    victim.stdout.close()
    assert victim.wait() == -signal.SIGKILL
    with open_store(url) as store:
        stored = load(store, columns=["job_id"]).height
        assert positions[-1] <= stored < 100_000
        rest = run_import(store, Log(stored + 1000, size=500))
        assert rest.resumed_from == stored
        assert rest.new == 1000
        ids = load(store, columns=["job_id"])["job_id"]
        assert ids.to_list() == list(range(1, stored + 1001))
