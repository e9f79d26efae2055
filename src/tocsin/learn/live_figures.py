"""Live figures: how precise the alarms of the models in use were, on jobs whose outcome has become known since."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.errors import ModelError
from tocsin.core.fields import Instant
from tocsin.core.outcomes import Target
from tocsin.core.stages import Stage
from tocsin.failure.findings import NAME
from tocsin.failure.labels import FEWEST, FEWEST_OF_EACH
from tocsin.learn.comparison import Result, decide
from tocsin.learn.live_rows import LiveJobs, LiveRows, live_jobs
from tocsin.models.metrics import Sorted, measure_weighted
from tocsin.models.splits import DAY
from tocsin.store import scores
from tocsin.store.database import Store

__all__ = ["DAYS", "Live", "LiveFigures", "Measured"]

DAYS = 28
"""Live figures cover this many days before the last verdict."""
FEWEST_EVENTS = 20
"""Alarms for a precision, failures for a recall: fewer show little, whatever the interval."""
FEWEST_BLOCKS = 10
RESAMPLES = 400
_OF_RANKINGS = 100
"""Resamples for an AUC, which cost as much as everything else: 10,000 jobs take 0.1 s."""
_LEVEL, _Z = 0.95, 1.96
_FIGURE = "average_precision"

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFigures:
    """One stage of one cluster, for one version or all that were in use."""

    cluster: str
    detector: str = NAME
    stage: Stage
    version: str | None
    """None: whichever version was in use."""
    target: str
    since: Instant
    until: Instant
    """When the first and the last of these verdicts were given."""
    jobs: int
    """Jobs with a known outcome that count."""
    failed: int
    alarms: int
    hits: int
    """Alarms on jobs that failed."""
    left_out: Mapping[str, int]
    control: bool
    """Whether only the control share counts, because tocsin acted on jobs."""
    precision: Measured | None = None
    recall: Measured | None = None
    auc: Measured | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    """Figures that cannot be computed, each with the reason."""


class Live:
    """The live predictions of one cluster, read once."""

    def __init__(self, store: Store, cluster: str, *, now: int, share: float, days: float = DAYS) -> None:
        """`now`: the cluster's time; `share`: of jobs left alone as control."""
        since = now - round(days * DAY)
        self.cluster = cluster
        self.given = scores.of_verdicts(store, cluster, detector=NAME, since=since)
        self.beside = scores.of_challengers(store, cluster, detector=NAME, since=since)
        self._jobs: LiveJobs | None = None
        if self.given.height:
            self._jobs = live_jobs(store, cluster, since=since, share=share)

    def figures(self) -> Iterator[LiveFigures]:
        """For each stage: of all versions that were in use, of each of them, and of each challenger."""
        for stage in Stage:
            given = self.given.filter(pl.col("stage") == str(stage))
            if given.is_empty():
                continue
            versions = given["version"].unique(maintain_order=True).to_list()
            yield self._figures(given, stage, None)
            for version in versions:
                yield self._figures(given.filter(pl.col("version") == version), stage, version)
            beside = self.beside.filter(pl.col("stage") == str(stage))
            for version in beside["version"].unique(maintain_order=True).to_list():
                if version not in versions:
                    own = beside.filter(pl.col("version") == version)
                    yield self._figures(own.with_columns(target=pl.lit(_target(given))), stage, version)

    def compared(self, detector: str, stage: Stage, champion: str, challenger: str) -> Result:
        """Compare both models on the jobs that both scored; ModelError says why that is not possible."""
        if detector != NAME:
            raise ModelError("it gives no probability of failure, so it is compared by its contest only")
        one, other = (
            frame.filter(pl.col("stage") == str(stage), pl.col("version") == version)
            for frame, version in ((self.given, champion), (self.beside, challenger))
        )
        pairs = one.join(other.select("job", beside="probability"), on="job")
        if pairs.is_empty() or self._jobs is None:
            raise ModelError(f"no live job has been scored by both {champion} and {challenger} yet")
        rows = self._jobs.rows(pairs, stage, Target(_target(pairs)))
        bad = int(rows.failed.sum())
        what = f"{rows.frame.height:,} live jobs"
        if rows.frame.height < FEWEST or min(bad, rows.frame.height - bad) < FEWEST_OF_EACH:
            raise ModelError(
                f"{what} that both scored have a known outcome, {bad:,} of them failed; a comparison needs "
                f"{FEWEST}, and {FEWEST_OF_EACH} of each kind"
            )
        first, second = (
            Sorted(rows.failed, rows.frame[name].to_numpy()) for name in ("probability", "beside")
        )
        return decide(
            lambda weight: (
                measure_weighted(_FIGURE, first, weight),
                measure_weighted(_FIGURE, second, weight),
            ),
            rows.blocks,
            figure=_FIGURE,
            higher_is_better=True,
            held_back=what,
        )

    def _figures(self, given: pl.DataFrame, stage: Stage, version: str | None) -> LiveFigures:
        assert self._jobs is not None, "there are verdicts"
        target = _target(given)
        rows = self._jobs.rows(given.filter(pl.col("target") == target), stage, Target(target))
        alarms = (rows.frame["probability"] >= rows.frame["threshold"]).to_numpy()
        found, missing = _measured(rows, alarms)
        return LiveFigures(
            cluster=self.cluster,
            stage=stage,
            version=version,
            target=target,
            since=int(given["at"].min()),  # type: ignore[arg-type]  # an instant
            until=int(given["at"].max()),  # type: ignore[arg-type]  # an instant
            jobs=rows.frame.height,
            failed=int(rows.failed.sum()),
            alarms=int(alarms.sum()),
            hits=int((alarms & rows.failed).sum()),
            left_out=rows.left_out,
            control=rows.control,
            precision=found.get("precision"),
            recall=found.get("recall"),
            auc=found.get("auc"),
            missing=missing,
        )


