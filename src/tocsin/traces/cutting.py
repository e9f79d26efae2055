"""Cuts samples into windows of one length, for each CPU and for each job on a node.

Windows end at whole multiples of the stride, so all CPUs of a node share their instants and a repeated cut gives the
same windows. Values are never rescaled by the data.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from tocsin.core.channels import CPU_CHANNELS, JOB_CHANNELS
from tocsin.core.frames import WINDOWS
from tocsin.core.units import MAX_INSTANT
from tocsin.traces.points import MOST_CPUS, Points, binned, enum, named, ordered, possible
from tocsin.traces.windows import Windows

__all__ = ["KEYS", "Cut", "cut", "cut_counted"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]

KEYS = pl.Schema(
    {"raw": pl.String(), "node": pl.String(), "start": pl.Int64(), "end": pl.Int64(), "key": pl.String()}
)
"""Which job a raw id was: from `start` to `end` (null: still running), on one node or on all (null)."""

_MOST_GAPS = 0.1  # share of a window's points that may repeat the point before
_SAME_JOB = 0.9  # share of a window's points that one job must have


class Cut(NamedTuple):
    """Windows, and what was dropped."""

    windows: pl.DataFrame
    dropped: Counter[str]
    """Windows by reason: `gaps`, `job changed`."""
    duplicates: int
    """Samples of a second with a later sample; the last counts."""
    invalid: int
    """Samples without an instant, or with impossible values."""


def cut(
    cpus: pl.DataFrame,
    jobs: pl.DataFrame | None = None,
    *,
    length: int = 100,
    stride: int = 10,
    interval: int = 1,
    until: int | None = None,
    keys: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """The WINDOWS of CPU_SAMPLES and JOB_SAMPLES. `length` and `stride` are points of `interval` seconds.

    No sample later than `until` is used. With `keys` (form: KEYS), jobs get their keys, and unknown ones become null;
    without, they keep the raw id.
    """
    return cut_counted(
        cpus, jobs, length=length, stride=stride, interval=interval, until=until, keys=keys
    ).windows


def cut_counted(
    cpus: pl.DataFrame,
    jobs: pl.DataFrame | None = None,
    *,
    length: int = 100,
    stride: int = 10,
    interval: int = 1,
    until: int | None = None,
    keys: pl.DataFrame | None = None,
) -> Cut:
    """As `cut`, with counts of what was dropped."""
    if length < 1 or stride < 1 or interval < 1:
        raise ValueError(f"length {length}, stride {stride} and interval {interval} must be at least 1")
    spacing = _Spacing(length, stride, interval)
    found = [_cut(cpus, CPU_CHANNELS, spacing, until)]
    if jobs is not None:
        found.append(_cut(jobs, JOB_CHANNELS, spacing, until))
    windows = pl.concat([part.windows for part in found])
    return Cut(
        windows if keys is None else _with_keys(windows, keys, length * interval),
        sum((part.dropped for part in found), Counter[str]()),
        sum(part.duplicates for part in found),
        sum(part.invalid for part in found),
    )


class _Spacing(NamedTuple):
    length: int
    stride: int
    interval: int

    @property
    def most_gaps(self) -> int:
        return int(self.length * _MOST_GAPS)

    def ends(self, first: Ints, last: Ints) -> Ints:
        """How many windows end in [first, last]."""
        count: Ints = np.maximum(0, last // self.stride - (first - 1) // self.stride)
        return count


def _cut(samples: pl.DataFrame, channels: Sequence[str], spacing: _Spacing, until: int | None) -> Cut:
    of_cpus = channels == CPU_CHANNELS
    valid = samples.filter(possible(of_cpus))
    invalid = samples.height - valid.height
    if until is not None:
        valid = valid.filter(pl.col("at") <= until)
    names = [enum(valid, "node"), enum(valid, "job")]
    width = MOST_CPUS if of_cpus else max(1, len(names[1].categories))
    points, duplicates = ordered(valid, channels, names, width)
    points = binned(points, spacing.interval)
    windows, dropped = _windows(points, spacing)
    series, job = points.series[windows.sample], points.job[windows.sample]
    index = pl.DataFrame(
        {
            "job": named(job if of_cpus else series % width, names[1]),
            "node": named(series // width, names[0]),
            "cpu": pl.Series(series % width, dtype=pl.Int32)
            if of_cpus
            else pl.repeat(None, len(series), dtype=pl.Int32, eager=True),
            "at": windows.end * spacing.interval,
            "gaps": pl.Series(windows.gaps, dtype=pl.Int32),
        }
    )
    frame = Windows(windows.values, index, channels).to_frame()
    return Cut(frame.match_to_schema(WINDOWS), dropped, duplicates, invalid)


@dataclass(frozen=True, slots=True)
class _Segments:
    """Uninterrupted runs of points of one series; a point without a sample has the number of the one before."""

    first: Ints  # index of each segment's first point
    last: Ints
    offset: Ints  # of that point among all points
    sample: Ints  # number of the sample of each point
    gaps: Ints  # points before each point that have no sample of their own

    @classmethod
    def of(cls, points: Points, broken: Flags) -> "_Segments":
        """`broken`: whether a new one begins after each sample."""
        count = len(points.place)
        begin = np.flatnonzero(np.concatenate([np.ones(min(count, 1), bool), broken]))
        finish = np.append(begin[1:], count)[: len(begin)] - 1
        first, last = points.place[begin], points.place[finish]
        size = last - first + 1
        offset = np.cumsum(size) - size
        where = points.place + np.repeat(offset - first, finish - begin + 1)
        sample = np.zeros(int(size.sum()), np.int64)
        sample[where] = np.arange(count)
        own = np.zeros(len(sample), bool)
        own[where] = True
        gaps = np.concatenate([[0], np.cumsum(~own)])
        return cls(first, last, offset, np.maximum.accumulate(sample), gaps)

    def fill(self, values: Floats, most: int) -> Floats:
        """The values of all points. An unknown channel repeats the value before, at most `most` times."""
        if len(self.sample) > len(values):
            values = values[self.sample]
        unknown = ~np.isfinite(values)
        if not unknown.any():
            return values
        values = np.where(unknown, np.float32(np.nan), values)
        places = np.arange(len(values))
        begin = np.repeat(self.offset, self.last - self.first + 1)
        for channel in range(values.shape[1]):
            before = np.maximum.accumulate(np.where(unknown[:, channel], 0, places))
            near = unknown[:, channel] & (before >= begin) & (places - before <= most)
            values[near, channel] = values[before[near], channel]
        return values


class _Found(NamedTuple):
    values: Floats
    end: Ints
    gaps: Ints
    sample: Ints  # number of a sample of the window's series, with its job


def _windows(points: Points, spacing: _Spacing) -> tuple[_Found, Counter[str]]:
    """The windows, and how many were dropped by reason."""
    length, stride = spacing.length, spacing.stride
    other = np.diff(points.series) != 0
    broken = ~other & (np.diff(points.place) - 1 > spacing.most_gaps)
    lost = _lost(points.place[:-1][broken], points.place[1:][broken], spacing)
    segments = _Segments.of(points, other | broken)
    earliest = segments.first + length - 1
    number = spacing.ends(earliest, segments.last)
    of = np.repeat(np.arange(len(number)), number)
    nth = np.arange(len(of)) - np.repeat(np.cumsum(number) - number, number)
    end = (-(-earliest // stride) * stride)[of] + nth * stride
    start = end - length + 1 + (segments.offset - segments.first)[of]
    gaps = segments.gaps[start + length] - segments.gaps[start]
    few = np.flatnonzero(gaps <= spacing.most_gaps)
    point, steady = _steady_job(points.job[segments.sample], start[few], length)
    kept = few[steady]
    values = np.empty((0, length, points.values.shape[1]), np.float32)
    if len(kept):
        every = segments.fill(points.values, spacing.most_gaps)
        values = sliding_window_view(every, (length, every.shape[1]))[start[kept], 0]
    found = _Found(values, end[kept], gaps[kept], segments.sample[point[steady]])
    dropped = {"gaps": int(lost.sum()) + len(of) - len(few), "job changed": len(few) - len(kept)}
    return found, Counter({reason: count for reason, count in dropped.items() if count})


def _lost(before: Ints, after: Ints, spacing: _Spacing) -> Ints:
    """Windows with at least one sample on either side of a break, which no window may contain."""
    touching = spacing.ends(before + 1, after + spacing.length - 2)
    return touching - spacing.ends(before + spacing.length, after - 1)


def _steady_job(job: Ints, start: Ints, length: int) -> tuple[Ints, Flags]:
    """For each window, a point at which its job has the CPU, and whether it has enough of the window."""
    changes = np.concatenate([[0], np.cumsum(np.diff(job) != 0)]) if len(job) else np.zeros(1, np.int64)
    point = start + length - 1
    steady = np.ones(len(start), bool)
    changed = np.flatnonzero(changes[start + length - 1] != changes[start]) if len(start) else start
    for part in np.array_split(changed, len(changed) // 10_000 + 1):
        jobs = sliding_window_view(job, length)[start[part]] if len(part) else np.empty((0, length), np.int64)
        # A job that has most of the points has the middle one when they are sorted.
        middle = np.argsort(jobs, axis=1, kind="stable")[:, length // 2]
        point[part] = start[part] + middle
        steady[part] = (jobs == job[point[part]][:, None]).mean(axis=1) >= _SAME_JOB
    return point, steady


def _with_keys(windows: pl.DataFrame, keys: pl.DataFrame, seconds: int) -> pl.DataFrame:
    """The raw id becomes the key of the job that had it for most of the window."""
    overlap = pl.min_horizontal("at", pl.col("end").fill_null(MAX_INSTANT)) - pl.max_horizontal(
        pl.col("at") - seconds, "start"
    )
    # Each distinct (id, node, instant) once: there are as many windows as the job has CPUs.
    found = (
        windows.lazy()
        .select("job", "node", "at")
        .unique()
        .join(keys.lazy().rename({"node": "only"}), left_on="job", right_on="raw", how="inner")
        .filter((pl.col("only").is_null() | (pl.col("only") == pl.col("node"))) & (overlap > 0))
        .sort(overlap, "start")
        .unique(["job", "node", "at"], keep="last", maintain_order=True)
        .select("job", "node", "at", "key")
        .collect()
    )
    joined = windows.join(found, on=["job", "node", "at"], how="left", maintain_order="left")
    return joined.with_columns(pl.col("key").alias("job")).select(WINDOWS.names())
