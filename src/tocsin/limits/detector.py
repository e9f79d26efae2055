"""The detector `limits`: findings and advice from rules."""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from tocsin.core.detector import Budget, Known, Need, Parts
from tocsin.core.errors import ModelError
from tocsin.core.machine import Machine
from tocsin.core.stages import Stage
from tocsin.core.verdict import Finding, Level
from tocsin.limits.access_rules import access_breaches, gres_breaches, with_default_qos
from tocsin.limits.advice import advice, with_valid_changes
from tocsin.limits.breach import Breach, Thresholds, unavoidable
from tocsin.limits.capacity import Capacity
from tocsin.limits.demand import demands
from tocsin.limits.name_rules import feature_breaches, node_list_breaches, preference_breaches
from tocsin.limits.node_rules import node_breaches
from tocsin.limits.partition_rules import (
    array_breaches,
    highest_index,
    partition_breaches,
    unknown_partitions,
)
from tocsin.limits.past_usage import READ, has_run_here, past_usage_breaches
from tocsin.limits.script_checks import contradictions, misread_lines, missing_folders
from tocsin.models.files import read_document
from tocsin.scripts.submission import Submission, components, read_submissions

__all__ = ["DETECTOR", "FittedLimits", "Limits"]

NAME = "limits"
VERSION = 1
_FILE = "limits.json"
_NO_MACHINE = (
    "nodes, partitions and limits are unknown; the request was compared with earlier jobs and the script only"
)
_NO_PARTITION = "the job names no partition and the default partition is unknown"
_READ_FOR_A_USER = {
    "associations": "user",
    "qos": "qos",
    "licenses": "licenses",
    "reservations": "reservation",
}
"""What is read of a cluster for one user, and the column of a job that it limits."""
_NO_ARRAY_SIZE = "the largest allowed array index is unknown"
_DEFAULT_ARRAY_SIZE = 1001
"""MaxArraySize of slurm.conf where it is not set; sites raise it. slurmrestd does not report it."""


@dataclass(slots=True)
class FittedLimits:
    """The rules with their thresholds. A started job has its nodes, so it is only compared with earlier jobs."""

    thresholds: Thresholds = field(default_factory=Thresholds)
    _last: tuple[Machine, Capacity] | None = field(default=None, repr=False, compare=False)

    def assess(self, jobs: pl.DataFrame, known: Known, *, stage: Stage) -> list[Parts]:
        if not jobs.height:
            return []
        features = known.features(jobs, stage=stage, names=READ)
        if stage is not Stage.SUBMIT:
            by_row = _by_row(past_usage_breaches(jobs, features, self.thresholds), jobs.height)
            return [_parts(breaches, None, {}) for breaches in by_row]
        submissions = read_submissions(known, jobs[["script", "submit_line"]].rows())
        missing: list[dict[str, str]] = [{} for _ in submissions]
        release = known.machine.release if known.machine else None
        by_row = _by_row(self._of_request(jobs, features, submissions, release), jobs.height)
        if known.machine is None or not known.machine.partitions:
            missing = [{NAME: _NO_MACHINE} for _ in submissions]
        else:
            capacity = self._capacity(known.machine)
            on_machine, missing = _of_machine(jobs, features, submissions, capacity)
            by_row = [local + general for local, general in zip(on_machine, by_row, strict=True)]
            for row, submission in enumerate(submissions):
                if submission and len(submission.script.components) > 1 and not jobs["job_id"][row]:
                    by_row[row] += _of_components(jobs[row], features[row], submission, row, capacity)
            for row, breaches in enumerate(by_row):
                if any(breach.change for breach in breaches):
                    check = partial(_of_one_job, features=features[row], capacity=capacity)
                    by_row[row] = with_valid_changes(jobs[row], submissions[row], breaches, check)
        return [_parts(*each) for each in zip(by_row, submissions, missing, strict=True)]

    def explain(self, job: pl.DataFrame, known: Known, *, stage: Stage) -> Parts:
        return self.assess(job, known, stage=stage)[0]

    def save(self, folder: Path) -> None:
        document = {"version": VERSION, "thresholds": asdict(self.thresholds)}
        (folder / _FILE).write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", "utf-8")

    def _of_request(
        self,
        jobs: pl.DataFrame,
        features: pl.DataFrame,
        submissions: Sequence[Submission | None],
        release: tuple[int, int] | None,
    ) -> Iterator[Breach]:
        """Rules that need no machine, only the release of Slurm."""
        yield from past_usage_breaches(jobs, features, self.thresholds)
        jobs = jobs[["job_id", "work_dir"]]
        for row, (submission, (number, work_dir)) in enumerate(zip(submissions, jobs.rows(), strict=True)):
            if submission is not None:
                yield from contradictions(submission, row, release)
                yield from misread_lines(submission, row, accepted=bool(number))
                if not number:  # not submitted yet, so it is checked where it will be
                    yield from missing_folders(submission, row, work_dir)

    def _capacity(self, machine: Machine) -> Capacity:
        """Computed once per machine, not for every job."""
        if self._last is None or self._last[0] is not machine:
            self._last = (machine, Capacity.of(machine))
        return self._last[1]


@dataclass(frozen=True, slots=True)
class Limits:
    """Rules; there is nothing to learn."""

    name: str = NAME
    stages: Sequence[Stage] = (Stage.SUBMIT, Stage.START)
    learns: bool = False
    needs: Collection[Need] = (Need.OWN_HISTORY, Need.SCRIPTS, Need.MACHINE)

    def fit(
        self, jobs: pl.DataFrame, known: Known, *, stage: Stage, seed: int, budget: Budget
    ) -> FittedLimits:
        del jobs, known, stage, seed, budget  # the contract hands them; rules have no use for them
        return FittedLimits()

    def load(self, folder: Path) -> FittedLimits:
        path = folder / _FILE
        document = read_document(path, version=VERSION, next_step=f"fit the detector {NAME} again")
        return FittedLimits(_thresholds(document.get("thresholds"), path))


