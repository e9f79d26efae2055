"""What stands beside a failure model: needs, habits and past jobs of the training, for explanation and advice."""

import json
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tocsin.core.errors import ModelError
from tocsin.failure.plan import Plan
from tocsin.failure.resources import ResourceModel
from tocsin.failure.shortages import Shortages
from tocsin.failure.similar import SimilarJobs
from tocsin.failure.unusual_requests import UnusualRequests
from tocsin.models.engines import Matrix
from tocsin.profiles.profiles import Profiles

__all__ = ["Explainers"]

_PROFILES = "profiles.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explainers:
    """Fitted on the same rows as the model."""

    resources: ResourceModel
    odd: UnusualRequests
    similar: SimilarJobs
    shortages: Shortages
    profiles: Profiles | None
    """None where the jobs' requests tell no groups apart."""

    @classmethod
    def fit(cls, X: Matrix, jobs: pl.DataFrame, plan: Plan, *, seed: int, threads: int) -> "Explainers":
        """`X` has the plan's columns; rows in the order of time, outcomes known."""
        gains = [plan.importances.get(name, 0.0) for name in plan.names]
        return cls(
            resources=ResourceModel.fit(X, jobs, seed=seed, threads=threads),
            odd=UnusualRequests.fit(jobs),
            similar=SimilarJobs.fit(X, jobs, gains),
            shortages=Shortages.fit(jobs),
            profiles=_profiles(jobs, seed),
        )

    def save(self, folder: Path) -> None:
        for part in (self.resources, self.odd, self.similar, self.shortages):
            part.save(folder)
        if self.profiles:
            text = json.dumps(self.profiles.to_json(), sort_keys=True, allow_nan=False)
            (folder / _PROFILES).write_text(text + "\n", "utf-8")

    @classmethod
    def load(cls, folder: Path, *, threads: int) -> "Explainers":
        path = folder / _PROFILES
        return cls(
            resources=ResourceModel.load(folder, threads=threads),
            odd=UnusualRequests.load(folder),
            similar=SimilarJobs.load(folder),
            shortages=Shortages.load(folder),
            profiles=Profiles.from_json(json.loads(path.read_text("utf-8"))) if path.exists() else None,
        )


def _profiles(jobs: pl.DataFrame, seed: int) -> Profiles | None:
    try:
        return Profiles.fit(jobs, "request", seed=seed)
    except ModelError:
        return None
