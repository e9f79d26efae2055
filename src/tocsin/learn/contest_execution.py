"""The contest of the execution-time models: macro-F1 on jobs of answered cases that neither was trained on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.errors import ModelError
from tocsin.core.frames import key_text
from tocsin.core.stages import Stage
from tocsin.core.units import format_instant
from tocsin.core.verdict import SEEN_FROM
from tocsin.learn.comparison import Measure
from tocsin.learn.contest import Champion, Night, Trained
from tocsin.learn.feedback import answered
from tocsin.learn.train_execution import fit_on_store
from tocsin.models.drift import Drift, stability
from tocsin.models.splits import DAY
from tocsin.store.jobs import Filter, load
from tocsin.workload.execution.features import candidates, matrix
from tocsin.workload.execution.models import FittedExecution, load_execution

__all__ = ["ExecutionContest", "macro_f1"]

FEWEST_ANSWERED = 20
_FEATURES = 5

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ExecutionContest:
    stages: Sequence[Stage] = (Stage.END,)
    figure: str = "macro_f1"
    higher_is_better: bool = True

    def prepare(self, champion: Champion, night: Night) -> "ExecutionMatch":
        """Hold back the jobs that ended in the last days; those with an answer are compared on."""
        model = load_execution(champion.folder, threads=night.threads)
        jobs = load(night.store, Filter(clusters=[champion.cluster] if champion.cluster else []))
        ended = jobs.filter(
            pl.col("outcome").is_not_null(),
            pl.coalesce("known_at", "end") <= night.now,
            ~pl.col("intervened").fill_null(False),
        )
        if ended.is_empty():
            raise ModelError("no job has ended; run `tocsin watch`, or import newer jobs")
        until = int(ended["end"].max())  # type: ignore[arg-type]  # an instant
        cut = until - round(night.holdback_days * DAY)
        if cut <= model.window.last:
            raise ModelError(
                f"it was trained on jobs up to {format_instant(model.window.last)}, and what ended after "
                f"{format_instant(cut)} is held back, so there is nothing new to train on yet"
            )
        later = ended.filter(pl.col("end") > cut, pl.col("submit") > model.window.last).with_columns(
            key_text()
        )
        people = answered(night.store, later)
        held = later.filter(pl.col("job").is_in(list(people)))
        if held.height < FEWEST_ANSWERED:
            raise ModelError(
                f"{held.height:,} of the {later.height:,} jobs that ended since {format_instant(cut)} belong to an "
                f"answered case; a contest needs {FEWEST_ANSWERED} (see: tocsin cases)"
            )
        return ExecutionMatch(champion, night, model, ended, later, held, people, cut)


@dataclass(frozen=True, slots=True)
class ExecutionMatch:
    champion: Champion
    night: Night
    model: FittedExecution
    """The champion."""
    ended: pl.DataFrame
    later: pl.DataFrame
    held: pl.DataFrame
    """The later jobs that people answered for."""
    people: Mapping[str, Mapping[str, bool]]
    cut: int

    @property
    def held_back(self) -> str:
        return f"{self.held.height:,} jobs of answered cases that ended since {format_instant(self.cut)}"

    def retrain(self) -> Trained:
        """On as many days as the champion, up to the held-back ones."""
        fitted, card = fit_on_store(
            self.night.store, now=self.cut, alpha_days=self.model.alpha_days, cluster=self.champion.cluster
        )
        return Trained(fitted.save, card)

    def refused(self, challenger: Path) -> str | None:
        """The gate: without an operation that passes it, the model is not used."""
        model = load_execution(challenger)
        if model.in_use:
            return None
        reasons = (f"{name}: {each.refused}" for name, each in model.operations.items())
        return f"no operation passes the gate ({'; '.join(reasons)})"

    @property
    def blocks(self) -> NDArray[Any]:
        """One answer covers the user's jobs with the same script."""
        same = pl.concat_str(pl.col("user").fill_null(""), pl.coalesce("script", "job"), separator="/")
        return self.held.select(same).to_series().to_numpy()

    def compare(self, champion: Path, challenger: Path) -> Measure:
        operations = sorted({name for flags in self.people.values() for name in flags})
        labels = [self.people[job] for job in self.held["job"].to_list()]
        truth = {name: np.array([flags.get(name, np.nan) for flags in labels], float) for name in operations}
        one, other = (self._seen(load_execution(folder), operations) for folder in (champion, challenger))
        return lambda weight: (macro_f1(truth, one, weight), macro_f1(truth, other, weight))

    def drift(self) -> list[Drift]:
        window, names = self.model.window, self.model.features[:_FEATURES]
        then = self.ended.filter(pl.col("submit").is_between(window.first, window.last))
        before, after = (matrix(candidates(jobs, names), names) for jobs in (then, self.later))
        return [
            Drift(name=name, stability=stability(before[:, place], after[:, place]))
            for place, name in enumerate(names)
        ]

    def _seen(self, model: FittedExecution, operations: Sequence[str]) -> dict[str, Flags]:
        """What the model would report; an operation that it does not use is found in no job."""
        found = model.screen(self.held.drop("job"))
        return {
            name: np.array([bool(each and each.operations.get(name, 0) >= SEEN_FROM) for each in found])
            for name in operations
        }


def macro_f1(truth: Mapping[str, Floats], seen: Mapping[str, Flags], weight: Floats) -> float:
    """The mean over operations, and over jobs that are and are not the operation (RoWD, section 5.1).

    `truth` is NaN if nobody answered for the operation.
    """
    scores = []
    for name, label in truth.items():
        known = ~np.isnan(label)
        is_it, called_it, w = label[known] > 0, seen[name][known], weight[known]
        for positive, called in ((is_it, called_it), (~is_it, ~called_it)):
            right = float(w[positive & called].sum())
            both = float(w[positive].sum() + w[called].sum())
            if both:
                scores.append(2 * right / both)
    return float(np.mean(scores)) if scores else float("nan")
