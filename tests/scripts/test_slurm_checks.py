"""Values of options that sbatch refuses, and values that look odd and are taken; both as seen on 22.05 and 26.05."""

import pytest

from tocsin.scripts.request import ProblemKind
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
        *("-m nosuch", "-m block:nosuch", "--switches=0", "--switches=x", "--switches=-1", "-B x"),
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
        *("-C fast*x", "-C fast*", "-C [fast)", "-C *2", "--prefer=&", "-B :", "-w ,", "-w n[1,,2]"),
        *("--begin=01/20/2030", "--begin=TOMORROW", "--begin=13:00pm", "--begin=T", "--begin=now+1month"),
        *(
            "--begin=uts1",
            "--begin=2030-1-2",
            "-d afterok:1,",
            "-d afterok:0",
            "-d after:1+0",
            "-d afterok:1,2,after:3",
        ),
        *(
            "--thread-spec=1.5",
            "--core-spec=--",
            "--wait-all-nodes=2",
            "'--ntasks-per-node=2 '",
            "'--mail-type=END '",
        ),
        *(
            "--no-kill=of",
            "--exclusive=no",
            "--kill-on-invalid-dep=y",
            "--gres-flags=enforce-bind",
            "--gres-flags=disable-binding,enforce-binding",
            "--priority=-1",
        ),
        *(
            "--priority=4294967294",
            "--propagate=all",
            "--propagate=ALL,CORE",
            "--propagate=STACK,x",
            "--gpu-freq=HIGH",
            "--gpu-freq=,",
        ),
        *(
            "--gpu-bind=",
            "--gpu-bind=verbose,x",
            "--gpu-bind=single",
            "--gpu-bind=map_gpu:x",
            "--gpu-bind=mask_gpu:x",
            "--gpu-bind=single:-1",
            "-C 'fast & gpu'",
            "--prefer='a b'",
            "--export-file=",
        ),
        *(
            "--mem-bind=,local",
            "--mem-bind=local,",
            "--mem-bind=map_mem:",
            "--hint=nomultithread,",
            "--nodefile=",
        ),
        *("--cpu-freq=low:performance", "--cpu-freq=performance-low", "--cpu-freq=high-low", "--cpu-freq=0"),
        *("-m fcyclic", "-m plane", "-m plane=0", "-m block,x", "-m ,pack", "-m block:block:block:block"),
        *(
            "--signal=CHLD",
            "--signal=0",
            "--profile=filesystem",
            "--acctg-freq=cpu=3",
            "--delay-boot=10-10-10",
            '-o ""',
        ),
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
        *(
            "--begin=2030-01-20T",
            "--begin='noon tomorrow'",
            "--begin=today",
            "--begin=1:00pm",
            "--begin=01.20",
        ),
        *("-d afterok:1,2", "-d 0", "-d after:1+5:2", "-d afterok:1?afterany:2_*", "-d singleton,afterok:1"),
        *(
            "--wait-all-nodes=",
            "--wait-all-nodes=1",
            "--core-spec=0",
            "--exclusive=",
            "--no-kill=",
            "--priority=x",
        ),
        *(
            "--gpu-bind=single:x",
            "--gres-flags=disable-binding,",
            "--gpu-bind=map_gpu:",
            "--gpu-bind=mask_gpu:0x1",
            "--gpu-freq=99999999999",
        ),
        *(
            "--mem-bind=v,map_mem:0,1",
            "--mem-bind=q,none",
            "--cpu-freq=low,high",
            "--cpu-freq=2.4GHz",
            "-B 1:",
        ),
        *(
            "-m *:*:*",
            "-m block,",
            "-m hostfile",
            "--signal=-9",
            "--signal=RB:TERM",
            "--profile=x,task",
            "-L solver:",
        ),
        *(
            "-w n[1-]",
            "-x [n1",
            "-w n[2-3[",
            "-w 'n1  n2,,n3'",
            "-N '1 - 2'",
            "-N +2",
            "--gpus-per-node=",
            "--propagate=RLIMIT_CORE",
            "--propagate=CORE,STACK,",
        ),
        *("-L solver@db:1", "-C fast&", "-C (fast|slow)&large", "-C [fast*2&slow*1]", "-C large*1"),
    ],
)
def test_what_sbatch_takes_is_none(option: str) -> None:
    assert problems(option) == []


@pytest.mark.parametrize(
    "option",
    [
        "--gpu-bind",
        "--mem-bind",
        "--begin",
        "-d",
        "--signal",
        "--cpu-freq",
        "-m",
        "-B",
        "-w",
        "--propagate",
        "--gpu-freq",
        "--gres-flags",
        "--hint",
        "--profile",
        "--acctg-freq",
        "-L",
        "-C",
    ],
)
def test_a_long_value_is_checked_in_linear_time(option: str) -> None:
    for piece in (
        "1",
        "a-",
        "task",
        "a,",
        "1,",
        "low",
        "a=",
        "CORE,",
        "block:",
        "mask_gpu:0",
        "mask_mem:0,",
        "map_mem:1*2,",
    ):
        problems(f"{option} {piece * 20_000}!")


def test_a_missing_value_is_taken_from_the_next_line() -> None:
    """sbatch reads all lines as one command line, and an empty word ends its line."""
    text = '#!/bin/bash\n#SBATCH -J ""\n#SBATCH -N1 -n 2\ntrue\n'
    script = parse(text, scheduler=Scheduler.SLURM)
    assert [problem.kind for problem in script.problems] == [ProblemKind.UNCLEAR]
    assert [directive.option for directive in script.directives] == ["--ntasks"]


def test_components_may_be_given_on_the_command_line() -> None:
    script = parse("#!/bin/bash\n#SBATCH -n 1\ntrue\n", scheduler=Scheduler.SLURM)
    found = script.with_options(["-t", "5", ":", "-n", "8", "--gpus=1"], only_options=True)
    assert not found.problems
    assert [part["req_tasks"] for part in found.components] == [1, 8]
    assert [part.get("time_limit") for part in found.components] == [300, None]
    assert [d.value for d in found.component(1).directives] == ["8", "1"]
