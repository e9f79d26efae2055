"""Rings for users whose jobs mostly failed; knows nothing of tocsin but the contract of a detector."""

import json
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tocsin.core.detector import Budget, Known, Need, Parts
from tocsin.core.stages import Stage
from tocsin.core.verdict import Finding, Level


@dataclass
class FittedSiren:
    threshold: float

    def assess(self, jobs: pl.DataFrame, known: Known, *, stage: Stage) -> list[Parts]:
        shares = known.features(jobs, stage=stage)["user.failed"]
        return [self._parts(share) for share in shares]

    def explain(self, job: pl.DataFrame, known: Known, *, stage: Stage) -> Parts:
        return self.assess(job, known, stage=stage)[0]

    def save(self, folder: Path) -> None:
        (folder / "siren.json").write_text(json.dumps({"threshold": self.threshold}))

    def _parts(self, share: float | None) -> Parts:
        if share is None or share < self.threshold:
            return Parts(missing={"siren": "the user is new here"} if share is None else {})
        text = f"{share:.0%} of the jobs of this user failed; look at their logs first"
        return Parts(
            findings=[Finding(detector="siren", kind="often_failed", level=Level.WARNING, text=text)]
        )


@dataclass(frozen=True)
class Siren:
    name: str = "siren"
    stages: tuple[Stage, ...] = (Stage.SUBMIT,)
    learns: bool = True
    needs: tuple[Need, ...] = (Need.HISTORY,)

    def fit(
        self, jobs: pl.DataFrame, known: Known, *, stage: Stage, seed: int, budget: Budget
    ) -> FittedSiren:
        share = (jobs["outcome"] == "failed").mean()
        return FittedSiren(2 * share if isinstance(share, float) else 0.5)

    def load(self, folder: Path) -> FittedSiren:
        return FittedSiren(json.loads((folder / "siren.json").read_text())["threshold"])


DETECTOR = Siren()
