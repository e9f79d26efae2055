"""A real Slurm: one burst of jobs read by commands and by slurmrestd side by side gives the same records."""

from collections.abc import Iterator

import polars as pl
import pytest

from tests.services.slurm import SlurmLab
from tocsin.core.fields import KEY
from tocsin.core.frames import SCHEMA
from tocsin.sources.rest import SlurmRest
from tocsin.sources.rest_token import TokenFile
from tocsin.sources.slurm_cluster import SlurmCluster

BURST = [
    ("--mem=100",),
    ("--mem-per-cpu=150", "-n2"),
    ("-N2", "--exclude=n4", "--time-min=1", "-t3"),
    ("--gres=gpu:1", "--mem=10"),
    ("--array=1-6%3", "--mem=20", "-c2"),
    ("--exclusive", "-n1", "--tasks-per-node=1"),
    ("-N1", "--ntasks-per-node=2", "--mem=0"),
    ("-w", "n2", "--no-requeue", "-J", "a b|c"),
    ("--begin=now+1hour", "--exclude=n1", "--mem=30"),
]
LIVE = {"source", "elapsed"}
"""Fields that differ by design: where the record came from, and what only slurmrestd computes for ended jobs."""


@pytest.fixture
def environment(slurm: SlurmLab) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in slurm.env.items():
            patch.setenv(name, value)
        yield


def test_commands_and_slurmrestd_give_the_same_records(slurm: SlurmLab, environment: None) -> None:
    jobs = [slurm.sbatch("#!/bin/bash\nexit 3\n", "--mem=40")]
    slurm.wait_ended(jobs, timeout=60)
    jobs += [slurm.sbatch("#!/bin/bash\nsleep 60\n", *options) for options in BURST]
    try:
        slurm.wait_state(jobs[1], "RUNNING")
        with SlurmRest(slurm.rest_url, user="root", token=TokenFile(slurm.token_file)) as rest:
            by_rest = SlurmCluster(slurm.cluster, rest=rest)
            for _ in range(10):  # a job may start between two looks
                before = _of(by_rest, jobs)
                by_command = _of(SlurmCluster(slurm.cluster), jobs)
                after = _of(by_rest, jobs)
                if before.equals(after):
                    break
        assert {"RUNNING", "PENDING", "FAILED"} <= set(by_command["state"])
        for name in SCHEMA:
            if name not in LIVE:
                assert dict(_values(by_command, name)) == dict(_values(after, name)), name
        ran = by_command.filter(pl.col("state") == "RUNNING")
        assert (
            ran["req_cpus"].null_count()
            == ran["req_tres"].null_count()
            == ran["req_memory"].null_count()
            == 0
        )
    finally:
        slurm.run("scancel", *map(str, jobs))


def _of(cluster: SlurmCluster, jobs: list[int]) -> pl.DataFrame:
    return cluster.queue().filter(pl.col("job_id").is_in(jobs)).sort(KEY)


def _values(jobs: pl.DataFrame, name: str) -> Iterator[tuple[str, object]]:
    for row in jobs.iter_rows(named=True):
        yield f"{row['job_id']}_{row['task']}", row[name]
