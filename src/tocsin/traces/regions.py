"""Regions of the embedding space that people confirmed as bad, and which windows are in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.core.errors import InputError, ModelError

__all__ = ["MOST_OTHERS", "QUANTILE", "Entered", "Region", "Shape", "fit_shape", "regions_entered"]

QUANTILE = 0.95
"""Share of the confirmed windows that lie inside their region."""
MOST_OTHERS = 0.001
"""Share of the windows of other jobs that may be inside; the radius shrinks until it holds."""
_FEWEST = 10  # windows: the spread of fewer says nothing about the next job
_LEAST_KEPT = 0.5


class Shape(NamedTuple):
    """A ball in the embedding space."""

    centroid: NDArray[np.float64]
    radius: float

    def distances(self, embeddings: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(np.linalg.norm(embeddings - self.centroid, axis=1), dtype=np.float64)

    def holds(self, embeddings: NDArray[Any]) -> NDArray[np.bool_]:
        return self.distances(embeddings) <= self.radius


@dataclass(frozen=True, slots=True)
class Region:
    """Where the windows of one confirmed job are, in the embeddings of one version of the model."""

    number: int
    name: str
    version: str
    shape: Shape
    confirmed: int
    """The instant at which it was confirmed."""


@dataclass(frozen=True, slots=True)
class Entered:
    """A kind of bad job, and which windows are like it."""

    name: str
    inside: NDArray[np.bool_]
    """For each window, in order."""
    regions: tuple[Region, ...]
    """The confirmed regions of that name that contain any of the windows."""

    @property
    def count(self) -> int:
        return int(self.inside.sum())


def fit_shape(embeddings: NDArray[Any], others: NDArray[Any] | None = None) -> Shape:
    """The centroid of confirmed windows, and the radius that holds QUANTILE of them.

    `others` are normal windows of other jobs. The next job of the same kind differs more than the windows of one job
    do, so the radius grows to half of the distance at which they begin. If more than MOST_OTHERS of them would be
    inside, it shrinks; if it then holds fewer than half of the confirmed windows, the model cannot tell them apart: an
    InputError.
    """
    if len(embeddings) < _FEWEST:
        raise InputError(
            f"{len(embeddings)} windows are too few for a region; {_FEWEST} are needed. Confirm a job that ran longer"
        )
    centroid = np.asarray(embeddings, dtype=np.float64).mean(axis=0)
    own = np.linalg.norm(embeddings - centroid, axis=1)
    radius = float(np.quantile(own, QUANTILE))
    if others is not None and len(others):
        nearest = np.sort(np.linalg.norm(others - centroid, axis=1))
        first_outside = nearest[int(MOST_OTHERS * len(nearest))]
        radius = min(max(radius, float(first_outside) / 2), float(np.nextafter(first_outside, 0)))
    kept = float((own <= radius).mean())
    if kept < _LEAST_KEPT:
        raise InputError(
            f"only {kept:.0%} of these windows differ from those of other jobs, so a region would also match "
            "normal jobs; confirm the part of the job that was bad (-S, -E), or train a new model first"
        )
    return Shape(centroid, radius)


def regions_entered(embeddings: NDArray[Any], regions: Sequence[Region], *, version: str) -> list[Entered]:
    """The names of the regions that contain any of these windows, most windows first.

    `version` is the model that made the embeddings; regions of another version cannot be compared with them.
    """
    found: dict[str, list[tuple[Region, NDArray[np.bool_]]]] = {}
    for region in regions:
        if region.version != version:
            raise ModelError(
                f'the region "{region.name}" belongs to model {region.version}, these windows to model {version}; '
                "compute the region for that model first"
            )
        inside = region.shape.holds(embeddings)
        if inside.any():
            found.setdefault(region.name, []).append((region, inside))
    entered = [
        Entered(
            name,
            np.logical_or.reduce([inside for _, inside in hits]),
            tuple(region for region, _ in hits),
        )
        for name, hits in found.items()
    ]
    return sorted(entered, key=lambda each: (-each.count, each.name))
