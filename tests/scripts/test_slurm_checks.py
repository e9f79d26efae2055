"""Values of options that sbatch refuses, and values that look odd and are taken; both as seen on 22.05."""

import pytest

from tocsin.scripts.scheduler import Scheduler
from tocsin.scripts.script import parse


def problems(option: str) -> list[str]:
    text = f"#!/bin/bash\n#SBATCH {option}\ntrue\n"
    return [problem.text for problem in parse(text, scheduler=Scheduler.SLURM).problems]


@pytest.mark.parametrize(
    "option",
    [
        *(
            "--exclusive=nosuch",
            "--gres-flags=nosuch",
            "--gpu-freq=nosuch",
            "--hint=nosuch",
            "--profile=nosuch",
        ),
        *("-m nosuch", "-m block:nosuch", "--switches=0", "--switches=x", "--switches=-1", "-N 0", "-B x"),
        *("--signal=USR9", "--signal=10@70000", "--signal=", "--nice=99999999999", "--get-user-env=x"),
        *("--kill-on-invalid-dep=maybe", "--acctg-freq=task=x", "--cpu-freq=nosuch", "--delay-boot=x"),
        *("--cpu-freq=2000000-1000000", "-L solver:x"),
        *(
            "-C &fast",
            "-C |",
            "-C fast||slow",
            "-C fast&&slow",
            "-C (fast",
            "-C fast)",
            "-C [fast",
            "-C fast*0",
        ),
        *("-C fast*x", "-C fast*", "-C [fast)"),
    ],
)
def test_what_sbatch_refuses_is_a_problem(option: str) -> None:
    assert problems(option)


@pytest.mark.parametrize(
    "option",
    [
        *(
            "--exclusive",
            "--exclusive=user",
            "--exclusive=MCS",
            "--gres-flags=enforce-binding",
            "--gpu-freq=high",
        ),
        *(
            "--gpu-freq=medium,memory=high",
            "--hint=compute_bound",
            "--hint=nomultithread",
            "--profile=Energy,Task",
        ),
        *(
            "-m block",
            "-m block:cyclic",
            "-m cyclic:block:fcyclic",
            "-m plane=2",
            "-m *:block",
            "-m block,NoPack",
        ),
        *("--switches=1", "--switches=1@5", "--switches=1@x", "-N 1-4", "-N -4", "-B *:4", "-B 2-2:4-4"),
        *("--signal=B:USR1@10", "--signal=R:TERM", "--signal=99", "--signal=TERM@", "--signal=SIGINT"),
        *(
            "--nice",
            "--nice=-5",
            "--nice=x",
            "--get-user-env",
            "--get-user-env=10L",
            "--kill-on-invalid-dep=yes",
        ),
        *("--acctg-freq=task=30,energy=10", "--acctg-freq=30", "--cpu-freq=high", "--delay-boot=5"),
        *("--cpu-freq=low-high:OnDemand", "--cpu-freq=Performance", "-L solver", "-L solver:0", "-L a:1;b:2"),
        *("-L solver@db:1", "-C fast&", "-C (fast|slow)&large", "-C [fast*2&slow*1]", "-C large*1"),
    ],
)
def test_what_sbatch_takes_is_none(option: str) -> None:
    assert problems(option) == []


@pytest.mark.parametrize(
    "option", ["--gpu-freq", "--gres-flags", "--hint", "--profile", "--acctg-freq", "-L", "-C"]
)
def test_a_long_value_is_checked_in_linear_time(option: str) -> None:
    for piece in ("1", "a-", "task", "a,", "1,", "low", "a="):
        problems(f"{option} {piece * 20_000}!")
