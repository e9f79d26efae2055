"""The registry card of a failure model."""

from dataclasses import replace
from typing import TYPE_CHECKING

from tocsin.core.units import format_instant
from tocsin.failure.findings import NAME
from tocsin.models.cards import Card
from tocsin.models.metrics import Metric, evaluate

if TYPE_CHECKING:
    from tocsin.failure.fitted import FittedFailure

__all__ = ["model_card"]


def model_card(model: "FittedFailure", *, created: int, parent: str | None = None) -> Card:
    """Its figures are measured on the last training jobs, which were not used to choose anything."""
    plan, calibrated, stage = model.plan, model.calibrated, model.columns.stage
    return Card(
        detector=NAME,
        stage=stage,
        target=str(model.target),
        clusters=list(model.clusters),
        engine=model.engine,
        created=created,
        window=model.window,
        rows=model.rows,
        features=model.columns.names,
        parameters={
            **plan.parameters,
            "rounds": plan.rounds,
            **({"own_weight": calibrated.own_weight} if model.experience else {}),
        },
        search={**plan.search, "dropped": dict(plan.dropped), "importances": dict(plan.importances)},
        calibration={**calibrated.calibrator.to_json(), "brier": dict(calibrated.brier)},
        thresholds=[calibrated.threshold.to_json()],
        figures=[f.figure(stage=stage, split=_split(model), data="training") for f in _figures(model)],
        uses=_uses(model),
        parent=parent,
    )


def _figures(model: "FittedFailure") -> list[Metric]:
    """The interval of precision is for a later month; the others show how well the figure itself is known."""
    rows, chosen = model.holdout.part(model.holdout.measures), model.rehearsal
    found = evaluate(rows.failed, chosen.probabilities(rows), rows.submit, threshold=chosen.threshold.value)
    promised = model.promised()
    if promised is None:
        return found
    return [
        replace(each, low=promised.low, high=promised.high, reason=None) if each.name == "precision" else each
        for each in found
    ]


def _split(model: "FittedFailure") -> str:
    rows, measured = len(model.holdout.submit), int(model.holdout.measures.sum())
    return (
        f"searched on the first {1 - rows / model.rows:.0%} by time, calibration and threshold chosen on the next "
        f"{(rows - measured) / model.rows:.0%}, measured on the last {measured / model.rows:.0%}, which was used for nothing else"
    )


def _uses(model: "FittedFailure") -> dict[str, str]:
    """Which rows were used for what."""
    holdout, last = model.holdout, format_instant(model.window.last)
    first, measured = (
        format_instant(int(submit[0])) for submit in (holdout.submit, holdout.submit[holdout.measures])
    )
    return {
        "features, parameters and rounds": f"what was known by {first}",
        "calibration and threshold behind the figures": (
            f"{int(holdout.chooses.sum()):,} jobs submitted from {first} on and known by {measured}"
        ),
        "figures": (
            f"{int(holdout.measures.sum()):,} jobs submitted from {measured} to {last}; they were used for nothing else, and "
            "scored by models of earlier jobs"
        ),
        "calibration and threshold in use": f"{len(holdout.submit):,} jobs submitted from {first} to {last}",
        "model in use": f"all {model.rows:,} jobs",
        "how frequent each value of a field is": f"all {model.rows:,} jobs, without their outcomes",
    }
