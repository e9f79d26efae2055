"""Jobs, machines and a past made by hand."""

import hashlib
from collections.abc import Sequence
from typing import Any

import polars as pl

from tocsin.core.detector import Budget, Parts
from tocsin.core.fields import Job
from tocsin.core.frames import from_jobs
from tocsin.core.machine import Machine, Node, Partition
from tocsin.core.stages import Stage
from tocsin.core.verdict import Finding
from tocsin.limits.detector import DETECTOR
from tocsin.scripts.scheduler import Scheduler
from tocsin.scripts.script import parse

GIB = 2**30
HOUR = 3600


class Known:
    """A past that says what it was given."""

    def __init__(
        self,
        machine: Machine | None = None,
        features: dict[str, float] | None = None,
        scripts: dict[str, str] | None = None,
    ) -> None:
        self.machine = machine
        self._features = features or {}
        self._scripts = scripts or {}

    def features(
        self, jobs: pl.DataFrame, *, stage: Stage, names: Sequence[str] | None = None
    ) -> pl.DataFrame:
        return pl.DataFrame(
            {name: [value] * jobs.height for name, value in {"x.y": 0.0, **self._features}.items()}
        )

    def node_outcomes(self, asked: pl.DataFrame) -> pl.DataFrame:
        raise AssertionError("rules do not ask for nodes")

    def script(self, digest: str) -> str | None:
        return self._scripts.get(digest)

    def windows(self, jobs: pl.DataFrame, until: int) -> pl.DataFrame:
        raise AssertionError("rules do not read traces")


MACHINE = Machine(
    cluster="lab",
    nodes=(
        *(
            Node(name=f"n{i}", cpus=32, memory=125 * GIB, features=("icelake",), state="IDLE")
            for i in range(1, 5)
        ),
        Node(name="m1", cpus=32, memory=1000 * GIB, features=("icelake", "big"), state="MIXED"),
        Node(name="g1", cpus=16, memory=250 * GIB, gpus=4, gres="gpu:a100:4(S:0-1)", state="IDLE"),
        Node(
            name="g2",
            cpus=16,
            memory=250 * GIB,
            gpus=4,
            gres="gpu:a100:4(S:0-1)",
            state="IDLE+DRAIN",
            reason="bad fan",
        ),
    ),
    partitions=(
        Partition(
            name="main",
            node_list="n[1-4]",
            nodes=4,
            cpus=128,
            state="UP",
            default=True,
            max_time=24 * HOUR,
            max_nodes=3,
        ),
        Partition(name="big", node_list="m1", nodes=1, cpus=32, state="UP", max_time=72 * HOUR),
        Partition(name="gpu", node_list="g[1-2]", nodes=2, cpus=32, state="UP", max_time=24 * HOUR),
        Partition(
            name="staff",
            node_list="n[1-4]",
            nodes=4,
            state="UP",
            min_nodes=2,
            max_memory_per_node=10 * GIB,
            max_cpus_per_node=8,
            allow_accounts=("staff",),
            allow_qos=("high",),
            allow_groups=("wheel",),
        ),
        Partition(name="percpu", node_list="n[1-4]", nodes=4, state="UP", max_memory_per_cpu=GIB),
        Partition(name="down", node_list="n[1-4]", nodes=4, state="DOWN"),
        Partition(name="shut", node_list="n[1-4]", nodes=4, state="DRAIN"),
    ),
    max_array_size=1001,
)


def job(**fields: Any) -> Job:
    return Job(
        **{"cluster": "lab", "job_id": 1, "task": None, "submit": 1_800_000_000, "user": "eve", **fields}
    )


def assess(*jobs: Job, past: Known, stage: Stage = Stage.SUBMIT) -> list[Parts]:
    frame = from_jobs(jobs)
    fitted = DETECTOR.fit(frame, past, stage=stage, seed=1, budget=Budget())
    return fitted.assess(frame, past, stage=stage)


def findings(
    *, machine: Machine | None = MACHINE, features: dict[str, float] | None = None, **fields: Any
) -> list[Finding]:
    """What is found of one job with these fields."""
    return list(assess(job(**fields), past=Known(machine, features))[0].findings)


def kinds(**fields: Any) -> dict[str, str]:
    return {finding.kind: str(finding.level) for finding in findings(**fields)}


def submitted(
    *lines: str,
    machine: Machine | None = MACHINE,
    body: str = "true",
    command: str | None = None,
    user: str = "eve",
) -> Parts:
    """The findings on a script with these directives, as `tocsin check` gives them before it is submitted."""
    text = "\n".join(["#!/bin/bash", *(f"#SBATCH {line}" for line in lines), body, ""])
    return of_script(text, machine=machine, command=command, user=user)


def of_script(
    text: str, *, machine: Machine | None = MACHINE, command: str | None = None, user: str = "eve"
) -> Parts:
    digest = hashlib.sha256(text.encode()).hexdigest()
    script = parse(text, scheduler=Scheduler.SLURM if machine else None)
    if command:
        script = script.with_options(command.split())
    wanted = job(**{"job_id": 0, "user": user, "script": digest, "submit_line": command, **script.request})
    return assess(wanted, past=Known(machine, scripts={digest: text}))[0]


def past_of(key: str, completed: int) -> dict[str, float]:
    """Jobs of the kind took one to two hours and up to 8 GiB."""
    return {
        f"{key}.completed": completed,
        f"{key}.elapsed_least": 3600.0,
        f"{key}.elapsed_most": 7200.0,
        f"{key}.memory_most": 8.0 * GIB,
    }
