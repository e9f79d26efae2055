"""When unusual windows raise an alarm, and the alarm in words: job, node, CPUs and channel."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from tocsin.core.channels import JOB_CHANNELS, MODES
from tocsin.core.ids import parse_key
from tocsin.core.verdict import Finding, Level

__all__ = ["NAME", "Alarm", "Direction", "finding", "in_a_row", "short_id", "spans", "together"]

NAME = "traces"
_MOST_NAMED = 4
"""Jobs and nodes that a message names; the rest are counted."""

_MODE_WORDS = {
    "user": "spent {} of the last {} s in user code",
    "system": "spent {} of the last {} s in the kernel",
    "iowait": "waited for I/O {} of the last {} s",
    "other": "been idle, or in modes such as irq and steal, {} of the last {} s",
}
_JOB_WORDS = {
    "cpu_user": "used {} CPUs in user code over the last {} s",
    "cpu_system": "used {} CPUs in the kernel over the last {} s",
    "cpu_throttled": "been throttled by its CPU quota {} of the last {} s",
    "memory": "held {} of memory over the last {} s",
    "page_faults": "had {} page faults per second over the last {} s",
    "major_page_faults": "had {} major page faults per second over the last {} s",
    "context_switches": "had {} context switches per second over the last {} s",
    "io_read": "read {} per second over the last {} s",
    "io_written": "written {} per second over the last {} s",
    "pressure_cpu": "waited for a CPU {} of the last {} s",
    "pressure_memory": "waited for memory {} of the last {} s",
    "pressure_io": "waited for I/O (pressure) {} of the last {} s",
    "gpu": "used its GPUs {} of the last {} s",
}
_WORDS = {**_MODE_WORDS, **_JOB_WORDS}
assert set(_WORDS) == {*MODES, *JOB_CHANNELS}, "each channel has its words"
_BYTES = frozenset({"memory", "io_read", "io_written"})
_NUMBERS = frozenset({"cpu_user", "cpu_system", "page_faults", "major_page_faults", "context_switches"})


class Direction(StrEnum):
    """How a channel differs from its expected values."""

    HIGH = "high"
    LOW = "low"
    IRREGULAR = "irregular"
    """Its mean is as expected, its shape is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """Windows of one job that raise an alarm for one channel."""

    job: str
    cpus: dict[str, list[int]]
    """The CPUs with an alarm, by node; none if the job's counters raise it."""
    channel: str
    direction: Direction
    observed: float
    """The channel's mean over the last window of these CPUs."""
    normal: float
    compared_with: str
    """What `normal` refers to: `jobs of this kind`, its siblings, other jobs, or what the model expects."""
    error: float
    threshold: float
    seconds: int
    """Length of a window."""
    since: int
    """The end of the first of the consecutive windows."""

    @property
    def kind(self) -> str:
        """The cause by which alarms are grouped."""
        return f"{self.direction}_{self.channel}"

    @property
    def text(self) -> str:
        many = sum(map(len, self.cpus.values())) > 1
        has = "have" if many else "has"
        words = _WORDS[self.channel].format(_shown(self.channel, self.observed), self.seconds)
        sentence = f"{self._where()} {has} {words}; {self.compared_with}: {_shown(self.channel, self.normal)}"
        return (
            f"{sentence} on average, but the pattern over time differs"
            if self.direction is Direction.IRREGULAR
            else sentence
        )

    @property
    def evidence(self) -> list[str]:
        return [f"{node}: CPU {spans(cpus)}" if cpus else node for node, cpus in self.cpus.items()]

    def _where(self) -> str:
        (first, cpus), *others = self.cpus.items()
        if not cpus:
            job = f"job {short_id(self.job)} on {first}"
            return f"{job} and {_count(len(others), 'more node')}" if others else job
        place = f"CPU {spans(cpus)} of {first}"
        more = sum(len(rest) for _, rest in others)
        return f"{place} and {_count(more, 'CPU')} of {_count(len(others), 'more node')}" if others else place


def finding(alarm: Alarm) -> Finding:
    """The alarm as a finding, for policy, sinks and exit codes."""
    return Finding(
        detector=NAME,
        kind=alarm.kind,
        level=Level.WARNING,
        text=alarm.text,
        score=alarm.error,
        threshold=alarm.threshold,
        evidence=alarm.evidence,
    )


def together(jobs: Sequence[str]) -> str:
    """A sentence about jobs whose alarms have one cause."""
    named = ", ".join(short_id(job) for job in jobs[:_MOST_NAMED])
    more = f" and {len(jobs) - _MOST_NAMED:,} more" if len(jobs) > _MOST_NAMED else ""
    return f"{len(jobs):,} jobs have this alarm at the same time: {named}{more}"


def in_a_row(scores: pl.DataFrame, stride: int) -> pl.Series:
    """For each window, how many consecutive ones up to it are unusual on its CPU, or for its job on the node.

    `scores` has `job`, `node`, `cpu`, `at` and `unusual`. One missing window in between does not break the run, two
    do.
    """
    place = ["job", "node", "cpu"]
    ordered = scores.with_row_index("row").sort(*place, "at", nulls_last=False)
    new_place = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in place)
    gap = pl.col("at") - pl.col("at").shift() > 2 * stride
    broken = (new_place | gap | ~pl.col("unusual") | ~pl.col("unusual").shift()).fill_null(True)
    numbered = ordered.with_columns(run=broken.cum_sum())
    length = pl.when("unusual").then(pl.int_range(pl.len()).over("run") + 1).otherwise(0)
    return numbered.with_columns(length.alias("in_a_row")).sort("row")["in_a_row"]


def short_id(job: str) -> str:
    """The id that Slurm shows.

    >>> short_id("lab:17_4@1794775393")
    '17_4'
    """
    key = parse_key(job)
    return f"{key.job_id}" if key.task is None else f"{key.job_id}_{key.task}"


def spans(numbers: Iterable[int]) -> str:
    """
    >>> spans([0, 1, 2, 3, 7, 9, 10])
    '0–3, 7, 9–10'
    """
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in found)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _shown(channel: str, value: float) -> str:
    if channel in _NUMBERS:
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    if channel not in _BYTES:
        return f"{100 * value:.0f} %"
    size, units = float(value), iter(("B", "KiB", "MiB", "GiB", "TiB", "PiB"))
    unit = next(units)
    while size >= 1024 and unit != "PiB":
        size, unit = size / 1024, next(units)
    return f"{size:.3g} {unit}"
