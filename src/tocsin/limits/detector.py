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
from tocsin.core.machine import DEFAULT_PARTITION, Machine
from tocsin.core.stages import Stage
from tocsin.core.verdict import Finding, Level
from tocsin.history.numbers import numbers_of
from tocsin.limits.access_rules import (
    access_breaches,
    association_breaches,
    default_qos,
    gpu_type_breaches,
    gres_breaches,
    setting_breaches,
    without_lifted,
)
from tocsin.limits.advice import Check, advice, with_valid_changes
from tocsin.limits.breach import Breach, Thresholds, unavoidable
from tocsin.limits.capacity import Capacity
from tocsin.limits.deadline_checks import default_time_breaches
from tocsin.limits.demand import Demand, Request, demands, requests
from tocsin.limits.name_rules import feature_breaches, node_list_breaches, preference_breaches
from tocsin.limits.node_files import empty_node_files, with_node_files
from tocsin.limits.node_rules import node_breaches
from tocsin.limits.partition_rules import (
    ENFORCED,
    array_breaches,
    highest_index,
    partition_breaches,
    unknown_partitions,
)
from tocsin.limits.past_usage import READ, History, has_run_here, past_usage_breaches
from tocsin.limits.release_checks import as_read
from tocsin.limits.script_checks import (
    contradictions,
    misread_lines,
    node_of_two_components,
    option_breach,
    past_deadline,
)
from tocsin.limits.submitter_checks import missing_files, missing_folders, not_for_users
from tocsin.models.files import read_document
from tocsin.scripts.scheduler import Scheduler
from tocsin.scripts.submission import Submission, components, read_submissions, without_environment

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
"""The parts of a cluster that are read for one user, and the column of a job that each limits."""
_OF_THE_JOB = ("job_id", "submit", "account", "qos", "group", "user", "work_dir", "script", "submit_line")
"""What the components of a heterogeneous job have in common."""
_NO_NODES = "the nodes of the partition are unknown; CPUs, memory, GPUs and features were not compared"
_NO_ARRAY_SIZE = "the largest allowed array index is unknown"
_AFTER_22_05 = (22, 6)
_DEFAULT_ARRAY_SIZE = 1001
"""MaxArraySize of slurm.conf if unset; sites raise it. slurmrestd does not report it."""


@dataclass(slots=True)
class FittedLimits:
    """The rules with their thresholds. A started job has its nodes, so it is only compared with earlier jobs."""

    thresholds: Thresholds = field(default_factory=Thresholds)
    _last: Capacity | None = field(default=None, repr=False, compare=False)

    def assess(self, jobs: pl.DataFrame, known: Known, *, stage: Stage) -> list[Parts]:
        if not jobs.height:
            return []
        asked = requests(jobs)
        history = numbers_of(known, jobs, stage=stage, names=READ).rows()
        past = [
            [*past_usage_breaches(row, request, seen, self.thresholds)]
            for row, (request, seen) in enumerate(zip(asked, history, strict=True))
        ]
        if stage is not Stage.SUBMIT:
            return [_parts(breaches, None, {}) for breaches in past]
        submissions = read_submissions(
            known, [(request["script"], request["submit_line"]) for request in asked]
        )
        if any(
            submission and not request["job_id"]
            for request, submission in zip(asked, submissions, strict=True)
        ):
            named = [with_node_files(*each) for each in zip(asked, submissions, strict=True)]
            asked, submissions = [request for request, _ in named], [submission for _, submission in named]
        by_row, missing = self._breaches(asked, history, submissions, past, known)
        for row, submission in enumerate(submissions):
            if submission and submission.environment:
                other = _without_environment(asked[row], submission)
                without, _ = self._breaches([other[0]], [history[row]], [other[1]], [[]], known)
                by_row[row] = [*_with_environment(by_row[row], past[row] + without[0], submission)]
        return [_parts(*each) for each in zip(by_row, submissions, missing, strict=True)]

    def _breaches(
        self,
        asked: Sequence[Request],
        history: Sequence[History],
        submissions: Sequence[Submission | None],
        past: Sequence[list[Breach]],
        known: Known,
    ) -> tuple[list[list[Breach]], list[dict[str, str]]]:
        """For each job that is not started yet, all breaches and what was not checked."""
        missing: list[dict[str, str]] = [{NAME: _NO_MACHINE} for _ in submissions]
        release = known.machine.release if known.machine else None
        operator = known.machine.operator if known.machine else None
        submissions = [submission and as_read(submission, release) for submission in submissions]
        by_row = [
            [*earlier, *_of_script(row, request, submission, release, operator)]
            for row, (earlier, request, submission) in enumerate(zip(past, asked, submissions, strict=True))
        ]
        if known.machine is not None and known.machine.partitions:
            capacity = self._capacity(known.machine)
            on_machine, missing = _of_machine(asked, history, submissions, capacity)
            by_row = [local + general for local, general in zip(on_machine, by_row, strict=True)]
            for row, (request, seen, submission) in enumerate(zip(asked, history, submissions, strict=True)):
                check = partial(_of_one_job, history=seen, capacity=capacity)
                if submission and len(submission.script.components) > 1 and not request["job_id"]:
                    # Next to the machine, each component is a request of its own.
                    by_row[row] = [b for b in by_row[row] if b not in on_machine[row]]
                    by_row[row] += _of_components(request, submission, row, check, release)
                if any(breach.change for breach in by_row[row]):
                    by_row[row] = with_valid_changes(request, submission, by_row[row], check)
        return by_row, missing

    def explain(self, job: pl.DataFrame, known: Known, *, stage: Stage) -> Parts:
        return self.assess(job, known, stage=stage)[0]

    def save(self, folder: Path) -> None:
        document = {"version": VERSION, "thresholds": asdict(self.thresholds)}
        (folder / _FILE).write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", "utf-8")

    def _capacity(self, machine: Machine) -> Capacity:
        """Computed once for the nodes and partitions of a machine, not for every job or user."""
        last = self._last
        if (
            last is None
            or last.machine.nodes is not machine.nodes
            or last.machine.partitions is not machine.partitions
            or last.machine.missing != machine.missing
        ):
            self._last = last = Capacity.of(machine)
        return last if last.machine is machine else replace(last, machine=machine)


