"""Pruning old jobs and backing the store up."""

import errno
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.conftest import unavailable
from tests.kits.job_frames import SUBMIT, frame, many
from tests.kits.outbox import takes
from tests.services.postgres import Postgres
from tocsin.core.decision import Decision, NewCase
from tocsin.core.errors import NotFound, StoreError
from tocsin.core.frames import CPU_SAMPLES, JOB_SAMPLES, Samples
from tocsin.core.ids import JobKey
from tocsin.core.stages import Stage
from tocsin.core.verdict import CaseReference, CaseStatus, Level, Rogue, Verdict
from tocsin.store.cases import answer, show, verdicts_of
from tocsin.store.database import Store, open_store
from tocsin.store.decisions import record
from tocsin.store.home import Home
from tocsin.store.jobs import Filter, load, upsert
from tocsin.store.outbox import waiting
from tocsin.store.retention import Pruned, _partial, backup, prune
from tocsin.store.scriptfiles import read_script, save_script
from tocsin.store.verdicts import of_job
from tocsin.store.windows import WindowStore

OLD = {"outcome": "completed", "state": "COMPLETED", "end": SUBMIT + 10}
NEW = {"outcome": "completed", "state": "COMPLETED", "end": SUBMIT + 1000}


def aged(home: Home, text: str) -> str:
    name = save_script(home.scripts, text)
    os.utime(home.scripts / name, (SUBMIT, SUBMIT))
    return name


def verdict(job_id: int, task: int | None = None) -> Verdict:
    key = JobKey("lab", job_id, task, SUBMIT)
    return Verdict(job=str(key), stage=Stage.SUBMIT, at=1, known_until=1, level=Level.OK)


def test_old_jobs_go_with_their_verdicts_and_scripts(store: Store, home: Home) -> None:
    shared, gone = aged(home, "#!/bin/sh\nshared"), aged(home, "#!/bin/sh\ngone")
    young = save_script(home.scripts, "#!/bin/sh\njust submitted")
    upsert(
        store,
        frame(
            {**OLD, "job_id": 1, "script": shared},
            {**OLD, "job_id": 2, "task": 3, "script": gone},
            {**NEW, "job_id": 3, "script": shared},
            {"job_id": 4, "state": "RUNNING"},
        ),
    )
    record(store, Decision(verdicts=[verdict(1), verdict(2, 3), verdict(3)]), {"mail": takes()})
    said = prune(store, home, before=SUBMIT + 500, dry_run=True)
    assert said == Pruned(jobs=2, verdicts=2, scripts=1, trace_days=0)
    assert load(store).height == 4
    assert read_script(home.scripts, gone)
    assert prune(store, home, before=SUBMIT + 500) == said
    assert load(store)["job_id"].to_list() == [3, 4]
    assert of_job(store, JobKey("lab", 2, 3, SUBMIT)) == []
    assert len(waiting(store, "mail", 9)) == 3, "what was not sent yet is kept"
    with pytest.raises(NotFound, match="was it pruned"):
        read_script(home.scripts, gone)
    assert read_script(home.scripts, shared)
    assert read_script(home.scripts, young)
    assert prune(store, home, before=SUBMIT + 500) == Pruned(0, 0, 0, 0)


