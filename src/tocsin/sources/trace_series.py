"""Converts series of metrics to samples of CPUs and jobs, by a mapping."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from tocsin.core.channels import CPU_CHANNELS, JOB_CHANNELS
from tocsin.core.frames import CPU_SAMPLES, JOB_SAMPLES, Samples
from tocsin.core.units import MAX_INSTANT
from tocsin.sources.trace_mapping import CpuMetric, JobLabel, TraceMapping
from tocsin.sources.trace_rates import POINTS, rates

__all__ = ["Series", "TraceBatch", "samples_of", "series_of"]

_MOST_CPUS = 1 << 16


class TraceBatch(NamedTuple):
    """Samples to store, and the instant up to which the source has been read with them."""

    samples: Samples
    until: int
    done: int
    """For a progress bar: seconds, files …"""
    of: int


@dataclass(frozen=True, slots=True)
class Series:
    """The series of one metric: their labels by number (`series`, then a column for each label), and their POINTS."""

    labels: pl.DataFrame
    points: pl.DataFrame

    def label(self, names: Sequence[str]) -> pl.Expr:
        """The first of these labels that a series has with a non-empty value."""
        there = [pl.col(name).replace("", None) for name in names if name in self.labels.columns]
        return pl.coalesce(there) if there else pl.lit(None, pl.String)

    def job(self, where: JobLabel) -> pl.Expr:
        there = [
            pl.col(name).str.extract(where.pattern) for name in where.labels if name in self.labels.columns
        ]
        return pl.coalesce(there) if there else pl.lit(None, pl.String)


@dataclass(slots=True)
class _Work:
    mapping: TraceMapping
    step: int
    counts: Counter[str] = field(default_factory=Counter)


def series_of(result: Any, counts: Counter[str]) -> Series:
    """The `result` of a query_range reply (a matrix). Invalid series and points are skipped and counted."""
    labels: list[dict[str, str]] = []
    numbers, at, values = list[np.ndarray[Any, Any]](), list[Any](), list[Any]()
    for one in result if isinstance(result, list) else []:
        metric = one.get("metric") if isinstance(one, dict) else None
        points = one.get("values") if isinstance(one, dict) else None
        if not isinstance(metric, dict) or not isinstance(points, list):
            counts["invalid series"] += 1
            continue
        good = [pair for pair in points if isinstance(pair, list) and len(pair) == 2]
        counts["invalid points"] += len(points) - len(good)
        labels.append({str(name): str(value) for name, value in metric.items() if name != "series"})
        numbers.append(np.full(len(good), len(labels) - 1, np.int64))
        at += [pair[0] for pair in good]
        values += [pair[1] for pair in good]
    names = sorted({name for one in labels for name in one})
    table = pl.DataFrame(
        {"series": pl.Series(range(len(labels)), dtype=pl.Int64)}
        | {name: pl.Series([one.get(name) for one in labels], dtype=pl.String) for name in names}
    )
    number = np.concatenate(numbers) if numbers else np.empty(0, np.int64)
    points = pl.DataFrame({"series": number, "at": _numbers(at), "value": _numbers(values)}, schema=POINTS)
    usable = points.filter(pl.col("at").is_between(0, MAX_INSTANT) & pl.col("value").is_finite())
    counts["invalid points"] += points.height - usable.height
    return Series(table, usable)


def _numbers(values: list[Any]) -> "np.ndarray[Any, Any]":
    try:
        return np.array(values, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        return np.array([_number(value) for value in values], dtype=np.float64)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (ValueError, TypeError, OverflowError):
        return float("nan")


def samples_of(
    read: Callable[[str], Series], mapping: TraceMapping, *, step: int, counts: Counter[str]
) -> Samples:
    """The samples of a time span; `read` returns the series of a metric. Resets of counters are counted."""
    work = _Work(mapping, step, counts)
    found: dict[str, Series] = {}

    def once(metric: str) -> Series:
        if metric not in found:
            found[metric] = read(metric)
        return found[metric]

    cpus = _cpus(work, once(mapping.cpus.metric), mapping.cpus) if mapping.cpus else CPU_SAMPLES.to_frame()
    if mapping.cpu_jobs and mapping.cpus:
        cpus = _with_jobs(work, cpus, once(mapping.cpu_jobs.metric))
    return Samples(cpus, _jobs(work, once))


def _node(series: Series, mapping: TraceMapping) -> pl.Expr:
    """`n1.example.org:9100` → `n1`; an IP address is kept."""
    host = series.label(mapping.node).str.replace(r":\d+$", "")
    address = host.str.contains(r"^[0-9.]+$|:")
    return pl.when(address).then(host).otherwise(host.str.extract(r"^([^.]*)"))


def _second() -> pl.Expr:
    return pl.col("at").round().cast(pl.Int64)


def _cpus(work: _Work, series: Series, how: CpuMetric) -> pl.DataFrame:
    place = series.labels.select(
        "series",
        _node(series, work.mapping).alias("node"),
        series.label([how.cpu]).cast(pl.Int32, strict=False).alias("cpu"),
        series.label([how.mode]).alias("mode"),
        (series.job(how.job) if how.job else pl.lit(None, pl.String)).alias("job"),
    )
    points = _cpu_shares(work, series.points, place, how)
    rows = points.join(place, on="series").with_columns(at=_second())
    usable = rows.filter(pl.col("node").is_not_null() & pl.col("cpu").is_between(0, _MOST_CPUS))
    work.counts["invalid points"] += rows.height - usable.height
    among = {name: pl.col("mode").is_in(list(how.modes[name])) for name in CPU_CHANNELS}
    grouped = usable.group_by("node", "cpu", "at", "job", maintain_order=True).agg(
        *(pl.col("share").filter(mine).sum().alias(name) for name, mine in among.items()),
        known=pl.col("share").is_not_null().all() & pl.all_horizontal(mine.any() for mine in among.values()),
        total=pl.col("share").sum(),
        modes=pl.len(),
        even=pl.col("seconds").n_unique() == 1,
    )
    whole = pl.col("known")
    if how.counter:  # all modes at the same time, else the total would be wrong
        most = pl.col("modes").max().over("node", "cpu")
        whole &= pl.col("even") & (pl.col("total") > 0) & (pl.col("modes") == most)
    good = grouped.filter(whole)
    work.counts["incomplete"] += grouped.height - good.height
    if how.counter:
        good = good.with_columns(pl.col(name) / pl.col("total") for name in CPU_CHANNELS)
    # Of two jobs at one instant, the known one counts.
    one = good.sort("job", nulls_last=True, maintain_order=True).unique(["node", "cpu", "at"], keep="first")
    return one.sort("node", "cpu", "at").select(CPU_SAMPLES.names()).cast(CPU_SAMPLES)


def _cpu_shares(work: _Work, points: pl.DataFrame, place: pl.DataFrame, how: CpuMetric) -> pl.DataFrame:
    """`share` of each point: the value itself or, for a counter, its growth over `seconds`."""
    if not how.counter:
        return points.with_columns(share=pl.col("value"), seconds=pl.lit(1.0))
    # User and system time decrease only at a restart; idle time and iowait may decrease a little (proc(5)).
    strict = place["mode"].is_in([mode for name in ("user", "system") for mode in how.modes[name]])
    parts = []
    for those, backward in ((place.filter(strict), False), (place.filter(~strict), True)):
        mine = points.join(those.select("series"), on="series", how="semi")
        found = rates(mine, step=work.step, backward=backward)
        work.counts["resets"] += found.resets
        parts.append(found.points.drop_nulls("seconds").with_columns(share=pl.col("delta")))
    return pl.concat(parts)


def _with_jobs(work: _Work, cpus: pl.DataFrame, series: Series) -> pl.DataFrame:
    how = work.mapping.cpu_jobs
    assert how is not None, "asked for only where it is there"
    place = series.labels.select(
        "series",
        _node(series, work.mapping).alias("node"),
        series.label([how.cpus]).map_elements(_cpu_list, return_dtype=pl.List(pl.Int32)).alias("cpu"),
        series.job(how.job).alias("owner"),
    ).drop_nulls()
    owned = (
        series.points.join(place, on="series")
        .with_columns(at=_second())
        .explode("cpu")
        .drop_nulls("cpu")
        .unique(["node", "cpu", "at"], keep="last", maintain_order=True)
        .select("node", "cpu", "at", "owner")
    )
    joined = cpus.join(owned, on=["node", "cpu", "at"], how="left", maintain_order="left")
    return joined.with_columns(job=pl.coalesce("job", "owner")).select(CPU_SAMPLES.names())


def _cpu_list(text: str) -> list[int]:
    """`0-3,8` as numbers; none for anything else."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdecimal() or not (last or first).isdecimal() or int(last or first) >= _MOST_CPUS:
            return []
        found += range(int(first), int(last or first) + 1)
    return found


