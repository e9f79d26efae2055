"""A failure model on disk: the booster in its native text, its holdout as a table, everything else as JSON."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from tocsin.core.errors import ModelError
from tocsin.core.outcomes import Target
from tocsin.failure.causes import READ as CAUSES_READ
from tocsin.failure.columns import Columns
from tocsin.failure.experience import Experience, Layout
from tocsin.failure.explainers import Explainers
from tocsin.failure.findings import NAME
from tocsin.failure.holdout import Calibrated, Holdout
from tocsin.failure.missing import CLUSTER_JOBS, USER_JOBS
from tocsin.failure.plan import Plan, plan_from_json
from tocsin.failure.recent_scores import RecentScores
from tocsin.failure.resources import READ as RESOURCES_READ
from tocsin.failure.resources import ResourceModel
from tocsin.failure.shortages import Shortages
from tocsin.models.cards import Window
from tocsin.models.engines import Booster, engine
from tocsin.models.files import MALFORMED, read_json
from tocsin.models.promise import Range, later_precision

__all__ = ["FILE", "VERSION", "FailureModel"]

VERSION = 6
"""Version of the file format."""
FILE = "failure.json"
_HOLDOUT = "holdout.parquet"
_EXPERIENCE = "experience.txt"
_RECENT = "recent.parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureModel:
    """The result of a training."""

    columns: Columns
    target: Target
    engine: str
    booster: Booster
    plan: Plan
    holdout: Holdout
    calibrated: Calibrated
    """In use: chosen with the whole holdout."""
    rehearsal: Calibrated
    """Chosen with the first half of the holdout, and measured on the second."""
    causes: Mapping[str, float]
    """The share of each cause among failures in the training set."""
    window: Window
    rows: int
    clusters: tuple[str, ...]
    """The clusters whose jobs trained it."""
    resources: ResourceModel
    shortages: Shortages
    explainers: Explainers | None = None
    """None in a back-test, where nothing is explained, and in the shipped model."""
    experience: Experience | None = None
    """Experience from other clusters, blended with what this model learned."""
    recent: RecentScores | None = None
    """Scores by models in use for the last jobs before this one; they count in its blend."""
    shipped: bool = False
    """It learned only from other clusters, and is for all that have no model of their own."""
    settled: bool = True
    """False: the target depends on the jobs that are assessed; only for the shipped model."""
    _layout: Layout | None = field(init=False, repr=False, compare=False)
    _reads: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """The statistics of history that a prediction needs."""

    def __post_init__(self) -> None:
        layout = Layout(self.columns, self.experience.columns) if self.experience else None
        object.__setattr__(self, "_layout", layout)
        object.__setattr__(self, "_reads", _statistics_read(self))

    @classmethod
    def load(cls, folder: Path, *, threads: int) -> Self:
        return cls(**_read(folder, threads=threads))

    def save(self, folder: Path) -> None:
        _write(self, folder)

    def promised(self) -> Range | None:
        """The precision of its alarms, with the range expected in later months; None if there were no alarms.

        Measured on the last training jobs, which chose nothing. The threshold in use was chosen again, including those
        jobs; the range covers it, too.
        """
        measured = _precision(self.rehearsal, self.holdout.part(self.holdout.measures))
        in_use = _precision(self.calibrated, self.holdout)
        if measured is None or in_use is None:
            return measured
        return Range(measured.value, min(measured.low, in_use.low), max(measured.high, in_use.high))


def _statistics_read(model: FailureModel) -> tuple[str, ...]:
    names = (
        *model.columns.reads,
        *(model.experience.columns.reads if model.experience else ()),
        *((CLUSTER_JOBS,) if model.shipped else ()),
        USER_JOBS,
        *(CAUSES_READ if model.causes else ()),
        *RESOURCES_READ,
    )
    return tuple(dict.fromkeys(names))


def _precision(chosen: Calibrated, rows: Holdout) -> Range | None:
    alarms = chosen.probabilities(rows) >= chosen.threshold.value
    return later_precision(alarms, rows.failed, rows.submit)


def _write(model: FailureModel, folder: Path) -> None:
    document = {
        "version": VERSION,
        "columns": model.columns.to_json(),
        "target": str(model.target),
        "engine": model.engine,
        "plan": model.plan.to_json(),
        "calibrated": model.calibrated.to_json(),
        "rehearsal": model.rehearsal.to_json(),
        "causes": dict(model.causes),
        "window": asdict(model.window),
        "rows": model.rows,
        "clusters": list(model.clusters),
        "explainers": model.explainers is not None,
        "shipped": model.shipped,
        "recent": model.recent is not None,
        "experience": model.experience and {"columns": model.experience.columns.to_json()},
    }
    text = json.dumps(document, indent=1, sort_keys=True, allow_nan=False)
    (folder / FILE).write_text(text + "\n", "utf-8")
    model.booster.save(folder / f"model{engine(model.engine).suffix}")
    model.holdout.frame().write_parquet(folder / _HOLDOUT)
    model.resources.save(folder)
    model.shortages.save(folder)
    if model.explainers:
        model.explainers.save(folder)
    if model.experience:
        model.experience.booster.save(folder / _EXPERIENCE)
    if model.recent:
        model.recent.frame().write_parquet(folder / _RECENT)
    _write_curves(model, folder)


def _read(folder: Path, *, threads: int) -> dict[str, Any]:
    """The fields of a FailureModel; any other file is refused by name."""
    path = folder / FILE
    try:
        document = read_json(path)
    except (OSError, *MALFORMED) as error:
        raise ModelError(
            f"{path} cannot be read: {str(error)[:200]}; train the detector {NAME} again"
        ) from None
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise ModelError(f"{path} is not of version {VERSION}; train the detector {NAME} again")
    try:
        found = engine(document["engine"])
        return {
            "columns": Columns.from_json(document["columns"]),
            "target": Target(document["target"]),
            "engine": found.name,
            "booster": found.load(folder / f"model{found.suffix}", threads=threads),
            "plan": plan_from_json(document["plan"]),
            "holdout": Holdout.read(folder / _HOLDOUT),
            "calibrated": Calibrated.from_json(document["calibrated"]),
            "rehearsal": Calibrated.from_json(document["rehearsal"]),
            "causes": {str(cause): float(share) for cause, share in document["causes"].items()},
            "window": Window(**document["window"]),
            "rows": int(document["rows"]),
            "clusters": tuple(str(name) for name in document["clusters"]),
            "resources": ResourceModel.load(folder, threads=threads),
            "shortages": Shortages.load(folder),
            "explainers": Explainers.load(folder) if document["explainers"] else None,
            "shipped": document.get("shipped", False) is True,
            "settled": document.get("shipped", False) is not True,
            "recent": RecentScores.read(folder / _RECENT) if document.get("recent") else None,
            "experience": _experience(document.get("experience"), folder, threads=threads),
        }
    except MALFORMED as error:
        raise ModelError(
            f"{path} was changed after it was written ({str(error)[:100]}); restore it from a backup or train again"
        ) from None


def _experience(document: Any, folder: Path, *, threads: int) -> Experience | None:
    if document is None:
        return None
    booster = engine("lightgbm").load(folder / _EXPERIENCE, threads=threads)
    return Experience(Columns.from_json(document["columns"]), booster)


def _write_curves(model: FailureModel, folder: Path) -> None:
    from tocsin.models.curves import curves  # imported lazily: predictions never need it

    rows = model.holdout.part(model.holdout.measures)
    p = model.rehearsal.probabilities(rows)
    found = curves(rows.failed, p, threshold=model.rehearsal.threshold.value)
    (folder / "curves.json").write_text(json.dumps(found, sort_keys=True, allow_nan=False) + "\n", "utf-8")
