"""A trained trace detector: the models of CPUs and of job counters with their thresholds."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tocsin.core.detector import Known, Parts
from tocsin.core.errors import ModelError
from tocsin.core.frames import key_text
from tocsin.core.stages import Stage
from tocsin.core.verdict import Anomaly, Finding
from tocsin.models.cards import Window
from tocsin.models.files import MALFORMED, read_document
from tocsin.traces.alarms import NAME, Alarm, finding, in_a_row
from tocsin.traces.likeness import Likeness, likenesses
from tocsin.traces.model import TraceModel
from tocsin.traces.regions import Region
from tocsin.traces.scoring import ARRAY, ScoredModel, array_of
from tocsin.traces.thresholds import Kind, Thresholds, upper_quantile

__all__ = ["FILE", "FittedTraces", "LoadModel"]

FILE = "traces.json"
_VERSION = 1
_NEXT = "train again: tocsin traces train"

LoadModel = Callable[[Path], TraceModel]


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedTraces:
    """Models for the stage `running`; the one of job counters may be missing."""

    cpus: ScoredModel
    jobs: ScoredModel | None
    stride: int
    """Seconds between two windows."""
    interval: int = 1
    """Seconds between two points of a window."""
    window: Window
    """The ends of the first and the last training window."""
    windows: int
    clusters: Sequence[str] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    split: str = ""
    """How the windows that set the thresholds were held back."""

    @property
    def models(self) -> list[ScoredModel]:
        return [self.cpus, *([self.jobs] if self.jobs else [])]

    @property
    def length(self) -> int:
        """Points of a window."""
        return self.cpus.model.length

    @property
    def in_a_row(self) -> int:
        return self.cpus.thresholds.rule.in_a_row

    def scores(self, frame: pl.DataFrame, kinds: pl.DataFrame) -> pl.DataFrame:
        """All windows with `error`, `threshold`, `unusual` and `in_a_row`."""
        found = pl.concat(model.scores(model.windows(frame), kinds) for model in self.models)
        return found.with_columns(in_a_row(found, self.stride))

    def candidates(self, scores: pl.DataFrame) -> list[str]:
        """The jobs whose last windows may raise an alarm, for `assess` to decide. `scores`: the last windows of all jobs.

        This includes tasks that differ from the other running tasks of their array.
        """
        tasks = scores.with_columns(array=array_of()).filter(pl.col("array").is_not_null())
        limits = {
            array: upper_quantile(group["error"].to_numpy(), self.cpus.thresholds.rule.rate, overlap=1)
            for (array,), group in tasks.group_by("array")
            if group["job"].n_unique() > 1
        }
        other = tasks.with_columns(
            unusual=pl.col("error")
            > pl.col("array").replace_strict(limits, default=np.inf, return_dtype=pl.Float64)
        ).drop("array", "in_a_row", strict=False)
        ringing = pl.concat(
            each.with_columns(in_a_row(each, self.stride)).select("job", "at", "in_a_row")
            for each in (scores, other)
        )
        last = ringing.filter(
            pl.col("at") > pl.col("at").max() - 2 * self.stride, pl.col("in_a_row") >= self.in_a_row
        )
        return last["job"].drop_nulls().unique().sort().to_list()

    def assess(self, jobs: pl.DataFrame, known: Known, *, stage: Stage) -> list[Parts]:
        return [
            Parts(findings=[_finding(alarm) for alarm in alarms])
            if alarms is not None
            else Parts(missing={NAME: self._no_window()})
            for alarms in self.alarms(jobs, known, stage=stage)
        ]

    def explain(self, job: pl.DataFrame, known: Known, *, stage: Stage) -> Parts:
        [alarms] = self.alarms(job, known, stage=stage)
        if alarms is None:
            return Parts(missing={NAME: self._no_window()})
        return Parts(
            findings=[_finding(alarm) for alarm in alarms],
            anomalies=[_anomaly(alarm) for alarm in alarms],
        )

    def alarms(
        self, jobs: pl.DataFrame, known: Known, *, stage: Stage
    ) -> list[list[Alarm | Likeness] | None]:
        """For each job, its alarms at `known.now`; None if no window of it is known."""
        if stage is not Stage.RUNNING:
            raise ModelError(f"this model is for {Stage.RUNNING}, not for {stage}")
        if not jobs.height:
            return []
        now = known.now
        if now is None:
            return [None] * jobs.height
        kinds = jobs.select(key_text(), "user", "name")
        since = now - 2 * self.in_a_row * self.stride
        recent = known.windows(jobs, now).filter(pl.col("at").is_between(since, now))
        by_job = {str(job): windows for (job,), windows in recent.group_by("job", maintain_order=True)}
        return [
            self._alarms_of(job, Kind(user, name), by_job[job], jobs[row], known, now)
            if job in by_job
            else None
            for row, (job, user, name) in enumerate(kinds.iter_rows())
        ]

    def _alarms_of(
        self, job: str, kind: Kind, recent: pl.DataFrame, row: pl.DataFrame, known: Known, now: int
    ) -> list[Alarm | Likeness]:
        siblings = recent.head(0)
        if row["task"][0] is not None:
            mine = pl.lit(job).str.extract(ARRAY)
            siblings = known.windows(row, now).filter(pl.col("job") != job, array_of() == mine)
        newest = int(recent["at"].max())  # type: ignore[arg-type]  # an instant
        found: list[Alarm | Likeness] = []
        for model in self.models:
            windows = model.windows(recent.sort("node", "cpu", "at"))
            if not len(windows):
                continue
            scored = model.model.score(windows)
            errors = scored.error.astype(np.float64)
            found += likenesses(
                windows.index,
                scored.embedding,
                model.regions,
                version=model.version,
                stride=self.stride,
                least=self.in_a_row,
            )
            normal, whose = model.normal_for(kind, siblings)
            scores = windows.index.with_columns(unusual=pl.Series(errors > normal.threshold))
            row_length = in_a_row(scores, self.stride)
            rings = ((row_length >= self.in_a_row) & (scores["at"] > newest - self.stride)).to_numpy()
            if rings.any():
                length = row_length.to_numpy()[rings]
                begun = windows.index["at"].to_numpy()[rings] - (length - 1) * self.stride
                found += model.alarms(job, windows[rings], errors[rings], begun.tolist(), normal, whose)
        return found

    def _no_window(self) -> str:
        return f"no window of {self.length * self.interval} s of this job is known; is it younger, or is its node not recorded?"

    def with_regions(self, regions: Sequence[Region], version: str) -> "FittedTraces":
        """The same, but jobs that enter these regions raise an alarm by name; `version` is that of this model."""
        return replace(self, cpus=replace(self.cpus, regions=regions, version=version))

    def save(self, folder: Path) -> None:
        for name, model in (("cpus", self.cpus), ("jobs", self.jobs)):
            if model:
                (folder / name).mkdir()
                model.model.save(folder / name)
        document = {
            "version": _VERSION,
            "stride": self.stride,
            "interval": self.interval,
            "window": [self.window.first, self.window.last],
            "windows": self.windows,
            "clusters": list(self.clusters),
            "figures": dict(self.figures),
            "split": self.split,
            "thresholds": {
                name: model.thresholds.to_json()
                for name, model in (("cpus", self.cpus), ("jobs", self.jobs))
                if model
            },
        }
        (folder / FILE).write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", "utf-8")

    @classmethod
    def load(cls, folder: Path, load_model: LoadModel) -> "FittedTraces":
        document = read_document(folder / FILE, version=_VERSION, next_step=_NEXT)
        try:
            models = {
                name: _scored(load_model(folder / name), thresholds, document)
                for name, thresholds in document["thresholds"].items()
            }
            return cls(
                cpus=models["cpus"],
                jobs=models.get("jobs"),
                stride=int(document["stride"]),
                interval=int(document["interval"]),
                window=Window(first=document["window"][0], last=document["window"][1]),
                windows=int(document["windows"]),
                clusters=tuple(document["clusters"]),
                figures=document["figures"],
                split=document["split"],
            )
        except MALFORMED as error:
            raise ModelError(f"{folder / FILE} cannot be read: {str(error)[:200]}; {_NEXT}") from None


def _scored(model: TraceModel, thresholds: dict[str, Any], document: dict[str, Any]) -> ScoredModel:
    return ScoredModel(
        model=model,
        thresholds=Thresholds.from_json(thresholds),
        stride=int(document["stride"]),
        interval=int(document["interval"]),
    )


def _finding(alarm: Alarm | Likeness) -> Finding:
    return alarm.finding() if isinstance(alarm, Likeness) else finding(alarm)


def _anomaly(alarm: Alarm | Likeness) -> Anomaly:
    if isinstance(alarm, Likeness):
        part, score = alarm.name, alarm.inside / alarm.windows
    else:
        part, score = alarm.channel, alarm.error / alarm.threshold
    text = f"{alarm.text} ({'; '.join(alarm.evidence)})"
    return Anomaly(detector=NAME, kind=alarm.kind, part=part, score=score, text=text)
