"""The registry card of a trace detector."""

from collections.abc import Sequence

from tocsin.core.stages import Stage
from tocsin.models.cards import Card, Figure
from tocsin.traces.alarms import NAME
from tocsin.traces.fitted import FittedTraces

__all__ = ["model_card"]


def model_card(
    fitted: FittedTraces,
    *,
    created: int,
    data: str,
    parameters: dict[str, object],
    measured: Sequence[Figure] = (),
    parent: str | None = None,
) -> Card:
    """`data` names the training data; `measured` are figures on other data, such as a test campaign."""
    own = [
        Figure(
            name=name,
            value=value,
            low=None,
            high=None,
            stage=Stage.RUNNING,
            split=f"{fitted.split}; the same windows set the thresholds",
            data=data,
        )
        for name, value in fitted.figures.items()
    ]
    return Card(
        detector=NAME,
        stage=Stage.RUNNING,
        clusters=list(fitted.clusters),
        engine=fitted.cpus.model.architecture,
        created=created,
        window=fitted.window,
        rows=fitted.windows,
        features=[*fitted.cpus.channels, *(fitted.jobs.channels if fitted.jobs else ())],
        parameters={
            **parameters,
            "window": fitted.length,
            "stride": fitted.stride,
            "interval": fitted.interval,
        },
        thresholds=[
            {
                "model": name,
                "rule": str(model.thresholds.rule),
                "rate": model.thresholds.rule.rate,
                "in_a_row": model.thresholds.rule.in_a_row,
                "value": model.thresholds.all.threshold,
                "windows": model.thresholds.all.windows,
                "kinds": len(model.thresholds.kinds),
            }
            for name, model in (("cpus", fitted.cpus), ("jobs", fitted.jobs))
            if model
        ],
        figures=[*own, *measured],
        parent=parent,
    )
