"""Job profiles: groups of jobs with similar requests (known at `submit`) or similar usage (known at `end`)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.errors import ModelError
from tocsin.profiles.clusters import Clusters, Curves, Method, count_clusters, fit_clusters
from tocsin.profiles.columns import COLUMNS, Column, Kind, table
from tocsin.profiles.names import profile_names

__all__ = ["FEWEST", "Profile", "Profiles"]

FEWEST = 50
MOST_ROWS = 20_000
_LEAST_KNOWN = 0.5
"""Columns known for a smaller share of the jobs are left out."""
_QUANTILES = (0.01, 0.5, 0.99)

_ended = pl.col("outcome").is_not_null() & pl.col("start").is_not_null()


@dataclass(frozen=True, slots=True)
class Profile:
    name: str
    jobs: int
    bounds: Mapping[str, tuple[float, float, float]]
    """The 1 %, 50 % and 99 % quantile of each column."""


@dataclass(frozen=True, slots=True)
class Profiles:
    """The profiles of a set of jobs, from the smallest jobs to the largest."""

    kind: Kind
    names: tuple[str, ...]
    """The columns that are clustered."""
    fill: NDArray[np.float64]
    """The scaled value for a job without one: the median."""
    centre: NDArray[np.float64]
    scale: NDArray[np.float64]
    clusters: Clusters
    profiles: tuple[Profile, ...]
    curves: Curves
    left_out: Mapping[str, str]
    rows: int

    @classmethod
    def fit(
        cls,
        jobs: pl.DataFrame,
        kind: Kind = "request",
        *,
        method: Method = "mixture",
        number: int | None = None,
        seed: int = 0,
    ) -> "Profiles":
        """Find the profiles of these jobs; usage profiles need finished jobs.

        Without a `number` of profiles, it is the larger of the two knees, of K-means' distortion and of the mixture's BIC. Neither
        has a minimum: both keep falling with every further cluster, because jobs request round numbers.
        """
        known = jobs.filter(_ended) if kind == "usage" else jobs
        if known.height < FEWEST:
            which = "finished jobs" if kind == "usage" else "jobs"
            raise ModelError(f"{known.height:,} {which} are too few for profiles; {FEWEST} are needed")
        values = table(known, COLUMNS[kind])
        used, left_out = _useful(values, kind)
        raw = (
            np.stack([COLUMNS[kind][c].scaled(values[:, c]) for c in used], axis=1)
            if used
            else np.zeros((len(values), 0))
        )
        fill = np.nanmedian(raw, axis=0)
        full = np.where(np.isnan(raw), fill, raw)
        centre, scale = full.mean(axis=0), full.std(axis=0)
        points = (full - centre) / scale
        sample = points[np.linspace(0, len(points) - 1, min(MOST_ROWS, len(points))).astype(np.int64)]
        curves = count_clusters(sample, seed) if used else Curves([1], [1.0], [0.0], 1, 1)
        if number is not None and not 1 <= number <= (most := len(np.unique(sample, axis=0))):
            raise ModelError(f"{number} profiles of {most:,} different jobs cannot be made; ask for fewer")
        number = number or max(curves.elbow, curves.bic_knee)
        clusters = (
            fit_clusters(sample, number, method, seed) if used else Clusters("kmeans", np.zeros((1, 0)))
        )
        clusters = clusters.ordered(np.argsort(clusters.centres.mean(axis=1) if used else [0], kind="stable"))
        numbers = clusters.assign(points)
        return cls(
            kind=kind,
            names=tuple(COLUMNS[kind][c].name for c in used),
            fill=fill,
            centre=centre,
            scale=scale,
            clusters=clusters,
            profiles=_described(known, values, numbers, len(clusters.centres), kind),
            curves=curves,
            left_out=left_out,
            rows=known.height,
        )

    def numbers(self, jobs: pl.DataFrame) -> pl.Series:
        """The index of each job's profile, from 0; null if no column is known, or the job has no usage yet."""
        raw = np.full((jobs.height, len(self.names)), np.nan)
        values = table(jobs, self._columns)
        for place, column in enumerate(self._columns):
            raw[:, place] = column.scaled(values[:, place])
        points = (np.where(np.isnan(raw), self.fill, raw) - self.centre) / self.scale
        known = ~np.isnan(raw).all(axis=1) if self.names else np.ones(jobs.height, dtype=bool)
        if self.kind == "usage":
            known &= jobs.select(_ended).to_series().to_numpy()
        numbers = pl.Series("profile", self.clusters.assign(points))
        return numbers if known.all() else numbers.set(pl.Series(~known), None)

    def assign(self, jobs: pl.DataFrame) -> pl.Series:
        """The name of each job's profile."""
        numbers = self.numbers(jobs)
        names = [None if n is None else self.profiles[n].name for n in numbers.to_list()]
        return pl.Series("profile", names, pl.String)

    @property
    def _columns(self) -> tuple[Column, ...]:
        return tuple(column for column in COLUMNS[self.kind] if column.name in self.names)

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "columns": list(self.names),
            "fill": self.fill.tolist(),
            "centre": self.centre.tolist(),
            "scale": self.scale.tolist(),
            "clusters": self.clusters.to_json(),
            "profiles": [asdict(profile) for profile in self.profiles],
            "curves": asdict(self.curves),
            "left_out": dict(self.left_out),
            "rows": self.rows,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "Profiles":
        """Read what `to_json` wrote; anything else raises a ModelError."""
        try:
            kind = cast("Kind", document["kind"])
            names = tuple(column.name for column in COLUMNS[kind] if column.name in document["columns"])
            fill, centre, scale = (
                np.array(document[n], dtype=np.float64) for n in ("fill", "centre", "scale")
            )
            profiles = tuple(
                Profile(str(p["name"]), int(p["jobs"]), {str(c): _three(b) for c, b in p["bounds"].items()})
                for p in document["profiles"]
            )
            clusters = Clusters.from_json(document["clusters"], len(names))
            shapes_fit = all(a.shape == (len(names),) and np.isfinite(a).all() for a in (fill, centre, scale))
            if (
                not shapes_fit
                or not (scale > 0).all()
                or len(clusters.centres) != len(profiles)
                or not profiles
            ):
                raise ValueError
            return cls(
                kind, names, fill, centre, scale, clusters, profiles,
                Curves(**document["curves"]), dict(document["left_out"]), int(document["rows"]),
            )  # fmt: skip
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ModelError(
                f"{str(dict(document))[:80]} is not a set of profiles; restore the model from a backup or train again"
            ) from None