def _thresholds(values: Any, path: Path) -> Thresholds:
    known = {entry.name for entry in fields(Thresholds)}
    numbers = isinstance(values, dict) and all(type(value) in (int, float) for value in values.values())
    if not numbers or set(values) != known:
        raise ModelError(f"{path} does not hold the thresholds {', '.join(sorted(known))}; fit {NAME} again")
    return Thresholds(**values)


def _of_machine(
    jobs: pl.DataFrame, features: pl.DataFrame, submissions: Sequence[Submission | None], capacity: Capacity
) -> tuple[list[list[Breach]], list[dict[str, str]]]:
    """For each job the breaches that no partition avoids, and what was not checked."""
    missing: list[dict[str, str]] = [{} for _ in submissions]
    wanted = with_default_qos(demands(jobs, submissions, capacity.default), capacity.machine).with_columns(
        has_run_here=pl.lit(has_run_here(features)).gather(pl.col("row"))
    )
    if wanted["partition"].null_count():
        for row in wanted.filter(pl.col("partition").is_null())["row"]:
            missing[row][NAME] = _NO_PARTITION
        wanted = wanted.filter(pl.col("partition").is_not_null())
    for part, rows, reason in _not_checked(wanted, capacity):
        for row in rows:
            missing[row][f"{NAME}.{part}"] = reason
    known = wanted.join(capacity.limits, on="partition", how="inner", maintain_order="left")
    found = _by_row(
        (
            *unknown_partitions(wanted, capacity),
            *partition_breaches(known, capacity),
            *node_breaches(known, capacity),
            *node_list_breaches(known, capacity),
            *feature_breaches(known, capacity),
            *preference_breaches(submissions, capacity),
            *array_breaches(jobs, capacity),
            *access_breaches(known, capacity),
            *gres_breaches(submissions, capacity.machine),
        ),
        jobs.height,
    )
    partitions: dict[int, list[str]] = {}
    for row, name in wanted[["row", "partition"]].rows():
        if found[row]:
            partitions.setdefault(row, []).append(name)
    return [
        unavoidable(breaches, partitions.get(row, ())) if breaches else []
        for row, breaches in enumerate(found)
    ], missing


def _of_components(
    job: pl.DataFrame, features: pl.DataFrame, submission: Submission, row: int, capacity: Capacity
) -> Iterator[Breach]:
    """The breaches of each component of a heterogeneous job that is not submitted yet."""
    first = submission.script.request
    for index, component in enumerate(components(submission)):
        values = {**dict.fromkeys(first), **component.script.request}
        values |= {name: first.get(name) for name in ("account", "qos") if not values.get(name)}
        asked = job.with_columns(
            pl.lit(value, job.schema[name]).alias(name)
            for name, value in values.items()
            if name in job.schema
        )
        found = [*_of_one_job(asked, component, features=features, capacity=capacity)]
        for breach in (*found, *contradictions(component, row, capacity.machine.release)):
            yield replace(breach, row=row, change=None, text=f"component {index}: {breach.text}")


def _of_one_job(
    job: pl.DataFrame, submission: Submission | None, *, features: pl.DataFrame, capacity: Capacity
) -> Sequence[Breach]:
    return _of_machine(job, features, [submission], capacity)[0][0]


def _not_checked(demand: pl.DataFrame, capacity: Capacity) -> Iterator[tuple[str, pl.Series, str]]:
    """Parts of requests that could not be compared because the machine does not report its side."""
    machine = capacity.machine
    dark = [name for name, nodes in capacity.nodes.items() if not nodes]
    if dark:
        reason = "the nodes of the partition are unknown; CPUs, memory, GPUs and features were not compared"
        yield "nodes", demand.filter(pl.col("partition").is_in(dark))["row"], reason
    if machine.max_array_size is None:
        asked = demand.filter(pl.col("array").is_not_null(), pl.col("job_id") == 0)  # it accepted the others
        large = [highest_index(array) >= _DEFAULT_ARRAY_SIZE for array in asked["array"]]
        yield "array", asked.filter(pl.Series(large, dtype=pl.Boolean))["row"], _NO_ARRAY_SIZE
    for part, column in _READ_FOR_A_USER.items():
        if part in machine.missing:
            yield part, demand.filter(pl.col(column).is_not_null())["row"], machine.missing[part]


def _by_row(breaches: Sequence[Breach] | Iterator[Breach], height: int) -> list[list[Breach]]:
    rows: list[list[Breach]] = [[] for _ in range(height)]
    for breach in breaches:
        rows[breach.row].append(breach)
    return rows


def _parts(breaches: Sequence[Breach], submission: Submission | None, missing: dict[str, str]) -> Parts:
    if not breaches:
        return Parts(missing=missing)
    return Parts(findings=_findings(breaches), advice=advice(breaches, submission), missing=missing)


def _findings(breaches: Sequence[Breach]) -> list[Finding]:
    """One for each kind, worst first; the same in other partitions becomes evidence."""
    kinds: dict[str, list[Breach]] = {}
    for breach in sorted(breaches, key=lambda b: b.level is not Level.CRITICAL):
        kinds.setdefault(breach.kind, []).append(breach)
    return [
        Finding(
            detector=NAME,
            kind=kind,
            level=same[0].level,
            text=same[0].sentence,
            evidence=list(dict.fromkeys([*same[0].evidence, *(other.sentence for other in same[1:])])),
        )
        for kind, same in kinds.items()
    ]


DETECTOR = Limits()
