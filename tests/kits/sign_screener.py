"""A screener and a detector that use only signs in scripts: fast, and independent of any trained model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tocsin.core.detector import Budget, Known, Parts
from tocsin.core.stages import Stage
from tocsin.core.verdict import Evidence, Screening, Workload
from tocsin.workload.signs.look import signs


class SignScreener:
    def screen(self, texts: Sequence[str], *, requests: Any = None) -> list[Screening]:
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> Screening:
        found = [sign for sign in signs(text) if sign.operation]
        operations = dict.fromkeys(("ai", "cryptomining", "cyber"), 0.01)
        operations |= {str(sign.operation): 0.99 for sign in found}
        if "torch" in text:
            operations["ai"] = 0.9
        return Screening(
            operations=operations,
            language="bash",
            evidence=[Evidence(line=sign.line, operation=str(sign.operation)) for sign in found],
        )


class SignDetector:
    name = "workload"
    stages = (Stage.SUBMIT,)
    learns = False
    needs = ()

    def fit(
        self, jobs: pl.DataFrame, known: Known, *, stage: Stage, seed: int, budget: Budget
    ) -> "SignDetector":
        return self

    def assess(self, jobs: pl.DataFrame, known: Known, *, stage: Stage) -> list[Parts]:
        texts = [known.script(digest) if digest else None for digest in jobs["script"]]
        return [
            Parts(workload=Workload(submission=SignScreener()._one(text))) if text is not None else Parts()
            for text in texts
        ]

    def explain(self, job: pl.DataFrame, known: Known, *, stage: Stage) -> Parts:
        return self.assess(job, known, stage=stage)[0]

    def save(self, folder: Path) -> None: ...

    def load(self, folder: Path) -> "SignDetector":
        return self


@pytest.fixture
def by_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make commands use these instead of trained models."""
    for module in ("classify", "judge"):  # the first imports from the second
        monkeypatch.setattr(f"tocsin.app.{module}.open_screener", lambda app: SignScreener())
    monkeypatch.setattr(
        "tocsin.judge.plugins.find_detectors", lambda broken=None: {"workload": SignDetector()}
    )
