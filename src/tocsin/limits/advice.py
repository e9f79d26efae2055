"""Advice from breaches: one change per field, and only changes with which the job passes the limits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tocsin.core.verdict import Advice, Level
from tocsin.limits.breach import Breach
from tocsin.limits.demand import Request
from tocsin.limits.node_files import with_node_files
from tocsin.scripts.changes import change_edit, change_text
from tocsin.scripts.request import Value
from tocsin.scripts.submission import Submission, edited

__all__ = ["Check", "advice", "with_valid_changes"]

Check = Callable[[Request, Submission | None], Sequence[Breach]]
"""The breaches of one job."""


def with_valid_changes(
    request: Request, submission: Submission | None, breaches: Sequence[Breach], check: Check
) -> list[Breach]:
    """The same breaches, without changes that contradict each other or with which the job still breaks a limit."""
    changes: dict[str, Value] = {}
    disputed: set[str] = set()
    for field, value in (breach.change for breach in breaches if breach.change):
        if changes.setdefault(field, value) != value and not _same_source(breaches, field):
            disputed.add(field)
    fitting = {field: value for field, value in changes.items() if field not in disputed}
    if fitting:
        accepted = {b.kind for b in breaches if b.change is None}
        left = check(*_changed(request, submission, fitting))
        if any(b.level is Level.CRITICAL and b.kind not in accepted for b in left):
            fitting = {}
    return [b if b.change is None or b.change[0] in fitting else _without_change(b) for b in breaches]


def _same_source(breaches: Sequence[Breach], field: str) -> bool:
    """Several partitions may allow different values: the first is used."""
    return all(b.partition is not None for b in breaches if b.change and b.change[0] == field)


def _without_change(breach: Breach) -> Breach:
    if breach.partition is None:  # earlier jobs needed more than this partition allows
        return replace(breach, change=None, remedy=f"{breach.remedy} in a partition that allows it")
    return replace(breach, change=None, remedy="request less, or use another partition")


def _changed(
    request: Request, submission: Submission | None, changes: Mapping[str, Value]
) -> tuple[Request, Submission | None]:
    """The job as it would be submitted with these changes."""
    values: dict[str, Value | None] = dict(changes)
    for field, value in changes.items():
        submission = submission and (edited(submission, field, value) or submission)
    if submission and len(submission.script.components) == 1:
        values |= {name: value for name, value in submission.script.request.items() if name not in changes}
    width = values.get("cpus_per_task", request["cpus_per_task"])
    if "cpus_per_task" in changes and request["req_cpus"] and isinstance(width, int):
        tasks = request["req_tasks"] or max(request["req_cpus"] // (request["cpus_per_task"] or 1), 1)
        values["req_cpus"] = tasks * width
    return with_node_files({**request, **values}, submission)


def advice(breaches: Sequence[Breach], submission: Submission | None) -> list[Advice]:
    """The change that fits, once per field, with the line of the script if known."""
    fitting: dict[str, Breach] = {}
    for breach in breaches:
        if breach.change:
            fitting.setdefault(breach.change[0], breach)
    return [
        Advice(
            change=change_text(submission, *breach.change),
            why=breach.sentence,
            edit=change_edit(submission, *breach.change),
            field=breach.change[0],
        )
        for breach in fitting.values()
        if breach.change
    ]
