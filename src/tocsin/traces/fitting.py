"""Trains a trace detector: models on most of the windows, thresholds on held-back windows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.channels import CPU_CHANNELS, JOB_CHANNELS, MODES
from tocsin.core.errors import ModelError
from tocsin.models.cards import Window
from tocsin.traces.fitted import FittedTraces
from tocsin.traces.model import TraceModel
from tocsin.traces.scoring import ScoredModel, channel_means
from tocsin.traces.thresholds import Kind, Rule, Thresholds
from tocsin.traces.windows import Windows

__all__ = ["Train", "fit_traces", "held_back"]

LEAST_WINDOWS = 60
"""Of CPUs."""
LEAST_APART = 30
"""Windows of job counters that do not overlap: with fewer, normal jobs raised alarms (a replay of bench/recordings)."""
_JOBS_OF_A_KIND = 3
_ALONE = "node_graph"


class Train(Protocol):
    """Trains one model, such as `traces.training.train` with its options."""

    def __call__(
        self,
        windows: Windows,
        *,
        validation: Windows,
        seed: int,
        seconds: float | None,
        progress: Callable[[int, int], None] | None,
    ) -> TraceModel: ...


@dataclass(frozen=True, slots=True)
class _Split:
    train: Windows
    held: Windows
    words: str


def fit_traces(
    windows: pl.DataFrame,
    kinds: pl.DataFrame,
    train: Train,
    *,
    rule: Rule | None = None,
    stride: int | None = None,
    interval: int = 1,
    seed: int = 0,
    seconds: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> FittedTraces:
    """Train on the windows (`core.frames.WINDOWS`) of normal jobs; `kinds` has `job`, `user` and `name` of each.

    `stride` is the seconds between two windows (default: as found), `interval` those between two points. If there are
    enough windows of job counters, a model of them is trained, too.
    """
    rule = rule or Rule()
    mine = windows.join(kinds.select("job").unique(), on="job", how="semi").sort("at", "node", "cpu", "job")
    cpus = Windows.from_frame(mine, CPU_CHANNELS)
    if len(cpus) < LEAST_WINDOWS:
        raise ModelError(
            f"{len(cpus)} windows of CPUs are too few to learn from; {LEAST_WINDOWS} are needed. "
            "Record longer, or name a campaign: tocsin traces train FOLDER"
        )
    stride = stride or _stride(cpus.index)
    counters = Windows.from_frame(mine, JOB_CHANNELS)
    both = len(counters) * stride >= LEAST_APART * counters.length * interval > 0
    share = seconds / 2 if seconds and both else seconds
    scored: dict[str, ScoredModel] = {}
    figures: dict[str, float] = {}
    split = ""
    for name, each in (("cpus", cpus), *([("jobs", counters)] if both else [])):
        parts = _split(each, kinds, interval)
        model = train(parts.train, validation=parts.held, seed=seed, seconds=share, progress=progress)
        if model.architecture == _ALONE:
            raise ModelError(
                f"{_ALONE} reads all CPUs of a node at once, but alarms look at one job; use vanilla or job_graph"
            )
        scored[name], errors = _scored(model, parts.held, kinds, rule, (stride, interval))
        split = split or parts.words
        figures |= {
            f"{name}.error": float(errors["error"].mean()),  # type: ignore[arg-type]  # a number
            f"{name}.windows_above": float(errors["unusual"].mean()),  # type: ignore[arg-type]
            f"{name}.held_back": float(len(parts.held)),
        }
    at = mine["at"]
    return FittedTraces(
        cpus=scored["cpus"],
        jobs=scored.get("jobs"),
        stride=stride,
        interval=interval,
        window=Window(first=int(at.min()), last=int(at.max())),  # type: ignore[arg-type]  # instants
        windows=mine.height,
        clusters=tuple(mine["job"].str.extract(r"^([^:]+):").unique().drop_nulls().sort()),
        figures=figures,
        split=split,
    )


def _scored(
    model: TraceModel, held: Windows, kinds: pl.DataFrame, rule: Rule, spacing: tuple[int, int]
) -> tuple[ScoredModel, pl.DataFrame]:
    stride, interval = spacing
    named = held.index.join(
        kinds.select("job", "user", "name").unique("job"), on="job", how="left", maintain_order="left"
    )
    thresholds = Thresholds.fit(
        model.score(held).error,
        channel_means(held, model.outputs),
        [Kind(*row) for row in named.select("user", "name").iter_rows()],
        rule=rule,
        overlap=max(1.0, model.length * interval / stride),
    )
    _check_reachable(model, thresholds)
    found = ScoredModel(model=model, thresholds=thresholds, stride=stride, interval=interval)
    return found, found.scores(held, kinds)


def _check_reachable(model: TraceModel, thresholds: Thresholds) -> None:
    """Refuse a threshold that no window exceeds: the extrapolation of a few errors that vary much has no bound, but the
    squared distance of two sets of shares is two at most.
    """
    normal = thresholds.all
    if tuple(model.outputs) == MODES and normal.threshold >= (largest := 2 / len(MODES)):
        raise ModelError(
            f"the errors of the {normal.windows} held-back windows vary too much: a threshold for "
            f"{100 * thresholds.rule.rate:g} % of normal windows would be {normal.threshold:.3g}, but no window has an "
            f"error above {largest:g}, so there would be no alarms. Record longer, or allow more false alarms (--rate)"
        )


def _split(windows: Windows, kinds: pl.DataFrame, interval: int) -> _Split:
    train, held = held_back(windows.index, kinds, windows.length * interval)
    if held.sum() < LEAST_WINDOWS // 3 or train.sum() < LEAST_WINDOWS // 3:
        every = np.ones(len(windows), bool)
        return _Split(windows[every], windows[every], "none held back: too few windows")
    return _Split(
        windows[train],
        windows[held],
        "every third job of a kind held back; of rarer kinds, the end of each job",
    )


def held_back(
    index: pl.DataFrame, kinds: pl.DataFrame, length: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which windows to train on, and which to hold back: every third job of a kind.

    For a kind with fewer than three jobs, the last third of each job is held back; windows that overlap it are in
    neither.
    """
    named = index.select("job", "at").join(
        kinds.select("job", "user", "name").unique("job"), on="job", how="left", maintain_order="left"
    )
    first, last = pl.col("at").min().over("job"), pl.col("at").max().over("job")
    begun = pl.struct(first, "job").rank("dense").over("user", "name")
    several = pl.col("job").n_unique().over("user", "name") >= _JOBS_OF_A_KIND
    cut = first + (last - first) * 2 / 3
    rows = named.with_columns(
        held=pl.when(several).then(begun % 3 == 0).otherwise(pl.col("at") > cut),
        train=pl.when(several).then(begun % 3 != 0).otherwise(pl.col("at") <= cut - length),
    )
    return rows["train"].to_numpy(), rows["held"].to_numpy()


def _stride(index: pl.DataFrame) -> int:
    """The usual number of seconds between two windows of a CPU."""
    steps = index.sort("node", "cpu", "at").select(pl.col("at").diff().over("node", "cpu")).to_series()
    usual = steps.filter(steps > 0).mode().min()
    return int(usual) if usual else 10  # type: ignore[arg-type]  # a number
