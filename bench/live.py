"""A real Slurm read both ways: one burst by commands and through every API version of slurmrestd, then what it refuses.

`python -m bench.live` uses the Slurm of this machine; in `make bench` it runs in a Debian with the newest Slurm, made by
tests/services/debian.sh, and its result holds the requests that `check` and `sbatch --test-only` disagree on.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import polars as pl
from tests.services.daemons import await_true
from tests.services.slurm import SlurmLab

from bench import refusals
from tocsin.app.judge import load_seats
from tocsin.core.errors import ClusterError, NotFound
from tocsin.core.fields import KEY
from tocsin.core.frames import SCHEMA
from tocsin.core.ids import JobKey
from tocsin.core.stages import Stage
from tocsin.history.ledger import Ledger
from tocsin.judge.judge import Judge
from tocsin.judge.plugins import find_detectors
from tocsin.models.registry import Registry
from tocsin.sources.rest import SlurmRest
from tocsin.sources.rest_token import TokenFile
from tocsin.sources.slurm_cluster import SlurmCluster

__all__ = ["burst", "differences", "reading", "run", "side_by_side", "verdicts"]

JOBS = 200
SUITE = "forky"
SCRIPT = Path(__file__).parents[1] / "tests" / "services" / "debian.sh"
KINDS = (
    ("--mem=100",),
    ("--mem-per-cpu=150", "-n2"),
    ("--gres=gpu:1", "--mem=10"),
    ("-N2", "--exclude=n4", "--time-min=1", "-t3"),
    ("-w", "n2", "--no-requeue", "-J", "a b|c"),
    ("--array=1-6%3", "--mem=20", "-c2"),
    ("--exclusive", "-n1", "--tasks-per-node=1"),
    ("-N1", "--ntasks-per-node=2", "--mem=0"),
    ("--begin=now+1hour", "--exclude=n1", "--mem=30"),
    ("-p", "short", "-t", "2", "--mem=64", "-J", "short"),
)
OF_THE_SOURCE = {"source", "elapsed"}
"""Fields that differ by design: where a record came from, and what only slurmrestd computes of ended jobs."""


def burst(slurm: SlurmLab, number: int) -> list[int]:
    """Submit jobs of every kind, most of which start at once; two run on, and some wait."""
    jobs = [slurm.sbatch("exit 3", "--mem=40")]
    kinds = islice(cycle(KINDS), number - 1)
    jobs += [slurm.sbatch(f"sleep {600 if place < 2 else 1}", *kind) for place, kind in enumerate(kinds)]

    def most_started() -> bool:
        started = slurm.run("squeue", "-h", "-t", "R,CG,CD,F", "-o", "%F").stdout.split()
        return len(set(started) & set(map(str, jobs))) > 0.7 * number

    await_true("most jobs have not started", most_started, 180)
    return jobs


@contextmanager
def reading(slurm: SlurmLab, version: str | None = None) -> Iterator[SlurmCluster]:
    """The cluster through slurmrestd, in one API version or as tocsin chooses."""
    with SlurmRest(slurm.rest_url, user="root", token=TokenFile(slurm.token_file)) as rest:
        rest.served("slurm")
        if version:
            rest._offers = {"slurm": {version}, "slurmdb": {version}}
        yield SlurmCluster(slurm.cluster, rest=rest)


def side_by_side(
    slurm: SlurmLab, by_rest: SlurmCluster, jobs: list[int]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The records of one moment by commands and by slurmrestd; both must be read between two changes of the queue."""

    def of(cluster: SlurmCluster) -> pl.DataFrame:
        return cluster.queue().filter(pl.col("job_id").is_in(jobs)).sort(KEY)

    by_command = SlurmCluster(slurm.cluster)
    for _ in range(60):
        before, commands, after = of(by_rest), of(by_command), of(by_rest)
        if before.equals(after):
            return commands, after
    raise ClusterError("the queue never stood still between two looks")


def differences(commands: pl.DataFrame, rest: pl.DataFrame) -> dict[str, int]:
    """The fields whose values differ, and in how many jobs."""
    if not commands.select(KEY).equals(rest.select(KEY)):
        return {"jobs": abs(commands.height - rest.height) or commands.height}
    return {
        name: int((commands[name].ne_missing(rest[name])).sum())
        for name in SCHEMA
        if name not in OF_THE_SOURCE and not commands[name].equals(rest[name])
    }


