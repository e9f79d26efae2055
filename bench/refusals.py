"""Requests generated against a real Slurm: does `limits` call impossible what Slurm refuses or never starts, and only that?

`python -m bench.refusals` prints the agreement and names every disagreement. Slurm's answer is that of `sbatch --test-only`;
what that accepts, and what it finds no nodes for, is submitted, and counts as refused if sbatch refuses it, if its reason for
waiting cannot end by itself, or if it waits for resources while nothing else is there that could use any.
"""

import json
import random
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tests.limits.examples import submitted
from tests.services.daemons import ServiceError, await_true
from tests.services.slurm import SlurmLab

from tocsin.core.machine import Machine
from tocsin.core.verdict import Level
from tocsin.sources.slurm_machine import machine_from_scontrol

__all__ = ["agreement", "answers", "lab", "machine_of", "requests", "run"]

SEED = 3120
"""Drawn anew after the rules were last changed, so that most combinations are new to them."""
NUMBER = 600
USER, ACCOUNT = "alice", "research"

HARDWARE = {
    "n1": "Sockets=1 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=4000 TmpDisk=2000 Feature=fast,gpu",
    "n2": "Sockets=2 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=8000 TmpDisk=500 Feature=fast",
    "n3": "Sockets=2 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=8000 Feature=fast,large",
    "n4": "Sockets=2 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=8000 Feature=slow CoreSpecCount=2 MemSpecLimit=1000",
    "n5": "Sockets=1 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=2000 Feature=reserved",
}
SETTINGS = """Licenses=solver:2,mesh:5
AccountingStorageEnforce=associations,limits,qos
PartitionName=spec Nodes=n4 MaxTime=1-00:00:00
PartitionName=shut Nodes=n[1-2] State=DRAIN
PartitionName=foreign Nodes=n[1-2] AllowAccounts=others
PartitionName=highonly Nodes=n[1-3] AllowQos=high
PartitionName=two Nodes=n[1-3] MinNodes=2 MaxMemPerNode=1000
PartitionName=narrow Nodes=n[1-2] MaxCPUsPerNode=1
PartitionName=thin Nodes=n[1-2] MaxMemPerCPU=500
PartitionName=kept Nodes=n5
PartitionName=booked Nodes=n[1-3] ReqResv=YES
PartitionName=strict Nodes=n[1-3] QOS=strict
PartitionName=limited Nodes=n[1-3] MaxTime=5 MaxNodes=1
"""
ACCOUNTING = (
    "add qos high low small strange strict over least minutes each any booked",
    "modify qos low set MaxWall=00:10:00 Flags=DenyOnLimit",
    "modify qos small set MaxTRESPerJob=cpu=2,mem=1G,node=1 Flags=DenyOnLimit",
    "modify qos strict set MaxTRESPerJob=cpu=4 MaxWall=30",
    "modify qos over set MaxTRESPerJob=cpu=8 Flags=OverPartQOS",
    "modify qos least set MinTRESPerJob=cpu=4",
    "modify qos minutes set MaxTRESMinsPerJob=cpu=60",
    "modify qos each set MaxTRESPerNode=cpu=2",
    "modify qos any set Flags=PartitionTimeLimit,PartitionMaxNodes",
    "modify qos booked set Flags=RequiresReservation",
    "add account tiny others cluster=lab",
    "add user alice account=tiny",
    "modify user alice where account=research set qos=normal,high,low,small,over,least,minutes,each,any,booked",
    "modify user alice where account=tiny set MaxTRESPerJob=cpu=1 MaxWall=5 qos=normal",
)
NEVER = re.compile(
    "Partition(TimeLimit|NodeLimit|Config)|MaxMemPerLimit|BadConstraints|.*account not permitted|"
    "(Assoc|QOS)(Max(Cpu|Node|Mem|Wall)Per|MaxWall|MaxCpuMinutesPerJob|Min)|.*QOS not permitted|.*AllowQos|.*not permitted"
)
"""Reasons for waiting that end only when somebody changes the job or the cluster."""

