"""Challengers beside the models in use: they score the same jobs at the same stages, and nothing acts on the scores."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import polars as pl

from tocsin.core.detector import Known
from tocsin.core.errors import ModelError, StoreError
from tocsin.core.frames import key_text
from tocsin.core.stages import Stage
from tocsin.judge.answers import Model, as_known, error_text
from tocsin.store import scores
from tocsin.store.database import Store
from tocsin.store.scores import Score

__all__ = ["Challengers", "Judged"]


@dataclass(frozen=True, slots=True)
class Judged:
    """The jobs that a round gave verdicts on, by stage, and what was known of them then."""

    jobs: Mapping[Stage, pl.DataFrame]
    known: Known
    at: int


@dataclass(slots=True)
class Challengers:
    """Records what was judged, and scores it after the verdicts are given: no verdict waits for a challenger.

    Jobs that a killed process did not score have no score: a comparison uses the jobs that both models scored.
    """

    store: Store
    models: Callable[[], Mapping[Stage, Mapping[str, Model]]]
    """The models that run beside those in use, by stage and detector."""
    notify: Callable[[str], None] = lambda _text: None
    judged: Judged | None = None
    _reported: set[str] = field(default_factory=set)

    def score(self) -> None:
        """Score the jobs of the last round; call it before the next one, which discards what was known."""
        judged, self.judged = self.judged, None
        if judged is None:
            return
        try:
            models = self.models()
            found = [
                score
                for stage, jobs in judged.jobs.items()
                if jobs.height
                for name, model in models.get(stage, {}).items()
                for score in self._scores(name, model, stage, jobs, judged)
            ]
            scores.keep(self.store, found)
        except (ModelError, StoreError, OSError) as error:  # the watch must go on
            self._report(f"the scores of challengers were not stored: {error}")

    def _scores(
        self, name: str, model: Model, stage: Stage, jobs: pl.DataFrame, judged: Judged
    ) -> list[Score]:
        try:
            parts = model.fitted.assess(as_known(jobs, stage), judged.known, stage=stage)
        except Exception as error:  # a plug-in may fail in any way
            self._report(f"the challenger {name} {model.version} at {stage}: {error_text(error)}")
            return []
        keys = jobs.select(key_text()).to_series()
        return [
            Score(
                key, stage, name, model.version, judged.at, part.failure.probability, part.failure.threshold
            )
            for key, part in zip(keys, parts, strict=True)
            if part.failure is not None
        ]

    def _report(self, text: str) -> None:
        if text not in self._reported:
            self._reported.add(text)
            self.notify(text)
