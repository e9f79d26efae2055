"""The registry card of a failure model."""

from typing import TYPE_CHECKING

from tocsin.failure.findings import NAME
from tocsin.failure.model_training import SHARE
from tocsin.models.cards import Card
from tocsin.models.metrics import evaluate

if TYPE_CHECKING:
    from tocsin.failure.fitted import FittedFailure

__all__ = ["model_card"]

_SPLIT = f"trained on the first {SHARE:.0%} by time; calibrated and measured on the rest"


def model_card(model: "FittedFailure", *, created: int, parent: str | None = None) -> Card:
    """Its figures are those of the holdout: a model of the first jobs, scored on the rest."""
    plan, calibrated, stage, holdout = model.plan, model.calibrated, model.columns.stage, model.holdout
    figures = evaluate(
        holdout.failed,
        calibrated.calibrator.apply(holdout.scores),
        holdout.submit,
        threshold=calibrated.threshold.value,
    )
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
            **({"own_weight": model.experience.own_weight} if model.experience else {}),
        },
        search={**plan.search, "dropped": dict(plan.dropped), "importances": dict(plan.importances)},
        calibration={**calibrated.calibrator.to_json(), "brier": dict(calibrated.brier)},
        thresholds=[calibrated.threshold.to_json()],
        figures=[f.figure(stage=stage, split=_SPLIT, data="training") for f in figures],
        parent=parent,
    )