_AWAITED = re.compile(r"(?<!\S)(--begin=\S+|--deadline=\S+|-d \S+)")
"""Options that hide for how long a job has to wait for other reasons."""
_UNSURE = "Requested node configuration is not available"
"""`sbatch --test-only` says this of jobs, too, that start once they are submitted (`-w n2 -N 2`)."""
_SEVERAL = re.compile(r"-p \S+,")
_RESERVED = "Nodes required for job are DOWN, DRAINED or reserved"
_UNDECIDED = frozenset({"None", "Priority", "Resources", "Reserved"})
_NOT_STARTED = "waits for resources although the cluster is idle"


@contextmanager
def lab() -> Iterator[SlurmLab]:
    """A cluster with special cores and memory, features, licences, reservations, QOS and association limits."""
    with SlurmLab(nodes=5, hardware=HARDWARE, more_settings=SETTINGS, accounting=ACCOUNTING) as slurm:
        for partition in ("main", "short"):
            slurm.run("scontrol", "update", f"PartitionName={partition}", "Nodes=n[1-4]")
        for name, user in (("bobs", "bob"), ("ours", "alice")):
            slurm.run(
                *f"scontrol create reservation ReservationName={name} Users={user} Nodes=n5 StartTime=now".split(),
                "Duration=1:00:00",
                "Flags=OVERLAP",
            )
        yield slurm


