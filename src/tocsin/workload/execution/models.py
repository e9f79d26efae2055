"""The trained execution-time models of all operations: they classify ended jobs by their counters."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.errors import ModelError
from tocsin.core.stages import Stage
from tocsin.core.verdict import Screening
from tocsin.models.calibration import Calibrator, calibrator_from_json
from tocsin.models.cards import Card, Window
from tocsin.models.engines import Booster, Floats, engine
from tocsin.models.files import MALFORMED, read_document
from tocsin.models.metrics import Metric
from tocsin.workload.execution.features import RATIOS, candidates, matrix
from tocsin.workload.execution.gate import Gate

__all__ = ["FILE", "Classifier", "FittedExecution", "load_execution"]

FILE = "execution.json"
VERSION = 2
"""Version of the file format."""
_NOT_ENDED = "the job has not ended, so what it did is not known yet"
_NO_COUNTER = "no counter of the job is known, so its execution cannot be classified"
_LABELS = (
    "from the script classifier, so they are not proof; people's answers to cases override it. "
    "A model is used only for operations that pass the gate"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Classifier:
    """The forest of one operation."""

    features: tuple[str, ...]
    dropped: Mapping[str, str]
    """Features that it does not use, and why."""
    forest: Booster
    calibrator: Calibrator
    figures: Sequence[Metric]
    """From the rehearsal on the window's last jobs; empty if there was none."""
    rows: int
    positive: int
    gate: Gate | None = None
    """None if not requested: a model for research."""

    @property
    def refused(self) -> str | None:
        """Why it may not be used."""
        return self.gate.refused if self.gate else None

    def probabilities(self, values: pl.DataFrame) -> Floats:
        return self.calibrator.apply(self.forest.predict(matrix(values, self.features)))


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedExecution:
    """One classifier for each operation that could be learned."""

    operations: Mapping[str, Classifier]
    untrained: Mapping[str, str]
    """Operations that could not be learned, and why."""
    alpha_days: float
    rows: int
    window: Window
    shortest: int = 0
    """Jobs that ran for fewer seconds are not classified."""

    @property
    def in_use(self) -> dict[str, Classifier]:
        """The classifiers that passed the gate."""
        return {name: each for name, each in self.operations.items() if not each.refused}

    @property
    def features(self) -> tuple[str, ...]:
        """The features of any classifier in use."""
        return tuple(dict.fromkeys(name for each in self.in_use.values() for name in each.features))

    def screen(self, jobs: pl.DataFrame) -> list[Screening | None]:
        """One per row; None for a job that has not ended, ran too short, or has no known counter."""
        used = self.in_use
        if not jobs.height or not used:
            return [None] * jobs.height
        values = candidates(jobs, self.features)
        p = {name: each.probabilities(values).tolist() for name, each in used.items()}
        silent = _not_ended(jobs) | self._too_short(jobs) | self._blank(values)
        return [
            None if quiet else Screening(operations={name: p[name][row] for name in p})
            for row, quiet in enumerate(silent.tolist())
        ]

    def missing(self, jobs: pl.DataFrame) -> list[str | None]:
        """For each job, why its execution could not be classified, or which counters are missing."""
        if not jobs.height or not self.in_use:
            return [self._sentence(())] * jobs.height
        values = candidates(jobs, self.features)
        looked_at = [name for name in self.features if name not in RATIOS]
        gaps = np.isnan(matrix(values, looked_at))
        patterns, place = np.unique(gaps, axis=0, return_inverse=True)
        sentences = [
            self._sentence([n for n, gap in zip(looked_at, row, strict=True) if gap]) for row in patterns
        ]
        running, blank = _not_ended(jobs).tolist(), self._blank(values).tolist()
        short = self._too_short(jobs).tolist()
        too_short = f"the job ran for less than {self.shortest} s, too short to classify what it did"
        return [
            _NOT_ENDED
            if running[row]
            else too_short
            if short[row]
            else _NO_COUNTER
            if blank[row]
            else sentences[pattern]
            for row, pattern in enumerate(place.ravel().tolist())
        ]

    def save(self, folder: Path) -> None:
        """Each forest in LightGBM's own text, and everything else as JSON."""
        forests = {name: f"execution-{number + 1}.txt" for number, name in enumerate(self.operations)}
        document = {
            "version": VERSION,
            "operations": {
                name: {
                    "file": forests[name],
                    "features": list(each.features),
                    "dropped": dict(each.dropped),
                    "calibrator": each.calibrator.to_json(),
                    "figures": [asdict(figure) for figure in each.figures],
                    "rows": each.rows,
                    "positive": each.positive,
                    "gate": each.gate.to_json() if each.gate else None,
                }
                for name, each in self.operations.items()
            },
            "untrained": dict(self.untrained),
            "alpha_days": self.alpha_days,
            "rows": self.rows,
            "window": asdict(self.window),
            "shortest": self.shortest,
        }
        (folder / FILE).write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", "utf-8")
        for name, each in self.operations.items():
            each.forest.save(folder / forests[name])

    def card(self, *, created: int, data: str = "training") -> Card:
        """For the registry: the model of the detector `workload` at the end of a job."""
        return Card(
            detector="workload",
            stage=Stage.END,
            engine="bagged",
            operations=list(self.operations),
            created=created,
            window=self.window,
            rows=self.rows,
            features=self.features,
            parameters={
                "alpha_days": self.alpha_days,
                "shortest_seconds": self.shortest,
                "labels": _LABELS,
                "operations": {
                    name: {
                        "jobs": each.rows,
                        "positive": each.positive,
                        "gate": each.gate.to_json() if each.gate else None,
                        "refused": each.refused,
                        "dropped": dict(each.dropped),
                    }
                    for name, each in self.operations.items()
                },
                "untrained": dict(self.untrained),
            },
            calibration={name: each.calibrator.to_json() for name, each in self.operations.items()},
            figures=[
                figure.figure(
                    stage=Stage.END,
                    split=f"{name}: trained on the window's first 80 % by end, measured on the rest before calibration, "
                    "against the labels of the script classifier and of people",
                    data=data,
                )
                for name, each in self.operations.items()
                for figure in each.figures
            ],
        )

    def _blank(self, values: pl.DataFrame) -> NDArray[np.bool_]:
        """Whether no counter that a classifier uses is known."""
        return np.asarray(np.isnan(matrix(values, self.features)).all(axis=1))

    def _too_short(self, jobs: pl.DataFrame) -> NDArray[np.bool_]:
        return (jobs["elapsed"] < self.shortest).fill_null(False).to_numpy()

    def _sentence(self, absent: Sequence[str]) -> str | None:
        reasons = [f"{name} was not trained: {why}" for name, why in self.untrained.items()]
        reasons += [
            f"{name} is not used: {each.refused}" for name, each in self.operations.items() if each.refused
        ]
        if absent:
            reasons.insert(0, f"counters missing for this job: {', '.join(absent)}; the others were used")
        return "; ".join(reasons) or None


