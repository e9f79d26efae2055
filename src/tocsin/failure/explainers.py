"""What only explanations need: unusual requests, similar jobs and profiles of the training jobs."""

import json
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tocsin.core.errors import ModelError
from tocsin.failure.plan import Plan
from tocsin.failure.similar import SimilarJobs
from tocsin.failure.unusual_requests import UnusualRequests
from tocsin.models.engines import Matrix
from tocsin.models.files import read_json
from tocsin.profiles.profiles import Profiles

__all__ = ["Explainers"]

_PROFILES = "profiles.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explainers:
    """Fitted on the same rows as the model."""

    unusual: UnusualRequests
    similar: SimilarJobs
    profiles: Profiles | None
    """None if requests do not separate jobs into groups."""

    @classmethod
    def fit(cls, X: Matrix, jobs: pl.DataFrame, plan: Plan, *, seed: int) -> "Explainers":
        """`X` has the plan's columns; rows are in order of time, outcomes known."""
        gains = [plan.importances.get(name, 0.0) for name in plan.names]
        return cls(
            unusual=UnusualRequests.fit(jobs),
            similar=SimilarJobs.fit(X, jobs, gains),
            profiles=_profiles(jobs, seed),
        )

    def save(self, folder: Path) -> None:
        self.unusual.save(folder)
        self.similar.save(folder)
        if self.profiles:
            text = json.dumps(self.profiles.to_json(), sort_keys=True, allow_nan=False)
            (folder / _PROFILES).write_text(text + "\n", "utf-8")

    @classmethod
    def load(cls, folder: Path) -> "Explainers":
        path = folder / _PROFILES
        return cls(
            unusual=UnusualRequests.load(folder),
            similar=SimilarJobs.load(folder),
            profiles=Profiles.from_json(read_json(path)) if path.exists() else None,
        )


def _profiles(jobs: pl.DataFrame, seed: int) -> Profiles | None:
    try:
        return Profiles.fit(jobs, "request", seed=seed)
    except ModelError:
        return None