AXES: dict[str, tuple[str, ...]] = {
    "tasks": ("-n 1", "-n 2", "-n 7", "-n 8", "-n 9", "-n 24", "-n 25", "-n 26"),
    "width": ("-c 1", "-c 2", "-c 6", "-c 7", "-c 8", "-c 9", "-c 64"),
    "nodes": ("-N 1", "-N 2", "-N 3", "-N 4", "-N 5", "-N 2-3", "-N 4-9", "-N 3-2"),
    "block": ("--ntasks-per-node=1", "--ntasks-per-node=2", "--ntasks-per-node=8", "--ntasks-per-node=9"),
    "memory": (
        *("--mem=100", "--mem=4000", "--mem=7000", "--mem=7001", "--mem=8000", "--mem=8001", "--mem=0"),
        *("--mem-per-cpu=400", "--mem-per-cpu=1100", "--mem-per-cpu=4100", "--mem=9G --mem-per-cpu=1G"),
        *("--mem-per-gpu=100 --gpus=1", "--mem-per-gpu=3000 --gpus=2"),
        *("--mem=6G", "--mem=7.9G", "--mem=1T", "--mem-per-cpu=2G", "--mem-per-cpu=0"),
    ),
    "gpus": (
        *("--gpus=1", "--gpus=2", "--gpus=3", "--gres=gpu:2", "--gres=gpu:3", "--gres=gpu:a100:1"),
        *(
            "--gpus-per-task=1",
            "--gpus-per-task=3",
            "--gpus-per-node=1",
            "--gpus-per-node=3",
            "--gres=fpga:1",
        ),
        *("--gpus-per-socket=1 --sockets-per-node=1", "--gpus-per-socket=3 --sockets-per-node=1"),
        *("--gpus=1 --cpus-per-gpu=1", "--gpus=2 --cpus-per-gpu=2", "--gpus=2 --ntasks-per-gpu=1"),
        *("--gres=gpu:0", "--gres=none", "--gpus=a100:1", "--gres=gpu:1,fpga:1"),
    ),
    "time": (
        "-t 5",
        "-t 6",
        "-t 11",
        "-t 1-0",
        "-t 1-0:01",
        "-t UNLIMITED",
        "--time-min=20 -t 10",
        "-t 0",
        "-t 0:30",
        "-t 2-0",
    ),
    "partition": (
        *("-p main", "-p short", "-p short,main", "-p spec", "-p shut", "-p foreign", "-p highonly"),
        *("-p two", "-p narrow", "-p thin", "-p nosuch", "-p spec,short"),
    ),
    "account": ("-A research", "-A tiny", "-A others", "-A nosuch"),
    "qos": ("--qos=normal", "--qos=high", "--qos=low", "--qos=small", "--qos=strange", "--qos=nosuch"),
    "feature": (
        *("-C fast", "-C slow", "-C large", "-C nosuch", "-C fast&slow", "-C fast|slow", "-C fast&large"),
        *("-C [fast|slow]", "-C large|nosuch", "-C fast&gpu", "-C large*1"),
        *(
            "-C fast*2",
            "-C fast*4",
            "-C (fast|slow)&large",
            "-C reserved",
            "--prefer=nosuch",
            "--prefer=slow",
        ),
    ),
    "nodelist": (
        "-w n1",
        "-w n4",
        "-w n9",
        "-w n1,n2",
        "-x n1",
        "-x n[2-4]",
        "-x n[1-4]",
        "-w n2 -x n2",
        "-w n5",
        "-w n[2-3]",
        "-x n9",
    ),
    "disk": ("--tmp=100", "--tmp=600", "--tmp=2000", "--tmp=2001", "--tmp=1T"),
    "licence": ("-L solver:1", "-L solver:2", "-L solver:3", "-L nosuch:1", "-L solver:1,mesh:6", "-L mesh"),
    "reservation": (
        "--reservation=ours",
        "-p kept --reservation=ours",
        "--reservation=bobs",
        "--reservation=nosuch",
    ),
    "geometry": (
        *("--mincpus=2", "--mincpus=8", "--mincpus=9", "--sockets-per-node=2", "--sockets-per-node=3"),
        *(
            "--cores-per-socket=4",
            "--cores-per-socket=5",
            "--threads-per-core=2",
            "-B 2:4",
            "-B 3",
            "-S 1",
            "-S 8",
        ),
        *("--ntasks-per-socket=1", "--ntasks-per-core=1", "--hint=nomultithread", "--exclusive", "-O"),
        *(
            "--exclusive=user",
            "--oversubscribe",
            "--contiguous",
            "--spread-job",
            "--thread-spec=1",
            "--use-min-nodes",
        ),
        *("--ntasks-per-core=2", "--ntasks-per-socket=5", "-B 1:2:2", "-m cyclic", "--switches=1"),
    ),
    "array": (
        "-a 0-1",
        "-a 1000",
        "-a 1001",
        "-a 0-1001",
        "-a 3-1",
        "-a 1-9:4%2",
        "-a 1,1000",
        "-a x",
        "-a 5%0",
    ),
    "times": (
        "--begin=now+1hour",
        "--begin=now+1hour --deadline=now+1minute",
        "--deadline=now+1hour",
        "--begin=xx",
    ),
    "manner": (
        *("--no-requeue", "--requeue", "--nice=5", "--export=NONE", "-k", "--signal=USR1@60", "--wckey=x"),
        *("--mail-type=nosuch", "--open-mode=append", "--open-mode=nosuch", "--comment=x", "-J x"),
    ),
    "values": (
        *(
            "--exclusive=nosuch",
            "--gres-flags=nosuch",
            "--hint=nosuch",
            "--profile=nosuch",
            "-m nosuch",
            "-m plane=2",
        ),
        *(
            "--switches=0",
            "--switches=1@5",
            "-N 0",
            "-N -4",
            "-B x",
            "-B *:4",
            "--signal=USR9",
            "--signal=B:TERM@10",
        ),
        *(
            "--nice=99999999999",
            "--nice=x",
            "--cpu-freq=nosuch",
            "--cpu-freq=high",
            "--delay-boot=x",
            "-L solver:x",
        ),
        *(
            "--acctg-freq=task=x",
            "--kill-on-invalid-dep=maybe",
            "--uid=0",
            "--gid=0",
            "-m arbitrary",
            "--gpus=1,2",
        ),
        *("--mem-per-gpu=1G", "--ntasks-per-gpu=2", "--cpus-per-gpu=1", "--cpus-per-gpu=1 -c 1 --gpus=1"),
        *("-C &fast", "-C (fast", "-C fast*0", "-C fast&", "-C [large|slow] -N 2", "-C [fast*2&slow*2]"),
        *(
            "-C [fast*2&slow*1] -N 3",
            "-C large|slow -N 3",
            "--prefer=slow -N 2",
            "--prefer=fast -N 2",
            "-p main,nosuch",
        ),
        *("--gpus-per-node=a100:1", "-G x", "--ntasks-per-gpu=1 -n 9", "--reservation=ours,bobs", "-N 1,3"),
        *("--deadline=2010-01-20", "--mincpus=2 -p narrow", "-w n1 -n 3 -N 1"),
        *("-d 12", "-d 12,13", "-n 4 -N 0", "-w n2 -N 0", "-N 2 -m plane=4", "-N 2 -n 5 -m plane=4"),
        *("-c 2 --tres-per-task=cpu=4", "--get-user-env=60L", "--get-user-env", "--oom-kill-step=1"),
        *("-n 1 -c 3 -w n[1-2]", "-n 2 -c 8 -w n[1-3]", "-n 1 -w n1,n5", "-n 1 -w n1,n2 -x n1"),
        *("--ntasks-per-socket=1 -n 12", "--ntasks-per-socket=1 -n 5", "--gpus=2 --gres=gpu:1"),
        *("--gres=gpu:a100:1 --gpus=1", "-p short -C fast*2", "-p two --mem=0", "-n 1 -C fast*2"),
        *("-n 1 --ntasks-per-node=2", "-n 1 --ntasks-per-node=2 --exclusive", "-n 2 --ntasks-per-node=8"),
        *("-N 1 -n 4 --ntasks-per-node=2 --exclusive", "-n 4 -c 2 -O", "-n 2 --mincpus=8"),
        *(
            "--mem-per-cpu=1100 --mincpus=8",
            "-N 1-2 -p short -t 5",
            "-p narrow --exclusive",
            "-C fast|2080ti",
        ),
    ),
    "dependency": ("-d singleton", "-d afterok:999999999", "-d nosuch:1"),
    "folder": (
        "-D /tmp",
        "-D /no/such/folder",
        "-o out.txt",
        "-o /no/such/folder/out.txt",
        "-e /no/such/err",
    ),
}
"""Options that say something about one subject; a request takes from few of them."""


