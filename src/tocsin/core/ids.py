"""Slurm's job ids as text, and the permanent key of a job."""

import re
from typing import NamedTuple

from tocsin.core.errors import UnitError

__all__ = [
    "CLUSTER",
    "LONGEST_CLUSTER",
    "JobKey",
    "SlurmId",
    "array_size",
    "array_tasks",
    "parse_key",
    "parse_slurm_id",
]

LONGEST_CLUSTER = 60
CLUSTER = rf"[^:\s/.\x00-\x1f\x7f][^:\s/\x00-\x1f\x7f]{{0,{LONGEST_CLUSTER - 1}}}"
"""The pattern of a cluster's name. It is also the name of a folder, so it must not lead to another one."""


class JobKey(NamedTuple):
    """A requeued job keeps its id and gets a new submit instant; task is None for plain jobs and whole arrays."""

    cluster: str
    job_id: int
    task: int | None
    submit: int

    def __str__(self) -> str:
        task = "" if self.task is None else f"_{self.task}"
        return f"{self.cluster}:{self.job_id}{task}@{self.submit}"


class SlurmId(NamedTuple):
    """The parts of a printed id: `123_4`, `123_[1-9%2]`, `123+1`, `123.batch`."""

    job_id: int
    task: int | None = None
    array: str | None = None
    het_offset: int | None = None
    step: str | None = None


_ID = re.compile(
    r"(?P<job>\d{1,18})"
    r"(?:_(?:(?P<task>\d{1,10})|\[(?P<array>[0-9,:%.-]{1,100000})\])|\+(?P<het>\d{1,6}))?"
    r"(?:\.(?P<step>[A-Za-z0-9_]{1,64}(?:\+\d{1,6})?))?",
    re.ASCII,
)
_KEY = re.compile(
    rf"(?P<cluster>{CLUSTER}):(?P<job>\d{{1,18}})(?:_(?P<task>\d{{1,10}}))?@(?P<submit>\d{{1,18}})", re.ASCII
)


def parse_slurm_id(text: str) -> SlurmId:
    """
    >>> parse_slurm_id("123_[1-9%2]")
    SlurmId(job_id=123, task=None, array='1-9%2', het_offset=None, step=None)
    """
    found = _ID.fullmatch(text.strip())
    if not found:
        raise UnitError(f'"{text[:80]}" is not a job id; write 123, 123_4, 123_[1-9], 123+1 or 123.batch')
    return SlurmId(
        job_id=int(found["job"]),
        task=None if found["task"] is None else int(found["task"]),
        array=found["array"],
        het_offset=None if found["het"] is None else int(found["het"]),
        step=found["step"],
    )


def parse_key(text: str) -> JobKey:
    """
    >>> parse_key("lab:17_4@1794775393").task
    4
    """
    found = _KEY.fullmatch(text.strip())
    if not found:
        raise UnitError(
            f'"{text[:80]}" is not a job key; write cluster:id[_task]@submit, such as lab:17_4@1794775393'
        )
    task = None if found["task"] is None else int(found["task"])
    return JobKey(found["cluster"], int(found["job"]), task, int(found["submit"]))


_RANGE = re.compile(r"(\d{1,10})(?:-(\d{1,10})(?::(\d{1,10}))?)?", re.ASCII)


def array_size(spec: str) -> int:
    """The number of tasks of `1-9`, `0-20:4`, `1,3,5-7%2`, without listing them. An elided tail (`...`) is not counted.

    >>> array_size("1-9%2"), array_size("0-20:4"), array_size("1,3,5-7")
    (9, 6, 5)
    """
    return sum(len(tasks) for tasks in _ranges(spec))


def array_tasks(spec: str) -> list[int]:
    """The tasks one by one; check `array_size` first.

    >>> array_tasks("1,3,5-7%2")
    [1, 3, 5, 6, 7]
    """
    return [task for tasks in _ranges(spec) for task in tasks]


def _ranges(spec: str) -> list[range]:
    found = []
    for item in spec.strip().strip("[]").partition("%")[0].split(","):
        if item in ("", "..."):
            continue
        match = _RANGE.fullmatch(item)
        if not match:
            raise UnitError(
                f'"{item}" in the array "{spec[:80]}" is not a task or range; write 1-9, 0-20:4 or 1,3,5'
            )
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if step == 0 or last < first:
            raise UnitError(f'the range "{item}" in the array "{spec[:80]}" has no tasks')
        found.append(range(first, last + 1, step))
    return found
