"""A trace model with its thresholds: which windows are unusual, and in which channel."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.channels import CPU_CHANNELS, MODES
from tocsin.core.errors import ModelError
from tocsin.traces.alarms import Alarm, Direction
from tocsin.traces.model import TraceModel
from tocsin.traces.regions import Region, regions_entered
from tocsin.traces.thresholds import Kind, Normal, Thresholds, normal_of
from tocsin.traces.windows import Windows

__all__ = ["ARRAY", "LEAST_SIBLINGS", "ScoredModel", "array_of", "channel_means"]

ARRAY = r"^(.*)_\d+@"
"""The cluster and id of the array in the key of a task."""
LEAST_SIBLINGS = 3
"""Tasks of the same array and age that a task must have to be compared with them."""
_LEAST_SIBLING_WINDOWS = 20
_SHIFT = 0.05
"""A smaller change of a mean share is no change of level: then the shape of the channel is unusual."""
OWN_KIND, SIBLINGS, OTHERS, EXPECTED = (
    "jobs of this kind",
    "the other tasks of its array at this age",
    "other jobs",
    "expected",
)


class _Channel(NamedTuple):
    """The channel that differs most, and how."""

    number: int
    direction: Direction
    observed: float
    expected: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredModel:
    """A model of CPUs or of job counters, and which errors are normal."""

    model: TraceModel
    thresholds: Thresholds
    stride: int
    """Seconds between two windows."""
    interval: int = 1
    """Seconds between two points of a window."""
    regions: Sequence[Region] = ()
    """Regions of its embeddings that people confirmed as bad; they are passed in, never saved with the model."""
    version: str = ""
    """The version of the model, if there are regions."""

    @property
    def channels(self) -> Sequence[str]:
        return self.model.channels

    @property
    def overlap(self) -> float:
        """The number of windows that share each second."""
        return max(1.0, self.model.length * self.interval / self.stride)

    def windows(self, frame: pl.DataFrame) -> Windows:
        """The windows that this model reads."""
        found = Windows.from_frame(frame, self.channels)
        if len(found) and found.length != self.model.length:
            raise ModelError(
                f"the windows have {found.length} points, but the model was trained on windows of "
                f"{self.model.length}; set traces.window, or train again: tocsin traces train"
            )
        return found

    def scores(self, windows: Windows, kinds: pl.DataFrame) -> pl.DataFrame:
        """The index of the windows with `error`, `threshold` and `unusual`. `kinds` has user and name of each job.

        A window in a region confirmed as bad is unusual, whatever its error.
        """
        errors, inside = np.empty(0, np.float32), np.empty(0, bool)
        if len(windows):
            scored = self.model.score(windows)
            errors, inside = scored.error, np.zeros(len(windows), bool)
            for entered in regions_entered(scored.embedding, self.regions, version=self.version):
                inside |= entered.inside
        of_kind = pl.DataFrame(
            [(*kind, normal.threshold) for kind, normal in self.thresholds.kinds.items()],
            schema={"user": pl.String, "name": pl.String, "threshold": pl.Float64},
            orient="row",
        )
        known = kinds.select("job", "user", "name").unique("job").join(of_kind, on=["user", "name"])
        return (
            windows.index.with_columns(pl.Series("error", errors.astype(np.float64)))
            .join(known.select("job", "threshold"), on="job", how="left", maintain_order="left")
            .with_columns(pl.col("threshold").fill_null(self.thresholds.all.threshold))
            .with_columns(
                unusual=(pl.col("error") > pl.col("threshold")) | pl.Series(inside, dtype=pl.Boolean)
            )
        )

    def normal_for(self, kind: Kind, siblings: pl.DataFrame) -> tuple[Normal, str]:
        """What is normal for a job, and for whom: its siblings first, then its kind, then all jobs.

        Siblings count if there are enough of them and most of their own windows are normal: an array that misbehaves as a
        whole must not hide itself.
        """
        of_kind, own = self.thresholds.of(kind)
        windows = self.windows(siblings)
        if windows.index["job"].n_unique() >= LEAST_SIBLINGS and len(windows) >= _LEAST_SIBLING_WINDOWS:
            errors = self.model.score(windows).error
            if np.median(errors) <= of_kind.threshold:
                means = channel_means(windows, self.model.outputs)
                found = normal_of(errors, means, self.thresholds.rule, self.overlap)
                return found, SIBLINGS
        return of_kind, OWN_KIND if own else OTHERS

    def alarms(
        self,
        job: str,
        windows: Windows,
        errors: NDArray[Any],
        since: Sequence[int],
        normal: Normal,
        whose: str,
    ) -> list[Alarm]:
        """The alarms from windows of one job, one for each channel and direction."""
        by_channel = self.model.score(windows).by_channel
        expected = self.model.reconstruct(windows).mean(axis=1, dtype=np.float64)
        observed = channel_means(windows, self.model.outputs)
        found: dict[tuple[int, Direction], list[int]] = {}
        for row in range(len(windows)):
            number, direction = self._channel(observed[row], expected[row], by_channel[row], normal)
            found.setdefault((number, direction), []).append(row)
        alarms = []
        for (number, direction), rows in found.items():
            seen = float(observed[rows, number].mean())
            level, compared = normal.levels[number], whose
            awaited = float(expected[rows, number].mean())
            if direction is not Direction.IRREGULAR and (seen - level) * (seen - awaited) <= 0:
                level, compared = awaited, EXPECTED  # the kind varies: its median says the opposite
            index = windows.index[rows]
            nodes: dict[str, list[int]] = {}
            for node, cpu in index.select("node", "cpu").sort("node", "cpu").iter_rows():
                nodes.setdefault(node, []).extend([] if cpu is None else [cpu])
            alarms.append(
                Alarm(
                    job=job,
                    cpus=dict(sorted(nodes.items(), key=lambda item: -len(item[1]))),
                    channel=self.model.outputs[number],
                    direction=direction,
                    observed=seen,
                    normal=level,
                    compared_with=compared,
                    error=float(np.max(errors[rows])),
                    threshold=normal.threshold,
                    seconds=windows.length * self.interval,
                    since=min(since[row] for row in rows),
                )
            )
        return sorted(alarms, key=lambda alarm: -alarm.error)

    def _channel(
        self, observed: NDArray[Any], expected: NDArray[Any], errors: NDArray[Any], normal: Normal
    ) -> tuple[int, Direction]:
        """Shares of time that sum to one rise and fall together: the one that rose is what the CPU does instead."""
        shift = np.nan_to_num(observed - expected)
        if tuple(self.model.outputs) == MODES:
            if shift.max() >= _SHIFT:
                return int(shift.argmax()), Direction.HIGH
            if shift.min() <= -_SHIFT:
                return int(shift.argmin()), Direction.LOW
            return int(np.nan_to_num(errors).argmax()), Direction.IRREGULAR
        number = int(np.nan_to_num(errors).argmax())
        if abs(shift[number]) < _SHIFT * max(normal.spreads[number], abs(float(expected[number])), 1e-9):
            return number, Direction.IRREGULAR
        return number, Direction.HIGH if shift[number] > 0 else Direction.LOW


def channel_means(windows: Windows, outputs: Sequence[str]) -> NDArray[np.float64]:
    """The mean of each output channel in each window; `other` is the rest to one."""
    values = windows.values.astype(np.float64)
    known = np.isfinite(values)
    total = np.where(known, values, 0.0).sum(axis=1)
    means = np.where(known.any(axis=1), total / np.maximum(known.sum(axis=1), 1), np.nan)
    if tuple(windows.channels) == CPU_CHANNELS and len(outputs) > len(CPU_CHANNELS):
        return np.column_stack([means, 1 - means.sum(axis=1)])
    return means


def array_of() -> pl.Expr:
    """The cluster and id of the array of `job`, a key; null for a job that is not a task."""
    return pl.col("job").str.extract(ARRAY)