def requests(number: int = NUMBER, seed: int = SEED) -> list[str]:
    """Each option alone, then combinations of two to four."""
    rng = random.Random(seed)
    found = dict.fromkeys(option for options in AXES.values() for option in options)
    while len(found) < number:
        axes = rng.sample(list(AXES), rng.choice((2, 2, 3, 3, 4)))
        found[" ".join(rng.choice(AXES[axis]) for axis in axes)] = None
    return list(found)


def answers(slurm: SlurmLab, wanted: Iterable[str]) -> dict[str, str]:
    """For each request why Slurm refuses it or never starts it; empty where it takes it."""
    found: dict[str, str] = {}
    for request in wanted:
        done = _sbatch(slurm, "--test-only", *request.split())
        found[request] = done.stderr.strip().splitlines()[-1] if done.returncode else ""
    taken = [request for request, why in found.items() if not why or why.endswith(_UNSURE)]
    reasons: dict[str, str] = {}
    for start in range(0, len(taken), 25):
        reasons |= _reasons(slurm, taken[start : start + 25], found, seconds=20)
    # A job that never starts can hide the reasons of those behind it: these are looked at one by one.
    for request in [
        request
        for request, reason in reasons.items()
        if reason in _UNDECIDED or _waits_for_one_of_several(request, reason)
    ]:
        await_true("jobs are left in the queue", lambda: not slurm.run("squeue", "-h").stdout.strip(), 60)
        reasons |= _reasons(slurm, [request], found, seconds=10)
        if reasons.get(request) == "Resources":
            found[request] = _NOT_STARTED
    if unseen := [request for request, reason in reasons.items() if reason == "None"]:
        raise ServiceError(f"slurmctld has not looked at {', '.join(unseen[:9])}")
    return found | {request: reason for request, reason in reasons.items() if NEVER.match(reason)}


