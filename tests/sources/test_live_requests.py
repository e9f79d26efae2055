"""A real Slurm: one burst of jobs read by commands and by slurmrestd gives the same records and the same verdicts."""

import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from bench.live import burst, differences, reading, side_by_side, verdicts

from tests.services.slurm import SlurmLab
from tocsin.sources.slurm_cluster import SlurmCluster


@pytest.fixture
def environment(slurm: SlurmLab) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in slurm.env.items():
            patch.setenv(name, value)
        yield


def test_commands_and_slurmrestd_give_the_same_records_and_verdicts(
    slurm: SlurmLab, environment: None, tmp_path: Path
) -> None:
    jobs = burst(slurm, 40)
    try:
        with reading(slurm) as by_rest:
            commands, rest = side_by_side(slurm, by_rest, jobs)
            assert {"RUNNING", "PENDING", "FAILED", "COMPLETED"} <= set(commands["state"])
            assert differences(commands, rest) == {}
            ran = commands.filter(pl.col("state") == "RUNNING")
            for name in ("req_cpus", "req_tres", "req_memory"):
                assert ran[name].null_count() == 0
            at = int(time.time())
            given = verdicts(SlurmCluster(slurm.cluster), commands, tmp_path, at)
            assert given == verdicts(by_rest, rest, tmp_path, at)
    finally:
        slurm.run("scancel", *map(str, jobs))