def _target(given: pl.DataFrame) -> str:
    """The target of the last verdict: rows of a model with another target cannot be combined."""
    return str(given.sort("at")["target"][-1])


def _measured(rows: LiveRows, alarms: Flags) -> tuple[dict[str, Measured], dict[str, str]]:
    bad = rows.failed
    counts = {"precision": (int(alarms.sum()), "alarms"), "recall": (int(bad.sum()), "failed jobs")}
    counts["auc"] = (min(int(bad.sum()), int((~bad).sum())), "jobs of the rarer kind")
    numbers = np.unique(rows.blocks, return_inverse=True)[1]
    blocks = int(numbers.max()) + 1 if len(numbers) else 0
    missing = {
        name: f"{events} {what} have a known outcome; {FEWEST_EVENTS} are needed"
        for name, (events, what) in counts.items()
        if events < FEWEST_EVENTS
    }
    if blocks < FEWEST_BLOCKS:
        few = f"the jobs are of {blocks} users and days; {FEWEST_BLOCKS} are needed"
        return {}, {**dict.fromkeys(counts, few), **missing}
    random = np.random.default_rng(0)
    times = random.multinomial(blocks, np.full(blocks, 1 / blocks), size=RESAMPLES)
    found = {}
    for name, chosen in (("precision", alarms), ("recall", bad)):
        if name not in missing:
            found[name] = _share(bad & alarms, chosen, numbers, times)
    if "auc" not in missing:
        found["auc"] = _auc(bad, rows.frame["probability"].to_numpy(), numbers, times)
    return found, missing


def _share(good: Flags, chosen: Flags, numbers: NDArray[np.int64], times: NDArray[np.int64]) -> Measured:
    """The wider of two intervals: by resampling users' days, and Wilson's, which has a width even if all are right."""
    right, whole = (np.bincount(numbers, weights=flags, minlength=times.shape[1]) for flags in (good, chosen))
    sums = times @ whole
    sampled = np.divide(times @ right, sums, out=np.full(len(sums), np.nan), where=sums > 0)
    n, value = float(whole.sum()), float(right.sum() / whole.sum())
    middle, width = value + _Z**2 / (2 * n), _Z * sqrt(value * (1 - value) / n + _Z**2 / (4 * n**2))
    wilson = ((middle - width) / (1 + _Z**2 / n), (middle + width) / (1 + _Z**2 / n))
    low, high = _quantiles(sampled)
    return Measured(
        value=value, low=max(0.0, min(low, wilson[0], value)), high=min(1.0, max(high, wilson[1], value))
    )


def _auc(
    bad: Flags, p: NDArray[np.float64], numbers: NDArray[np.int64], times: NDArray[np.int64]
) -> Measured:
    ordered = Sorted(bad, p)
    value = measure_weighted("auc", ordered, np.ones(len(p)))
    sampled = np.array(
        [measure_weighted("auc", ordered, row[numbers].astype(np.float64)) for row in times[:_OF_RANKINGS]]
    )
    low, high = _quantiles(sampled)
    return Measured(value=value, low=min(low, value), high=max(high, value))


def _quantiles(sampled: NDArray[np.float64]) -> Sequence[float]:
    known = sampled[~np.isnan(sampled)]
    return [float(each) for each in np.quantile(known, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])]
