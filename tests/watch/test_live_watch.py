"""A real Slurm: 200 jobs, a watch that is killed ten times, slurmrestd away twice, the store locked: nothing lost."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from random import Random

import pytest

from tests.services.daemons import ServiceError, await_true
from tests.services.slurm import SlurmLab

KILLS = 10
LONG = 130
TOCSIN = [sys.executable, "-c", "from tocsin.cli.main import run; run()"]
Expected = set[tuple[str, str]]


class Watch:
    """`tocsin watch` as a process of its own; every other one goes over slurmrestd."""

    def __init__(self, slurm: SlurmLab, home: Path) -> None:
        self.slurm, self.home, self.number = slurm, home, 0
        self.errors = (home.parent / "watch.err").open("ab")
        self.start()

    def start(self) -> None:
        self.number += 1
        rest = {
            "TOCSIN_CLUSTER__lab__REST_URL": self.slurm.rest_url,
            "TOCSIN_CLUSTER__lab__REST_USER": "root",
            "TOCSIN_CLUSTER__lab__REST_TOKEN_FILE": str(self.slurm.token_file),
        }
        environment = {
            **os.environ,
            **self.slurm.env,
            **(rest if self.number % 2 else {}),
            "TOCSIN_WATCH__INTERVAL": "1",
            "TOCSIN_WATCH__SCRIPTS": "true",
        }
        self.process = subprocess.Popen(
            [*TOCSIN, "--home", str(self.home), "watch", "-M", "lab"],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=self.errors,
            start_new_session=True,
        )

    def said(self) -> str:
        return Path(self.errors.name).read_text()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def query(database: Path, sql: str) -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=30)) as connection:
        return connection.execute(sql).fetchall()


def never_starting(slurm: SlurmLab, *, too_long: bool) -> int:
    """A job with more time than its partition allows, or with more nodes than there are, which Slurm 24.11 refuses."""
    with suppress(ServiceError):
        if not too_long:
            return slurm.sbatch("true", "--nodes=99")
    return slurm.sbatch("true", "--partition=short", "--time=60")


def submit_all(slurm: SlurmLab, jobs: list[int]) -> None:
    """Some 200 jobs of many kinds; those that Slurm refuses are no jobs."""
    long = [slurm.sbatch(f"sleep {LONG}", "--job-name=long", "--mem=50") for _ in range(3)]
    jobs += long
    for number in range(150):
        seconds, code = number % 3 + 1, int(number % 7 == 0)
        jobs.append(
            slurm.sbatch(f"sleep {seconds}; exit {code}", "--mem=50", user=("alice", "bob")[number % 2])
        )
        if number % 15 == 0:
            jobs.append(slurm.sbatch("sleep 1", "--array=1-3", "--mem=50"))
        if number % 10 == 0:
            jobs.append(never_starting(slurm, too_long=number % 20 != 0))
            jobs.append(slurm.sbatch("true", "--begin=now+1day", "--array=1-2"))
            slurm.run("scancel", str(jobs[-2 if number % 20 else -1]))
            assert slurm.run("sbatch", "-p", "nosuch", "--wrap=true", user="alice", check=False).returncode
    requeued = slurm.sbatch('[ "$SLURM_RESTART_COUNT" ] || sleep 600', "--requeue", "--mem=50")
    jobs.append(requeued)
    slurm.wait_state(requeued, "RUNNING", timeout=120)
    slurm.requeue(requeued)


def reached(slurm: SlurmLab, jobs: list[int]) -> tuple[Expected, bool]:
    """(job, stage) by the text of sacct and squeue alone, and whether all is over that will be."""
    ids, told = ",".join(map(str, jobs)), Expected()
    environment = ["env", "SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0"]
    columns = "JobID,Submit,Start,End,State,NodeList,Partition"
    rows = slurm.run(
        *environment, "sacct", "-D", "-X", "-n", "-P", "-j", ids, "-o", columns
    ).stdout.splitlines()
    queue = slurm.run(
        *environment, "squeue", "-h", "-a", "-j", ids, "-t", "PD,R,CG", "-o", "%F|%K|%V|%T"
    ).stdout
    alive = [line.split("|") for line in queue.splitlines()]
    for job, task, submit, state in alive:
        if not task.isdigit():
            told.add((f"lab:{job}@{submit}", "submit"))
        assert state in ("PENDING", "RUNNING", "COMPLETING")
    for row in rows:
        name, submit, start, end, state, nodes, partition = row.split("|")
        if not partition:
            return told, False
        found = re.fullmatch(r"(\d+)(?:_(\d+)|_\[.*\])?", name)
        assert found, name
        key = f"lab:{found[1]}{'_' + found[2] if found[2] else ''}@{submit}"
        told.add((f"lab:{found[1]}@{submit}", "submit"))
        if nodes != "None assigned":
            told.add((key, "start"))
            if end.isdigit() and int(end) >= int(start) + 120:
                told.add((key, "early"))
        if end.isdigit() and state not in ("PENDING", "RUNNING"):
            told.add((key, "end"))
    return told, all(state == "PENDING" for *_, state in alive)


@pytest.fixture
def watch(slurm: SlurmLab, tmp_path: Path) -> Iterator[Watch]:
    watch = Watch(slurm, tmp_path / "home")
    yield watch
    watch.kill()
    watch.errors.close()


def test_every_job_has_one_verdict_a_stage_whatever_happens_to_the_watch(
    slurm: SlurmLab, watch: Watch
) -> None:
    database, jobs, chance = watch.home / "tocsin.db", list[int](), Random(1)
    began = f"SELECT * FROM imports WHERE identity = 'watch:{slurm.cluster}'"
    await_true("the watch has not begun", lambda: database.exists() and bool(_rows(database, began)), 60)
    submitting = threading.Thread(target=submit_all, args=(slurm, jobs))
    submitting.start()
    try:
        for number in range(KILLS):
            watch.process.poll()
            assert watch.process.returncode is None, "it ended by itself"
            time.sleep(
                chance.uniform(3, 9)
            )  # it may be killed at any moment: an instant is what is drawn here
            watch.kill()
            if number in (1, 5):  # the next one goes over slurmrestd
                slurm.stop_rest()
            if number in (2, 6):
                slurm.start_rest()
            felt = watch.said().count("trying again")
            watch.start()
            if number in (1, 5):
                await_true(
                    "slurmrestd is not missed", lambda n=felt: watch.said().count("trying again") > n, 60
                )
            if number == 4:
                _lock(database, 10)
    finally:
        submitting.join(180)
    await_true("jobs still run", lambda: reached(slurm, jobs)[1], 240, every=2)

    def done() -> bool:
        expected, over = reached(slurm, jobs)
        return over and expected <= set(_verdicts(database, jobs))

    await_true("verdicts are missing", done, 90, lambda: _difference(database, slurm, jobs), every=2)
    assert watch.stop() == 0
    counted = Counter(_verdicts(database, jobs))
    expected, _ = reached(slurm, jobs)
    assert set(counted) == expected
    assert set(counted.values()) == {1}
    stages = Counter(stage for _, stage in counted)
    assert len(jobs) >= 190
    assert stages["early"] == 3
    _assert_late_ones_are_marked(database, jobs)
    assert "slurmrestd at" in watch.said()
    assert "mistake" not in watch.said()


def _assert_late_ones_are_marked(database: Path, jobs: list[int]) -> None:
    """A verdict on the submission of a job that had started by then, or on a start after its end, says so."""
    rows = query(
        database,
        'SELECT v.stage, v.late, v.at, j.submit, j.start, j."end" FROM verdicts v JOIN jobs j ON v.job = j.cluster || '
        "':' || j.job_id || CASE j.task WHEN -1 THEN '' ELSE '_' || j.task END || '@' || j.submit "
        f"WHERE j.job_id IN ({','.join(map(str, jobs))})",
    )
    marked = 0
    for stage, late, at, submit, start, end in rows:
        moment = {"submit": submit, "start": start, "early": (start or 0) + 120, "end": end}[stage]
        marked += late
        if int(at) - int(moment) > 120:
            assert late
        if stage == "end" and late:
            assert int(at) - int(moment) > 120
        if stage == "submit" and late and start is None and end is None:
            assert int(at) - int(moment) > 120
    assert 0 < marked < len(rows)


def _rows(database: Path, sql: str) -> list[tuple[str, ...]]:
    try:
        return query(database, sql)
    except sqlite3.OperationalError:  # its tables are being made
        return []


def _verdicts(database: Path, jobs: list[int]) -> list[tuple[str, str]]:
    wanted = set(map(str, jobs))
    found = query(database, "SELECT job, stage FROM verdicts")
    return [(job, stage) for job, stage in found if re.split(r"[:_@]", job)[1] in wanted]


def _difference(database: Path, slurm: SlurmLab, jobs: list[int]) -> str:
    return f"Missing: {sorted(reached(slurm, jobs)[0] - set(_verdicts(database, jobs)))[:20]}"


def _lock(database: Path, seconds: float) -> None:
    with closing(sqlite3.connect(database, isolation_level=None, timeout=30)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        time.sleep(seconds)
        connection.execute("ROLLBACK")