def _waits_for_one_of_several(request: str, reason: str) -> bool:
    """The reason may be that of the first partition alone."""
    return bool(_SEVERAL.search(request) and NEVER.match(reason))


def _sbatch(slurm: SlurmLab, *options: str) -> Any:
    account = () if "-A" in options else ("-A", ACCOUNT)
    return slurm.run("sbatch", *account, *options, user=USER, stdin="#!/bin/bash\ntrue\n", check=False)


def _reasons(
    slurm: SlurmLab, requests: Iterable[str], refused: dict[str, str], seconds: float
) -> dict[str, str]:
    """Submit these requests: why each waits, once slurmctld has looked at all of them or time is over.

    What sbatch does not take is added to `refused`, and what it takes is not refused any more.
    """
    jobs, found = {}, {}
    for request in requests:
        done = _sbatch(slurm, "--parsable", *_AWAITED.sub("", request).split())
        if done.returncode:
            refused[request] = done.stderr.strip().splitlines()[-1]
        else:
            refused[request] = ""
            jobs[done.stdout.strip().partition(";")[0]] = request

    def looked_at() -> bool:
        rows = slurm.run(
            "squeue", "-h", "-t", "all", "-j", ",".join(jobs), "-O", "ArrayJobID:20,State:20,Reason:80"
        )
        for row in rows.stdout.splitlines():
            request, state, reason = jobs[row[:20].strip()], row[20:40].strip(), row[40:].strip()
            reason = "Reserved" if reason.startswith(_RESERVED) else reason
            # The scheduler may hide a lasting reason behind a passing one; but a second partition may take the job.
            if _SEVERAL.search(request) or not NEVER.match(found.get(request, "")):
                found[request] = reason if state == "PENDING" else "started"
        if len(jobs) == 1 and any(_waits_for_one_of_several(*each) for each in found.items()):
            return False
        return found.keys() >= set(jobs.values()) and _UNDECIDED.isdisjoint(found.values())

    if jobs:
        with suppress(ServiceError):  # what still waits for resources was accepted
            await_true("slurmctld has not looked at all jobs", looked_at, seconds)
        slurm.run("scancel", *jobs)
    return found


def machine_of(slurm: SlurmLab) -> Machine:
    return machine_from_scontrol(slurm.cluster, lambda argv: slurm.run(*argv).stdout.encode(), user=USER)


def agreement(machine: Machine, replies: dict[str, str]) -> dict[str, Any]:
    """How many of Slurm's refusals are critical, and which requests the two disagree on."""
    refused, missed, false = 0, [], []
    for request, why in replies.items():
        account = "" if "-A " in request else f"-A {ACCOUNT} "
        findings = submitted(account + request, machine=machine, user=USER).findings
        critical = [finding.text for finding in findings if finding.level is Level.CRITICAL]
        refused += bool(why)
        if why and not critical:
            missed.append(f"{request}: {why}")
        elif critical and not why:
            false.append(f"{request}: {critical[0]}")
    return {
        "seed": SEED,
        "requests": len(replies),
        "refused": refused,
        "found": refused - len(missed),
        "share_found": round(1 - len(missed) / refused, 4),
        "missed": missed,
        "false": len(false),
        "false_refusals": false,
    }


def run() -> dict[str, Any]:
    with lab() as slurm:
        return agreement(machine_of(slurm), answers(slurm, requests()))


if __name__ == "__main__":
    print(json.dumps(run(), indent=1))