def _three(bounds: Any) -> tuple[float, float, float]:
    low, middle, high = bounds
    return float(low), float(middle), float(high)


def _useful(values: NDArray[np.float64], kind: Kind) -> tuple[list[int], dict[str, str]]:
    """The columns that are known for enough jobs and that vary; and why the others are left out."""
    used: list[int] = []
    left_out: dict[str, str] = {}
    constant = False
    for place, column in enumerate(COLUMNS[kind]):
        known = values[~np.isnan(values[:, place]), place]
        if len(known) < _LEAST_KNOWN * len(values):
            left_out[column.label] = f"known for {len(known):,} of {len(values):,} jobs"
        elif np.ptp(column.scaled(known)) < 1e-9:
            left_out[column.label] = f"the same in every job: {column.format(known[0])}"
            constant = True
        else:
            used.append(place)
    if not used and not constant:
        other = "usage" if kind == "request" else "request"
        raise ModelError(f"these jobs have no {kind} fields to group them by; try --kind {other}")
    return used, left_out


def _described(
    jobs: pl.DataFrame, values: NDArray[np.float64], numbers: NDArray[np.int64], count: int, kind: Kind
) -> tuple[Profile, ...]:
    names = profile_names(jobs, pl.Series(numbers), count)
    profiles = []
    for number, name in enumerate(names):
        rows = values[numbers == number]
        bounds = {}
        for place, column in enumerate(COLUMNS[kind]):
            known = rows[~np.isnan(rows[:, place]), place]
            if len(known):
                bounds[column.name] = _three(np.quantile(known, _QUANTILES, method="inverted_cdf").tolist())
        profiles.append(Profile(name, len(rows), bounds))
    return tuple(profiles)