@dataclass(frozen=True, slots=True)
class Limits:
    """Rules; there is nothing to train."""

    name: str = NAME
    stages: Sequence[Stage] = (Stage.SUBMIT, Stage.START)
    learns: bool = False
    needs: Collection[Need] = (Need.OWN_HISTORY, Need.SCRIPTS, Need.MACHINE)

    def fit(
        self, jobs: pl.DataFrame, known: Known, *, stage: Stage, seed: int, budget: Budget
    ) -> FittedLimits:
        del jobs, known, stage, seed, budget  # part of the contract, but rules do not need them
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


def _of_script(
    row: int,
    request: Request,
    submission: Submission | None,
    release: tuple[int, int] | None,
    operator: bool | None,
) -> Iterator[Breach]:
    """Rules that need no machine, only the release of Slurm and the rights of the user."""
    if submission is None:
        return
    yield from contradictions(submission, row, release)
    yield from misread_lines(submission, row, accepted=bool(request["job_id"]))
    if not request["job_id"]:  # not submitted yet, so it is checked where it will be
        yield from missing_folders(submission, row, request["work_dir"])
        yield from missing_files(submission, row, request["work_dir"], request["user"])
        yield from empty_node_files(submission, row, request)
        if submission.script.scheduler is Scheduler.SLURM:
            yield from not_for_users(submission, row, request["user"], operator)
            yield from past_deadline(submission, row, request["submit"])


def _of_machine(
    asked: Sequence[Request],
    history: Sequence[History],
    submissions: Sequence[Submission | None],
    capacity: Capacity,
) -> tuple[list[list[Breach]], list[dict[str, str]]]:
    """For each job, the breaches that no partition avoids, and what was not checked."""
    missing: list[dict[str, str]] = [{} for _ in submissions]
    qos = default_qos(capacity.machine)
    wanted: list[Demand] = []
    for demand in demands(asked, submissions, capacity.default, capacity.machine.release):
        if demand["partition"] is None:
            why = capacity.machine.missing.get(DEFAULT_PARTITION)
            missing[demand["row"]][NAME] = f"{_NO_PARTITION} ({why})" if why else _NO_PARTITION
            continue
        demand["has_run_here"] = has_run_here(history[demand["row"]])
        release = capacity.machine.release
        if capacity.machine.cpus_by != "core" or release is None or release >= _AFTER_22_05:
            demand["core_memory"] = 0  # not compared with newer releases
        if demand["qos"] is None:
            demand["qos"] = qos.get(demand["account"])
        wanted.append(demand)
    for part, row, reason in _not_checked(wanted, capacity):
        missing[row][f"{NAME}.{part}"] = reason
    known = [
        without_lifted({**demand, **limits}, capacity)
        for demand in wanted
        if (limits := capacity.limits.get(demand["partition"]))
    ]
    found = _by_row(
        (
            *unknown_partitions(wanted, capacity),
            *partition_breaches(known, capacity),
            *node_breaches(known, capacity),
            *node_list_breaches(known, capacity),
            *feature_breaches(known, capacity),
            *preference_breaches(submissions, capacity),
            *array_breaches(asked, capacity),
            *access_breaches(known, capacity),
            *default_time_breaches(known, submissions, capacity),
            *association_breaches(wanted, capacity.machine),
            *gres_breaches(submissions, capacity.machine),
            *gpu_type_breaches(submissions, capacity.machine),
            *setting_breaches(submissions, capacity.machine),
        ),
        len(asked),
    )
    partitions: dict[int, list[str]] = {}
    for demand in wanted:
        partitions.setdefault(demand["row"], []).append(demand["partition"])
    everywhere = ENFORCED if capacity.machine.all_partitions else frozenset[str]()
    return [
        unavoidable(breaches, partitions.get(row, ()), everywhere) if breaches else []
        for row, breaches in enumerate(found)
    ], missing