def _jobs(work: _Work, read: Callable[[str], Series]) -> pl.DataFrame:
    parts: list[pl.DataFrame] = []
    for channel, how in work.mapping.jobs.items():
        series = read(how.metric)
        place = series.labels.select(
            "series", _node(series, work.mapping).alias("node"), series.job(how.job).alias("job")
        ).drop_nulls()
        points = series.points.join(place, on="series")
        if how.counter:
            grown = rates(points.select(POINTS.names()), step=work.step)
            work.counts["resets"] += grown.resets
            per_second = (pl.col("delta") / pl.col("seconds")).alias("value")
            points = grown.points.drop_nulls("seconds").select("series", "at", per_second)
            points = points.join(place, on="series")
        value = pl.col("value").mean() if how.mean else pl.col("value").sum()
        found = points.with_columns(at=_second()).group_by("node", "job", "at")
        whole = found.agg((value * how.factor).cast(pl.Float64).alias(channel), count=pl.col("value").count())
        # A sum without one of its series would be too small.
        all_there = pl.col("count") == pl.col("count").max().over("node", "job")
        known = (pl.col("count") > 0) & (all_there | pl.lit(how.mean))
        parts.append(whole.select("node", "job", "at", pl.when(known).then(channel).alias(channel)))
    if not parts:
        return JOB_SAMPLES.to_frame()
    return joined_channels(parts)


def joined_channels(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """JOB_SAMPLES from frames of single channels."""
    together = pl.concat([JOB_SAMPLES.to_frame(), *parts], how="diagonal_relaxed")
    return (
        together.group_by("node", "job", "at")
        .agg(pl.col(name).max() for name in JOB_CHANNELS)
        .sort("node", "job", "at")
        .select(JOB_SAMPLES.names())
        .cast(JOB_SAMPLES)
    )
