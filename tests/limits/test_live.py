"""A real Slurm has the last word: what it refuses or never starts is critical, and what it takes is not."""

import pytest

from tests.limits.examples import submitted
from tests.services.daemons import await_true
from tests.services.slurm import SlurmLab
from tocsin.core.machine import Machine
from tocsin.core.verdict import Level
from tocsin.sources.slurm_machine import machine_from_scontrol

NEVER = (
    "PartitionTimeLimit",
    "PartitionNodeLimit",
    "PartitionConfig",
    "MaxMemPerLimit",
    "Job's account not permitted to use this partition",
    "BadConstraints",
)
REQUESTS = [
    # tasks, CPUs and nodes: four nodes of two CPUs, 4000M each; the first has two GPUs
    "-n 8",
    "-n 9",
    "-n 8 --mem-per-cpu=1900M",
    "-n 8 --mem-per-cpu=2100M",
    "-n 4 --ntasks-per-node=4",
    "-N 1 -n 4",
    "-N 1 --ntasks-per-node=4",
    "-n 4 --ntasks-per-node=1 -c 2",
    "-c 2",
    "-c 3",
    "-n 5 -c 2",
    "-N 4",
    "-N 5",
    "-N 1 -n 2 -c 2",
    "-N 2 -n 2 -c 2",
    "-N 2 -n 5 --ntasks-per-node=2",
    "-N 2 -n 3 --ntasks-per-node=1",
    "-N 3-2",
    "-N 2 -n 1",
    # memory
    "--mem=4000",
    "--mem=4001",
    "-n 8 --mem=5000",
    "-n 4 --mem=3500",
    "--mem=0",
    "--mem=100 --mem-per-cpu=50",
    # GPUs
    "--gpus=2",
    "--gpus=3",
    "--gres=gpu:3",
    "-N 2 --gres=gpu:1",
    "-N 2 --gpus=2",
    "-n 2 --gpus-per-task=2",
    "-n 4 --gpus=2",
    # time
    "-t 1-0",
    "-t 1-0:01",
    "-t UNLIMITED",
    "-p short -t 5",
    "-p short -t 6",
    "-p short,main -t 10",
    "-p short -N 2",
    "-p short,main -N 2",
    "--time-min=20 -t 10",
    "--begin=now+1hour --deadline=now+1minute",
    # arrays
    "-a 0-1",
    "-a 0-1001",
    "-a 1001",
    "-a 1000",
    # nodes by name and feature
    "-C nosuch",
    "-w n9",
    "-w n1",
    "-w n1,n2 -N 1",
    "-w n1 -x n1",
    "-n 4 -w n1",
    "-x n[1-4]",
    "-x n[1-3] -N 2",
    "-x n[1-3]",
    # partitions
    "-p nosuch",
    "-p shut",
    "-p foreign",
    "-p two -N 1",
    "-p two",
    "-p two -N 2 --mem=1001",
    "-p two -N 2 --mem=1000",
    "-p narrow -n 2",
    "-p narrow -c 2",
    "-p narrow -N 1 -n 2",
    "-p thin --mem=900",
    "-p thin --mem=1001",
]


@pytest.fixture(scope="module")
def machine(slurm: SlurmLab) -> Machine:
    for partition in (
        "PartitionName=shut Nodes=n[1-2] State=DRAIN",
        "PartitionName=foreign Nodes=n[1-2] AllowAccounts=others",
        "PartitionName=two Nodes=n[1-3] MinNodes=2 MaxMemPerNode=1000",
        "PartitionName=narrow Nodes=n[1-2] MaxCPUsPerNode=1",
        "PartitionName=thin Nodes=n[1-2] MaxMemPerCPU=500",
    ):
        slurm.run("scontrol", "create", *partition.split())
    return machine_from_scontrol("lab", lambda argv: slurm.run(*argv).stdout.encode())


def accepts(slurm: SlurmLab, request: str) -> bool:
    """Whether Slurm takes it and would start it some time; it is not waited for."""
    said = slurm.run(
        "sbatch",
        "--parsable",
        *request.split(),
        "-A",
        slurm.account,
        user="alice",
        stdin="#!/bin/bash\ntrue\n",
        check=False,
    )
    if said.returncode:
        return False
    job = said.stdout.strip().partition(";")[0]
    state = list[str]()

    several = "-p short,main" in request  # it waits with the reason of the first until the second is tried

    def judged() -> bool:
        state[:] = slurm.run("squeue", "-h", "-t", "all", "-j", job, "-O", "State:30,Reason:60").stdout.split(
            maxsplit=1
        )
        return bool(state) and (state[0] != "PENDING" or (not several and state[1].strip() != "None"))

    await_true(f"{request}: Slurm has not looked at job {job}", judged, 30, lambda: f"It is {state}.")
    slurm.run("scancel", job)
    return state[0] != "PENDING" or not state[1].startswith(NEVER)


@pytest.mark.parametrize("request_", REQUESTS)
def test_critical_is_what_slurm_refuses_or_never_starts(
    slurm: SlurmLab, machine: Machine, request_: str
) -> None:
    parts = submitted(f"-A {slurm.account}", *request_.split("\n"), machine=machine)
    critical = [finding.text for finding in parts.findings if finding.level is Level.CRITICAL]
    assert accepts(slurm, request_) == (not critical), critical