def test_what_belongs_to_an_open_case_is_kept_until_it_is_answered(store: Store, home: Home) -> None:
    miner, other, plain = (aged(home, f"#!/bin/sh\n{name}") for name in ("miner", "other", "plain"))
    array = {"job_id": 9, "array": "1-2", "array_tasks": 2, "state": "PENDING", "script": other}
    upsert(
        store,
        frame(
            {**OLD, "job_id": 7, "script": miner},
            {**OLD, "job_id": 8, "script": plain},
            array,
            {**OLD, "job_id": 9, "task": 1, "script": other},
            {**OLD, "job_id": 9, "task": 2, "script": other},
        ),
    )
    case = CaseReference(cause="workload:rogue:lab:ann:cryptomining")
    rogue = Rogue(rogue=True, operations=["cryptomining"], rule="never", action="alarm", case=case)
    accused = [replace(verdict(number), level=Level.CRITICAL, rogue=rogue) for number in (7, 9)]
    opened = NewCase(case.cause, accused[0].job, 1, {"operations": ["cryptomining"], "script": miner})
    record(store, Decision(verdicts=[*accused, verdict(8)], cases=[opened]))
    said = prune(store, home, before=SUBMIT + 500, dry_run=True)
    assert said == Pruned(jobs=1, verdicts=1, scripts=1, trace_days=0)
    assert prune(store, home, before=SUBMIT + 500) == said
    assert sorted(load(store)["job_id"]) == [7, 9, 9]
    assert [each.job for each in verdicts_of(store, show(store, 1))] == [each.job for each in accused]
    assert read_script(home.scripts, miner)
    assert read_script(home.scripts, other)
    answer(store, 1, CaseStatus.CONFIRMED, who="ada", at=SUBMIT)
    assert prune(store, home, before=SUBMIT + 500).verdicts == 2
    assert load(store).is_empty()


def test_an_array_does_not_come_back_as_pending_when_its_tasks_go(store: Store, home: Home) -> None:
    array = {"job_id": 5, "array": "1-2", "array_tasks": 2, "state": "PENDING"}
    waits = {"job_id": 6, "array": "1-2", "array_tasks": 2, "state": "PENDING"}
    tasks = [
        {**OLD, "job_id": 5, "task": 1},
        {**NEW, "job_id": 5, "task": 2},
        {**OLD, "job_id": 6, "task": 1},
    ]
    upsert(store, frame(array, waits, *tasks))
    assert prune(store, home, before=SUBMIT + 500).jobs == 3
    assert load(store, Filter(arrays=True)).select("job_id", "task").rows() == [(5, 2), (6, None)]


def test_a_backup_is_whole_while_others_write(home: Home, tmp_path: Path) -> None:
    name = save_script(home.scripts, "#!/bin/sh\n")
    with open_store(home.url) as store:
        upsert(store, many(2000))
        stop = threading.Event()

        def write() -> None:
            first = 2001
            while not stop.is_set():
                upsert(store, many(50, first))
                first += 50

        writer = threading.Thread(target=write)
        writer.start()
        try:
            target = backup(store, home, tmp_path / "safe")
        finally:
            stop.set()
            writer.join()
    copy = Home(target)
    assert read_script(copy.scripts, name) == "#!/bin/sh\n"
    with open_store(copy.url) as restored:
        jobs = load(restored)
    assert jobs.height >= 2000
    assert jobs.height % 50 == 0  # whole transactions only
    assert jobs["job_id"].equals(pl.Series("job_id", range(1, jobs.height + 1)))


def test_a_backup_never_overwrites(store: Store, home: Home, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="already exists"):
        backup(store, home, tmp_path)


def test_postgres_is_backed_up_by_its_own_program(postgres: Postgres, home: Home, tmp_path: Path) -> None:
    if shutil.which("pg_dump") is None:
        unavailable("pg_dump is not installed")
    with open_store(postgres.new_database()) as store:
        upsert(store, many(10))
        target = backup(store, home, tmp_path / "safe")
    assert (target / "tocsin.dump").read_bytes().startswith(b"PGDMP")