def _of_components(
    request: Request, submission: Submission, row: int, check: Check, release: tuple[int, int] | None
) -> Iterator[Breach]:
    """The breaches of each component of a heterogeneous job that is not submitted yet."""
    first = submission.script.request
    if submission.last("--array"):
        text = "is an array of jobs with several components; remove --array, or submit the components as jobs"
        yield option_breach(submission, row, "array_of_components", text, "--array")
    parts = components(submission)
    if shared := node_of_two_components(parts):
        yield option_breach(submission, row, "node_of_two_components", shared, "--nodelist", "--exclude")
    for index, component in enumerate(parts):
        # The defaults in `request` are those of the first component.
        values = {name: request[name] if name in _OF_THE_JOB else None for name in request}
        values |= component.script.request
        values |= {name: first.get(name) for name in ("account", "qos") if not values.get(name)}
        found = check(values, component)
        for breach in (*found, *contradictions(component, row, release)):
            yield replace(breach, row=row, change=None, text=f"component {index}: {breach.text}")


def _of_one_job(
    request: Request, submission: Submission | None, *, history: History, capacity: Capacity
) -> Sequence[Breach]:
    return _of_machine([request], [history], [submission], capacity)[0][0]


def _not_checked(wanted: Sequence[Demand], capacity: Capacity) -> Iterator[tuple[str, int, str]]:
    """Parts of requests that could not be compared because the machine does not report its side."""
    machine = capacity.machine
    dark = {name for name, nodes in capacity.nodes.items() if not nodes}
    unread = {part: column for part, column in _READ_FOR_A_USER.items() if part in machine.missing}
    for demand in wanted:
        row = demand["row"]
        if demand["partition"] in dark:
            yield "nodes", row, _NO_NODES
        # Slurm accepted the array of a job that has an id
        if (
            machine.max_array_size is None
            and demand["array"] is not None
            and not demand["job_id"]
            and highest_index(demand["array"]) >= _DEFAULT_ARRAY_SIZE
        ):
            yield "array", row, _NO_ARRAY_SIZE
        for part, column in unread.items():
            if demand[column] is not None:
                yield part, row, machine.missing[part]


def _by_row(breaches: Sequence[Breach], height: int) -> list[list[Breach]]:
    rows: list[list[Breach]] = [[] for _ in range(height)]
    for breach in breaches:
        rows[breach.row].append(breach)
    return rows


def _parts(breaches: Sequence[Breach], submission: Submission | None, missing: dict[str, str]) -> Parts:
    if not breaches:
        return Parts(missing=missing)
    return Parts(findings=_findings(breaches), advice=advice(breaches, submission), missing=missing)


def _without_environment(request: Request, submission: Submission) -> tuple[Request, Submission | None]:
    plain = without_environment(submission)
    set_by_options = {name for name in submission.script.request if name in request}
    values = {name: plain.script.request.get(name) for name in set_by_options}
    return with_node_files({**request, **values}, plain)


def _with_environment(
    breaches: Sequence[Breach], without: Sequence[Breach], submission: Submission
) -> Iterator[Breach]:
    """The variables that sbatch reads are named where there would be no breach without them."""
    given = {d.source: (d.value or "")[:60] for d in submission.environment}
    note = f" (in the environment: {', '.join(f'{name}={value}' for name, value in given.items())})"
    anyway = {breach.text for breach in without}
    for breach in breaches:
        if breach.text in anyway or breach.variable:
            yield breach
        elif breach.remedy:
            yield replace(breach, remedy=breach.remedy + note)
        else:
            yield replace(breach, text=breach.text + note)


def _findings(breaches: Sequence[Breach]) -> list[Finding]:
    """One per kind, worst first; the same breach in other partitions becomes evidence."""
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