def verdicts(cluster: SlurmCluster, jobs: pl.DataFrame, models: Path, at: int) -> list[dict[str, Any]]:
    """The submit verdicts on these records next to the machine that the same source reports."""
    known = Ledger(machine=cluster.machine())
    known.learn(jobs.with_columns(known_at=pl.col("end").fill_null(at)))
    judge = Judge(load_seats(find_detectors(), Registry(models), known))
    found = judge.decide(jobs, Stage.SUBMIT, known=known, at=at).verdicts
    return [{k: v for k, v in verdict.to_json().items() if k != "missing"} for verdict in found]


def one_version(slurm: SlurmLab, jobs: list[int], version: str) -> dict[str, Any]:
    """What one API version says of the burst, of an array to be held, of no job, and to an expired token."""
    with reading(slurm, version) as by_rest, tempfile.TemporaryDirectory() as models:
        commands, rest = side_by_side(slurm, by_rest, jobs)
        at = int(time.time())
        ours = verdicts(SlurmCluster(slurm.cluster), commands, Path(models), at)
        theirs = verdicts(by_rest, rest, Path(models), at)
        expired = _expired(slurm)
        return {
            "records": rest.height,
            "running_or_ended": rest.filter(pl.col("state") != "PENDING").height,
            "fields_that_differ": differences(commands, rest),
            "verdicts_that_differ": sum(one != other for one, other in zip(ours, theirs, strict=True)),
            "array_held_and_released": _held(slurm, by_rest),
            "unknown_job": _error(lambda: by_rest.hold(JobKey(slurm.cluster, 1, None, at), "x")),
            "expired_token": _error(
                lambda: SlurmRest(
                    slurm.rest_url, user="root", token=lambda: expired, sleep=lambda _: None
                ).queue()
            ),
        }


def _held(slurm: SlurmLab, cluster: SlurmCluster) -> str:
    array = slurm.sbatch("true", "--array=1-3", "--begin=now+1hour")
    try:
        row = cluster.queue().filter(pl.col("job_id") == array).row(0, named=True)
        for task in (None, 2):
            key = JobKey(row["cluster"], array, task, row["submit"])
            cluster.hold(key, "a reason")  # both verify that it was done
            cluster.release(key)
    except ClusterError as error:
        return str(error)
    finally:
        slurm.run("scancel", str(array))
    return "yes"


def _expired(slurm: SlurmLab) -> str:
    token = slurm.new_token("root", slurm.folder / "expired.jwt", lifespan=1)
    time.sleep(2)  # there is no other way to get one
    return token


def _error(ask: Any) -> str:
    try:
        ask()
    except NotFound:
        return "not found"
    except ClusterError as error:
        return "names the remedy" if "scontrol token" in str(error) else str(error)
    return "no error"


def here(number: int = JOBS) -> dict[str, Any]:
    with SlurmLab(nodes=8, cpus=16, memory_mb=32_000) as slurm:
        os.environ.update(slurm.env)
        release = slurm.run("scontrol", "--version").stdout.split()[-1]
        jobs = burst(slurm, number)
        with reading(slurm) as chosen:
            assert chosen.rest
            offered = sorted(chosen.rest._offers["slurm"])
            chosen_version = chosen.rest.served("slurm", queue=True).version
        versions = {version: one_version(slurm, jobs, version) for version in offered}
    return {"slurm": release, "jobs": number, "queue_read_in": chosen_version, "versions": versions}


def run() -> dict[str, Any]:
    """On this machine's Slurm and in the newest that Debian has; where that cannot be made, the reason."""
    if os.geteuid() != 0:
        return {"missing": "a Debian with the newest Slurm is made by root only"}
    command = (
        "{ make .venv/.installed-dev && bash tests/services/install.sh .venv/bin/python; } >&2 "
        "&& .venv/bin/python -m bench.live"
    )
    done = subprocess.run([SCRIPT, SUITE, "root", command], stdout=subprocess.PIPE, text=True, check=True)
    newest: dict[str, Any] = json.loads(done.stdout)
    refused = newest.pop("refusals")
    return {"releases": [here(), newest], "refusals": refused}


if __name__ == "__main__":
    result = here(int(sys.argv[1]) if sys.argv[1:] else JOBS)
    result["refusals"] = refusals.run()
    print(json.dumps(result, indent=1))
