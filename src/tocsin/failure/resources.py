"""The run time and peak memory that a job needs: a median, and a bound for 95 % of jobs.

Only completed jobs are trained on: one stopped at its limit shows what was too little, not what it needed. Jobs that
ran out of memory count as having used at least their request, because the last sample before the end is often far
below it. The bound is on the need, so it may exceed the request.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from tocsin.core.errors import ModelError
from tocsin.core.outcomes import Outcome
from tocsin.core.units import UNLIMITED
from tocsin.core.verdict import MemoryRange, Resources, RuntimeRange
from tocsin.failure.conformal import conformal_offset
from tocsin.history import recipe
from tocsin.history.numbers import Numbers
from tocsin.models.engines import Booster, Floats, Matrix, engine
from tocsin.models.files import MALFORMED, read_json

__all__ = ["FILE", "KINDS", "LEVEL", "READ", "Kind", "Need", "Quantiles", "ResourceModel", "share_used"]

FILE = "resources.json"
VERSION = 1
LEVEL = 0.95
ROWS = 40_000
"""The latest rows are trained on; more are slower and no better, because history covers the older ones."""
FEWEST = 50
HELD_BACK = 0.15
"""The last share of the rows is not trained on: the bound is calibrated on it."""
ROUNDS = 60
_PARAMETERS = {
    "objective": "quantile",
    "num_leaves": 31,
    "learning_rate": 0.12,
    "feature_fraction": 0.3,
    "bagging_fraction": 0.5,
    "max_bin": 63,
}
_MOST = 2.0**62
READ = tuple(
    recipe.column("name", name) for name in ("completed", "elapsed_least", "elapsed_last", "elapsed_most")
)
"""From history: how long the completed jobs of this user with this name ran."""
FEWEST_ALIKE = 3


@dataclass(frozen=True, slots=True)
class Kind:
    """One resource: what was used of it, and what was requested."""

    name: str
    used: str
    requested: str
    least: int
    """What was used, where it was measured."""


KINDS = (
    Kind("runtime_seconds", "elapsed", "time_limit", 0),
    # Slurm writes 0 for a job that ended before its first sample; no process uses so little.
    Kind("memory_bytes", "max_memory", "req_memory", 1),
)


@dataclass(frozen=True, slots=True)
class Need:
    """For each row, the median and the bound, in seconds or bytes."""

    p50: Floats
    p95: Floats


@dataclass(frozen=True, slots=True)
class Quantiles:
    p50: Booster
    p95: Booster
    offset: float
    """Added to the bound by calibration, in logarithms."""
    taught_until: int
    """When the last training job was submitted; later ones calibrate."""

    def overruns(self, kind: "Kind", X: Matrix, jobs: pl.DataFrame) -> Floats:
        """By how much later jobs exceeded the bound without its offset, in logarithms."""
        later = jobs["submit"].to_numpy() > self.taught_until
        return _use(kind, jobs.filter(later)) - self.p95.predict(X[later])


@dataclass(frozen=True, slots=True)
class ResourceModel:
    """A resource that too few jobs record has no entry."""

    quantiles: Mapping[str, Quantiles]
    relative: bool = False
    """Needs are shares of the request, learned from other clusters; a job without a request has none."""

    @classmethod
    def fit(cls, X: Matrix, jobs: pl.DataFrame, *, seed: int, threads: int) -> "ResourceModel":
        """`X` and `jobs` row by row in order of time, outcomes known; the last rows calibrate."""
        found = {kind.name: _fitted(kind, X, jobs, seed, threads) for kind in KINDS}
        return cls({name: quantiles for name, quantiles in found.items() if quantiles is not None})

    def predict(self, X: Matrix) -> dict[str, Need]:
        """Needs that are not relative."""
        return {
            name: Need(_amount(q.p50.predict(X)), _amount(q.p95.predict(X) + q.offset))
            for name, q in self.quantiles.items()
        }

    def _predict_shares(self, X: Matrix, jobs: pl.DataFrame) -> dict[str, Need]:
        """NaN for a job without a request. A scheduler ends jobs at their limits, so the bound is at most the request."""
        found = {}
        for kind in KINDS:
            if q := self.quantiles.get(kind.name):
                asked = _requested(kind, jobs)
                p95 = np.minimum(q.p95.predict(X) + q.offset, 0.0)
                found[kind.name] = Need(_amount(q.p50.predict(X) + asked), _amount(p95 + asked))
        return found

    def recalibrated(self, X: Matrix, jobs: pl.DataFrame) -> "ResourceModel":
        """The same model with its offsets fitted on the jobs that it was not trained on; rows in order of time."""
        return ResourceModel(
            {
                kind.name: replace(q, offset=conformal_offset(q.overruns(kind, X, jobs), level=LEVEL))
                for kind in KINDS
                if (q := self.quantiles.get(kind.name))
            }
        )

    def resources(self, X: Matrix, jobs: pl.DataFrame, history: pl.DataFrame | Numbers) -> list[Resources]:
        """The needs of each job relative to its request; `history` has at least the columns READ."""
        need = self._predict_shares(X, jobs) if self.relative else self.predict(X)
        if KINDS[0].name in need:
            need[KINDS[0].name] = _not_below(need[KINDS[0].name], Numbers.of(history))
        runtime = self._ranges(need, KINDS[0], jobs)
        memory = self._ranges(need, KINDS[1], jobs)
        return [
            Resources(
                runtime_seconds=RuntimeRange(p50=time[0], p95=time[1], requested=time[2]) if time else None,
                memory_bytes=MemoryRange(p50=size[0], p95=size[1], requested=size[2]) if size else None,
            )
            for time, size in zip(runtime, memory, strict=True)
        ]

    def save(self, folder: Path) -> None:
        document = {
            "version": VERSION,
            "relative": self.relative,
            "quantiles": {
                name: {"offset": q.offset, "taught_until": q.taught_until}
                for name, q in sorted(self.quantiles.items())
            },
        }
        (folder / FILE).write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", "utf-8")
        for name, q in self.quantiles.items():
            for part in ("p50", "p95"):
                getattr(q, part).save(folder / f"{name}-{part}.txt")

    @classmethod
    def load(cls, folder: Path, *, threads: int) -> "ResourceModel":
        path, lightgbm = folder / FILE, engine("lightgbm")
        try:
            document = read_json(path)
            if document["version"] != VERSION:
                raise ValueError(f"it is not of version {VERSION}")
            return cls(
                {
                    kind.name: Quantiles(
                        p50=lightgbm.load(folder / f"{kind.name}-p50.txt", threads=threads),
                        p95=lightgbm.load(folder / f"{kind.name}-p95.txt", threads=threads),
                        offset=float(document["quantiles"][kind.name]["offset"]),
                        taught_until=int(document["quantiles"][kind.name]["taught_until"]),
                    )
                    for kind in KINDS
                    if kind.name in document["quantiles"]
                },
                document.get("relative", False) is True,
            )
        except (OSError, *MALFORMED) as error:
            raise ModelError(f"{path} cannot be read: {str(error)[:200]}; train again") from None

    def _ranges(
        self, need: Mapping[str, Need], kind: Kind, jobs: pl.DataFrame
    ) -> list[tuple[int, int, int | None] | None]:
        if kind.name not in need:
            return [None] * jobs.height
        p50, p95 = need[kind.name].p50, need[kind.name].p95
        asked = jobs[kind.requested].to_list()
        return [
            None
            if np.isnan(bound)
            else (int(middle), int(bound), None if limit is None or limit < 0 else limit)
            for middle, bound, limit in zip(
                np.rint(np.minimum(p50, p95)), _rounded_up(p95), asked, strict=True
            )
        ]


def _rounded_up(bounds: Floats) -> Floats:
    """Whole seconds or bytes; an error of exp(log(x)) adds none, so a bound at the limit is the limit."""
    return np.ceil(bounds * (1 - 1e-9))


def _not_below(need: Need, history: Numbers) -> Need:
    """A job that requests less time than such jobs ever took looks like a short job, but needs what they needed."""
    completed, least, last, most = (history.column(name) for name in READ)
    with np.errstate(invalid="ignore"):  # NaN for unseen kinds, which have nothing to compare with
        longer = (completed >= FEWEST_ALIKE) & (least > need.p95)
    if not longer.any():
        return need
    return Need(np.where(longer, last, need.p50), np.where(longer, most, need.p95))


def _fitted(kind: Kind, X: Matrix, jobs: pl.DataFrame, seed: int, threads: int) -> Quantiles | None:
    use = _use(kind, jobs)
    rows = np.flatnonzero(~np.isnan(use))[-ROWS:]
    cut = len(rows) - int(len(rows) * HELD_BACK)
    train_rows, later = rows[:cut], rows[cut:]
    if len(rows) < FEWEST or np.unique(use[train_rows]).size < 2:
        return None

    def quantile(level: float) -> Booster:
        return engine("lightgbm").train(
            X[train_rows],
            use[train_rows],
            parameters={**_PARAMETERS, "alpha": level, "min_data_in_leaf": _leaf(len(train_rows))},
            seed=seed,
            threads=threads,
            rounds=ROUNDS,
        )

    bound = quantile(LEVEL)
    offset = conformal_offset(use[later] - bound.predict(X[later]), level=LEVEL)
    return Quantiles(quantile(0.5), bound, offset, int(jobs["submit"][int(train_rows[-1])]))


def _leaf(rows: int) -> int:
    """A leaf needs enough rows to show one in twenty."""
    return max(5, min(50, rows // 50))


def _use(kind: Kind, jobs: pl.DataFrame) -> Floats:
    """In logarithms; NaN for a job that did not complete or whose use is unknown."""
    good = (pl.col("outcome") == str(Outcome.COMPLETED)) & (pl.col(kind.used) >= kind.least)
    full = (pl.col("outcome") == str(Outcome.OUT_OF_MEMORY)) & (pl.col(kind.requested) > 0)
    amount: pl.Expr = pl.when(good).then(pl.col(kind.used))
    if kind.requested == "req_memory":
        amount = pl.when(full).then(pl.max_horizontal(kind.used, kind.requested)).otherwise(amount)
    amount = amount.cast(pl.Float64).fill_null(float("nan"))
    return np.asarray(np.log1p(jobs.select(amount).to_series().to_numpy()), dtype=np.float64)


def share_used(kind: Kind, jobs: pl.DataFrame) -> Floats:
    """The share of its request that each job used, in logarithms; NaN as for the use itself, or without a request."""
    return _use(kind, jobs) - _requested(kind, jobs)


def _requested(kind: Kind, jobs: pl.DataFrame) -> Floats:
    asked = pl.when(pl.col(kind.requested).is_between(1, UNLIMITED - 1)).then(pl.col(kind.requested))
    amounts = jobs.select(asked.cast(pl.Float64).fill_null(float("nan"))).to_series().to_numpy()
    return np.asarray(np.log1p(amounts), dtype=np.float64)


def _amount(logs: Floats) -> Floats:
    return np.asarray(np.clip(np.expm1(np.minimum(logs, 60.0)), 0.0, _MOST))