def load_execution(folder: Path, *, threads: int = 1) -> FittedExecution:
    """Load saved models; a damaged file is refused by name."""
    path = folder / FILE
    again = "restore it from a backup or train again: tocsin train execution"
    document = read_document(path, version=VERSION, next_step=again)
    try:
        return FittedExecution(
            operations={
                str(name): _classifier(saved, folder, threads)
                for name, saved in document["operations"].items()
            },
            untrained={str(name): str(why) for name, why in document["untrained"].items()},
            alpha_days=float(document["alpha_days"]),
            rows=int(document["rows"]),
            window=Window(**document["window"]),
            shortest=int(document["shortest"]),
        )
    except MALFORMED as error:
        raise ModelError(f"{path} is damaged ({str(error)[:100]}); {again}") from None


def _classifier(saved: Mapping[str, Any], folder: Path, threads: int) -> Classifier:
    file = saved["file"]
    if Path(file).name != file:
        raise ValueError(f"{file!r} is not a file name")
    return Classifier(
        features=tuple(str(name) for name in saved["features"]),
        dropped={str(name): str(why) for name, why in saved["dropped"].items()},
        forest=engine("bagged").load(folder / file, threads=threads),
        calibrator=calibrator_from_json(saved["calibrator"]),
        figures=[Metric(**figure) for figure in saved["figures"]],
        rows=int(saved["rows"]),
        positive=int(saved["positive"]),
        gate=None if saved["gate"] is None else Gate(**saved["gate"]),
    )


def _not_ended(jobs: pl.DataFrame) -> NDArray[np.bool_]:
    return jobs["end"].is_null().to_numpy()
