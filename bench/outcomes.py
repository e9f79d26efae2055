"""Fresh outcomes on a real Slurm: how long after its end `tocsin watch` has a job's outcome in its history.

Each way of reading (commands, slurmrestd) follows the same kind of jobs with the default settings. The delay is from the
end that Slurm reports, in whole seconds, until the outcome can be read from the store; the watch counts it in the same round.
"""

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from tests.services import missing
from tests.services.daemons import await_true
from tests.services.slurm import SlurmLab

__all__ = ["run"]

JOBS = 150
SECONDS = 75
"""Over which the jobs are submitted."""
TOCSIN = [sys.executable, "-c", "from tocsin.cli.main import run; run()"]
_ENDS = 'SELECT job_id, task, submit, "end", known_at, outcome FROM jobs WHERE outcome IS NOT NULL'

Ends = dict[tuple[int, int, int], tuple[float, int, int, str]]
"""By job: when its outcome was first in the store, its end, since when it counts as known, and the outcome."""


def run() -> dict[str, Any]:
    if sentence := missing("slurm"):
        return {"missing": sentence}
    found: dict[str, Any] = {}
    with SlurmLab(nodes=4, cpus=8, memory_mb=16_000) as slurm:
        rest = {
            "TOCSIN_CLUSTER__lab__REST_URL": slurm.rest_url,
            "TOCSIN_CLUSTER__lab__REST_USER": "root",
            "TOCSIN_CLUSTER__lab__REST_TOKEN_FILE": str(slurm.token_file),
        }
        found["slurm"] = slurm.run("scontrol", "--version").stdout.split()[-1]
        for way, settings in (("commands", {}), ("slurmrestd", rest)):
            found[way] = _delays(_followed(slurm, settings))
    return found


def _followed(slurm: SlurmLab, settings: dict[str, str]) -> Ends:
    with tempfile.TemporaryDirectory() as folder, _watch(slurm, Path(folder), settings) as database:
        seen: Ends = {}
        submitted = set(_submitted(slurm, database, seen))

        def all_seen() -> bool:
            _look(database, seen)
            return submitted <= {job for job, _, _ in seen}

        await_true("outcomes are missing", all_seen, 120, every=0.2)
        return seen


@contextmanager
def _watch(slurm: SlurmLab, home: Path, settings: dict[str, str]) -> Iterator[Path]:
    """The database of a `tocsin watch` that has begun."""
    process = subprocess.Popen(
        [*TOCSIN, "--home", str(home), "watch", "-M", slurm.cluster],
        env={**os.environ, **slurm.env, **settings},
        stdout=subprocess.DEVNULL,
    )
    database = home / "tocsin.db"

    def begun() -> bool:
        try:
            return database.exists() and bool(_rows(database, "SELECT 1 FROM imports"))
        except sqlite3.OperationalError:  # its tables are being made
            return False

    try:
        await_true("the watch has not begun", begun, 60)
        yield database
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def _submitted(slurm: SlurmLab, database: Path, seen: Ends) -> Iterator[int]:
    """Submit jobs at random moments, looking at the store in between."""
    random = Random(7)
    began = time.monotonic()
    for at in sorted(random.uniform(0, SECONDS) for _ in range(JOBS)):
        while time.monotonic() - began < at:
            _look(database, seen)
            time.sleep(0.2)  # jobs come when they come; this is what is measured, not a wait for an event
        script = f"sleep {random.uniform(0.1, 8):.1f}; exit {int(random.random() < 0.3)}"
        yield slurm.sbatch(script, "--mem=50", user=random.choice(("alice", "bob")))


def _look(database: Path, seen: Ends) -> None:
    now = time.time()
    for job, task, submit, end, known_at, outcome in _rows(database, _ENDS):
        seen.setdefault((job, task, submit), (now, end, known_at, outcome))


def _rows(database: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=30)) as connection:
        return connection.execute(sql).fetchall()


def _delays(seen: Ends) -> dict[str, Any]:
    read = np.array([at - end for at, end, _, _ in seen.values()])
    counted = np.array([known - end for _, end, known, _ in seen.values()])
    return {
        "jobs": len(seen),
        "failed": sum(outcome == "failed" for *_, outcome in seen.values()),
        **{f"{name}_seconds": round(float(np.quantile(read, q)), 1) for name, q in _QUANTILES.items()},
        "known_at_p95_seconds": round(float(np.quantile(counted, 0.95)), 1),
    }


_QUANTILES = {"median": 0.5, "p95": 0.95, "most": 1.0}
