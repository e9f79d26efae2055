"""A script as the job that Slurm would make of it: its requests are kept, defaults are filled in."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.kits.job_frames import SUBMIT, frame
from tocsin.app.check import CheckRequest, question
from tocsin.app.script_job import job_from_script, usual_values, with_defaults
from tocsin.core.machine import Machine, Partition
from tocsin.scripts.script import parse

GB = 1024**3
MACHINE = Machine(
    cluster="lab",
    partitions=(
        Partition(name="long", max_time=9000, default_memory_per_cpu=2 * GB),
        Partition(name="short", default=True, max_time=600, default_time=60, default_memory_per_node=5 * GB),
    ),
)
NOBODY = frame({}).clear()


def taken(
    *directives: str, machine: Machine | None = MACHINE, earlier: pl.DataFrame = NOBODY
) -> dict[str, Any]:
    text = "\n".join(["#!/bin/bash", *(f"#SBATCH {one}" for one in directives), "srun ./a.out", ""])
    job = job_from_script(parse(text), cluster="lab", user="ann", at=SUBMIT)
    return asdict(with_defaults(job, machine, usual_values(earlier, job.user)))


def test_a_script_without_options_gets_the_default_partition_and_its_defaults() -> None:
    job = taken()
    assert (job["partition"], job["time_limit"], job["req_memory"]) == ("short", 60, 5 * GB)
    assert (job["req_nodes"], job["req_cpus"], job["req_gpus"]) == (1, 1, 0)


def test_requests_of_the_script_are_kept() -> None:
    job = taken("--partition=short", "--time=5", "--mem=1G", "--nodes=2", "--ntasks=6", "--gres=gpu:2")
    assert (job["partition"], job["time_limit"], job["req_memory"]) == ("short", 300, GB)
    assert (job["req_nodes"], job["req_cpus"]) == (2, 6)
    assert job["req_gpus"] != 0  # it asks for some; how many, the request tells or nobody


def test_memory_per_cpu_becomes_memory_per_node_and_the_time_limit_is_the_partitions() -> None:
    job = taken("-p long", "-N 2", "-n 3", "-c 2")
    assert (job["time_limit"], job["req_cpus"]) == (9000, 6)
    assert job["req_memory"] == 3 * 2 * GB  # three of the six CPUs on each node


@pytest.mark.parametrize("machine", [None, Machine(cluster="lab")])
def test_an_unknown_machine_fills_in_nothing(machine: Machine | None) -> None:
    job = taken(machine=machine)
    assert (job["partition"], job["time_limit"], job["req_memory"]) == (None, None, None)
    assert taken("-p elsewhere")["time_limit"] is None


def test_values_of_the_user_are_filled_in_if_the_latest_jobs_agree() -> None:
    def submitted(number: int, **more: Any) -> dict[str, Any]:
        return {"job_id": number, "submit": SUBMIT - 1000 + number, "user": "ann", "uid": 7, **more}

    latest = [submitted(n, account="chem", qos=("a", "b")[n % 2]) for n in range(10, 30)]
    others = [
        submitted(1, account="old"),  # before the last twenty
        {"job_id": 99, "submit": SUBMIT - 1, "user": "bob", "account": "bio", "uid": 8},
    ]
    job = taken(earlier=frame(*latest, *others))
    assert (job["account"], job["uid"], job["qos"]) == ("chem", 7, None)
    assert taken("-A maths", earlier=frame(*latest))["account"] == "maths"


def test_the_environment_counts_for_the_user_who_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\ntrue\n")
    monkeypatch.setenv("SBATCH_QOS", "high")
    own, other = (
        question(CheckRequest(script=str(script), submit_options=("-n1",), user=user))
        for user in (None, "somebody-else")
    )
    assert own.options == ("SBATCH_QOS=high", "-n1")
    assert other.options == ("-n1",)