def test_without_pg_dump_the_command_is_told(
    postgres: Postgres, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with (
        open_store(postgres.new_database()) as store,
        pytest.raises(StoreError, match="pg_dump --format=custom"),
    ):
        backup(store, home, tmp_path / "safe")
    assert not (tmp_path / "safe").exists()


def test_a_script_is_kept_once_whole_and_by_its_content(home: Home) -> None:
    text = "#!/bin/sh\nécho \udcff\r\n"
    name = save_script(home.scripts, text)
    assert save_script(home.scripts, text) == name
    assert [path.name for path in home.scripts.iterdir()] == [name]
    assert read_script(home.scripts, name) == text


@pytest.mark.parametrize("name", ["../tocsin.db", "", "A" * 64, "0" * 63, "0" * 64])
def test_no_other_file_is_read_as_a_script(home: Home, name: str) -> None:
    with pytest.raises(NotFound):
        read_script(home.scripts, name)


@pytest.mark.parametrize(
    ("number", "next_step"),
    [
        (errno.EACCES, "name a folder that you may write to"),
        (errno.EROFS, "name a folder that you may write to"),
        (errno.ENOSPC, "is there room?"),
    ],
)
def test_a_backup_that_fails_names_the_next_step(
    store: Store, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, next_step: str
) -> None:
    def refuse(**_: object) -> str:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    with pytest.raises(StoreError, match=next_step.replace("?", r"\?") + "$"):
        backup(store, home, tmp_path / "copy")


def test_a_killed_backup_leaves_nothing_behind_once_the_next_is_made(
    store: Store, home: Home, tmp_path: Path
) -> None:
    (tmp_path / ".tocsin-backup-killed" / "scripts").mkdir(parents=True)
    with _partial(tmp_path) as running:
        (running / "tocsin.db").touch()
        assert backup(store, home, tmp_path / "safe").is_dir()
        assert running.is_dir(), "another backup still writes to it"
    assert not list(tmp_path.glob(".tocsin-backup-*"))


def test_a_failed_backup_is_no_backup(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(home.url) as store:
        upsert(store, many(2000))

        def full(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(shutil, "copytree", full)
            with pytest.raises(StoreError, match="No space left"):
                backup(store, home, tmp_path / "safe")
        assert not list(tmp_path.glob("*safe*")) + list(tmp_path.glob(".tocsin*"))
    with home.database.open("r+b") as file:  # a damaged page
        file.seek(8 * 4096)
        file.write(b"\xff" * 4096)
    with open_store(home.url) as store, pytest.raises(StoreError, match=r"damaged|malformed"):
        backup(store, home, tmp_path / "safe")
    assert not (tmp_path / "safe").exists()


def test_old_traces_go_by_their_own_age(store: Store, home: Home) -> None:
    rows = [("n1", 0, at, None, 0.5, 0.0, 0.0) for at in (0, SUBMIT)]
    cpus = pl.DataFrame(rows, schema=CPU_SAMPLES, orient="row")
    traces = WindowStore(home.windows)
    traces.append("lab", Samples(cpus, JOB_SAMPLES.to_frame()))
    assert prune(store, home, before=0).trace_days == 0
    assert prune(store, home, before=0, traces_before=SUBMIT).trace_days == 1
    assert traces.samples("lab", 0, SUBMIT).cpus["at"].to_list() == [SUBMIT]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m,mode=700", "none", folder]
    if os.geteuid() != 0 or subprocess.run(mount, check=False).returncode:
        unavailable("a small disk cannot be mounted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_on_a_full_disk_old_traces_make_room_for_what_else_is_pruned(small_disk: Path) -> None:
    home = Home(small_disk).prepare()
    shares = np.random.default_rng(0).random((100_000, 3), dtype=np.float32)
    rows = pl.DataFrame(shares, schema=["user", "system", "iowait"]).with_row_index("cpu")
    cpus = rows.select(
        node=pl.lit("n1"), cpu="cpu", at=0, job=None, user="user", system="system", iowait="iowait"
    )
    WindowStore(home.windows).append("lab", Samples(cpus.cast(dict(CPU_SAMPLES)), JOB_SAMPLES.to_frame()))
    with open_store(home.url) as store:
        upsert(store, many(2000))
        with suppress(OSError), (small_disk / "other").open("wb", buffering=0) as other:
            while other.write(bytes(4096)):
                pass
        with pytest.raises(StoreError, match="no space left"):
            upsert(store, many(2000, first=3000))
        assert prune(store, home, before=SUBMIT + 90_000) == Pruned(
            jobs=1499, verdicts=0, scripts=0, trace_days=1
        )
