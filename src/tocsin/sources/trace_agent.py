"""Samples of one node from its tocsin-agent: what the agent has buffered since an instant."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from tocsin.core.channels import JOB_CHANNELS
from tocsin.core.errors import SourceError
from tocsin.core.frames import CPU_SAMPLES, Samples
from tocsin.core.units import MAX_INSTANT
from tocsin.sources.trace_http import TraceHttp
from tocsin.sources.trace_rates import POINTS, rates
from tocsin.sources.trace_series import TraceBatch, joined_channels

__all__ = ["AgentSource", "agent_samples"]

_COUNTERS = {
    "cpu_user": "cpu_user_seconds_total",
    "cpu_system": "cpu_system_seconds_total",
    "cpu_throttled": "cpu_throttled_seconds_total",
    "page_faults": "page_faults_total",
    "major_page_faults": "major_page_faults_total",
    "context_switches": "context_switches_total",
    "io_read": "io_read_bytes_total",
    "io_written": "io_written_bytes_total",
    "pressure_cpu": "pressure_cpu_seconds_total",
    "pressure_memory": "pressure_memory_seconds_total",
    "pressure_io": "pressure_io_seconds_total",
}
_GAUGES = {"memory": "memory_bytes"}
_SCHEMA = 1


class AgentSource:
    """An agent's `/window`. It keeps ten minutes by default; older samples are lost."""

    def __init__(self, http: TraceHttp) -> None:
        self.counts: Counter[str] = Counter()
        """`resets` of counters, `invalid points`, and `clock jumps` from the second look on."""
        self.notes: list[str] = []
        self.first_failed: int | None = None
        self._http = http
        self._jumps: int | None = None

    def batches(self, since: int, until: int) -> Iterator[TraceBatch]:
        """The samples in (since, until]."""
        # Two more points in front: rates need the previous counters.
        status, body = self._http.get("/window", {"since": str(since - 2)})
        if status != 200 or body is None or body.get("schema") != _SCHEMA:
            raise SourceError(
                f"the agent at {self._http.url} gave no samples (HTTP {status}); is it a tocsin-agent of this version?"
            )
        node, found = body.get("node"), body.get("samples")
        if not isinstance(node, str) or not isinstance(found, list):
            raise SourceError(f"the agent at {self._http.url} gave no node or no samples")
        self._count_jumps(body.get("clock_jumps"))
        interval = body.get("interval")
        step = float(interval) if isinstance(interval, int | float) and interval > 0 else 1.0
        samples = agent_samples(node, found, self.counts, step)
        inside = (pl.col("at") > since) & (pl.col("at") <= until)
        cpus, jobs = samples.cpus.filter(inside), samples.jobs.filter(inside)
        last = max((frame["at"].max() or since for frame in (cpus, jobs)), default=since)
        yield TraceBatch(Samples(cpus, jobs), int(last), 1, 1)  # type: ignore[arg-type]  # an instant

    def _count_jumps(self, jumps: Any) -> None:
        """The agent counts from its start on: jumps before the first look are only noted."""
        if not isinstance(jumps, int):
            return
        if self._jumps is None and jumps:
            self.notes.append(
                f"the agent at {self._http.url} has seen {jumps} jumps of the clock since its start"
            )
        self.counts["clock jumps"] += max(0, jumps - self._jumps) if self._jumps is not None else 0
        self._jumps = jumps


def agent_samples(node: str, found: Sequence[Any], counts: Counter[str], step: float = 1.0) -> Samples:
    """The samples of a reply, one every `step` seconds; `resets` of counters and `invalid points` are counted."""
    rows: list[tuple[Any, ...]] = []
    points: list[tuple[str, str, float, float]] = []
    for sample in found:
        try:
            at = float(sample["at"])
            if not 0 <= at <= MAX_INSTANT:
                raise ValueError(at)
            jobs = {str(cpu): str(job) for cpu, job in sample["jobs"].items()}
            rows += [
                (node, int(cpu), round(at), jobs.get(cpu), *(float(share) for share in shares[:3]))
                for cpu, shares in sample["cpus"].items()
            ]
            points += [
                (str(job), str(name), at, float(value))
                for job, counters in sample["counters"].items()
                for name, value in counters.items()
            ]
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
            counts["invalid points"] += 1
    cpus = pl.DataFrame(rows, schema=CPU_SAMPLES, orient="row", strict=False)
    schema = {"job": pl.String, "name": pl.String, "at": pl.Float64, "value": pl.Float64}
    return Samples(cpus, _jobs(node, pl.DataFrame(points, schema=schema, orient="row"), counts, step))


def _jobs(node: str, points: pl.DataFrame, counts: Counter[str], step: float) -> pl.DataFrame:
    parts = []
    for channel in JOB_CHANNELS:
        own = points.filter(pl.col("name") == _COUNTERS.get(channel, _GAUGES.get(channel, "")))
        numbered = own.with_columns(series=pl.col("job").rank("dense").cast(pl.Int64))
        if channel in _COUNTERS:
            found = rates(numbered.select(POINTS.names()), step=step)
            counts["resets"] += found.resets
            per_second = (pl.col("delta") / pl.col("seconds")).alias("value")
            names = numbered.select("series", "job").unique()
            numbered = (
                found.points.drop_nulls("seconds").select("series", "at", per_second).join(names, on="series")
            )
        parts.append(
            numbered.select(
                pl.lit(node).alias("node"),
                "job",
                pl.col("at").round().cast(pl.Int64),
                pl.col("value").alias(channel),
            )
        )
    return joined_channels(parts)
