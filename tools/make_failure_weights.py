"""Make the shipped failure models anew: `python -m tools.make_failure_weights DATA_FOLDER [STAGE …]`."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
from bench.failure import logs

from tocsin.core.errors import TocsinError
from tocsin.core.frames import SCHEMA
from tocsin.core.outcomes import Target
from tocsin.core.stages import Stage
from tocsin.failure.columns import Columns
from tocsin.failure.features import CODED
from tocsin.failure.fitted import FittedFailure
from tocsin.failure.holdout import Calibrated, Holdout
from tocsin.failure.plan import Plan
from tocsin.failure.resources import ResourceModel
from tocsin.failure.shipped import BUILTIN
from tocsin.failure.shortages import Shortages
from tocsin.models.calibration import Calibrator, fit_platt
from tocsin.models.cards import Card, Figure, Window
from tocsin.models.files import hashes
from tocsin.models.metrics import evaluate
from tocsin.models.registry import CARD
from tocsin.models.thresholds import Threshold, ThresholdRule, table
from tools.failure.bounds import bounds
from tools.failure.lessons import FEATURES, Lesson, lessons
from tools.failure.training import PARAMETERS, ROUNDS, learned

__all__ = ["make_builtin"]

CREATED = 1794787200
"""Of the weights, not of the run: the same data gives the same files."""
RULE = ThresholdRule("precision_at_least", 0.8)
FEWEST_ALARMS = 20
"""Fewer alarms on a cluster say nothing about the precision there."""
KEPT = 1000
"""Scores of each cluster that are kept, so that `tocsin threshold` can show what a threshold would do."""
SPLIT = "each cluster left out in turn: trained, calibrated and threshold chosen on the others, measured on its last 20 % by time"
DATA: Mapping[str, str] = {
    "SDSC-BLUE-2000-4.2-cln": "Parallel Workloads Archive, free with acknowledgement",
    "KTH-SP2-1996-2.1-cln": "Parallel Workloads Archive, free with acknowledgement",
    "LLNL-Thunder-2007-1.1-cln": "Parallel Workloads Archive, free with acknowledgement",
    "METACENTRUM-2009-2": "Parallel Workloads Archive, free with acknowledgement",
    "DOST-COARE-2020-cln": "erangvee/slurm_sim_vanilla",
    "sacct phillips": "test data of ubccr/xdmod, LGPL-3",
    "sacct pozidriv": "test data of ubccr/xdmod, LGPL-3",
    "MIT Supercloud": "Imama-Kainat/MIT_supercloud-stochastic-analytics",
}
"""The clusters that it learns from, with source and licence."""


def make_builtin(data: Path, stage: Stage, folder: Path = BUILTIN) -> Card:
    """Train on the public logs below `data` and write model and card of a stage."""
    taught = list(lessons([(name, read) for name, read in logs(data) if name in DATA], stage))
    names = {lesson.cluster for lesson in taught}
    scored = [
        (lesson, booster.predict(lesson.X))
        for left_out in sorted(names)
        for booster in [learned([each for each in taught if each.cluster != left_out])]
        for lesson in taught
        if lesson.cluster == left_out
    ]
    resources, covered = bounds(taught)
    model = _model(taught, scored, resources, stage)
    into = folder / stage
    into.mkdir(parents=True, exist_ok=True)
    for old in into.iterdir():
        old.unlink()
    model.save(into)
    card = _card(model, scored, covered, into)
    (into / CARD).write_bytes(card.render())
    return card


Scored = list[tuple[Lesson, "np.ndarray[tuple[int], np.dtype[np.float64]]"]]


def _model(taught: Sequence[Lesson], scored: Scored, resources: ResourceModel, stage: Stage) -> FittedFailure:
    kept = [(lesson, scores, lesson.spread(KEPT)) for lesson, scores in scored]
    every = np.ones(sum(len(rows) for _, _, rows in kept), dtype=bool)
    holdout = Holdout(
        np.concatenate([scores[rows] for _, scores, rows in kept]),
        np.concatenate([lesson.failed[rows] for lesson, _, rows in kept]),
        np.concatenate([lesson.submit[rows] for lesson, _, rows in kept]),
        np.concatenate([lesson.hours[rows] for lesson, _, rows in kept]),
        chooses=every,
        measures=every,
    )
    calibrator, threshold = _chosen(scored)
    chosen = Calibrated(
        calibrator=calibrator,
        brier={},
        threshold=threshold,
        table=table(holdout.failed, calibrator.apply(holdout.scores), holdout.submit, holdout.hours),
    )
    columns = Columns(stage, "UTC", FEATURES[stage], {name: {} for name in CODED}, {})
    return FittedFailure(
        columns=columns,
        target=Target.FAILED,
        engine="lightgbm",
        booster=learned(taught),
        plan=Plan(
            names=columns.names, parameters=PARAMETERS, rounds=ROUNDS, dropped={}, importances={}, search={"seed": 0, "trials": []}
        ),
        holdout=holdout,
        calibrated=chosen,
        rehearsal=chosen,
        causes={},
        window=Window(
            first=min(int(lesson.submit.min()) for lesson in taught),
            last=max(int(lesson.submit.max()) for lesson in taught),
        ),
        rows=sum(len(lesson.failed) for lesson in taught),
        clusters=tuple(sorted({lesson.cluster for lesson in taught})),
        resources=resources,
        shortages=Shortages.fit(pl.DataFrame(schema=SCHEMA)),
        shipped=True,
    )  # fmt: skip


def _chosen(scored: Scored) -> tuple[Calibrator, Threshold]:
    """Calibration and threshold by clusters that were left out."""
    kept = [(lesson, scores, lesson.spread(KEPT)) for lesson, scores in scored]
    calibrator = fit_platt(
        np.concatenate([scores[rows] for _, scores, rows in kept]),
        np.concatenate([lesson.failed[rows] for lesson, _, rows in kept]),
    )
    return calibrator, _threshold([(lesson, calibrator.apply(scores)) for lesson, scores in scored])


def _threshold(scored: Scored) -> Threshold:
    """The lowest that keeps its precision on every cluster that was left out, there and above; else no alarm."""
    lowest, worst = None, None
    for value in np.linspace(0.99, 0.5, 50):
        precisions = list(_precisions(scored, value))
        if precisions and min(precisions) < RULE.value:
            break
        if 2 * len(precisions) >= len(scored):  # on fewer it was not tried
            lowest, worst = float(value), min(precisions)
    silent = Threshold(
        value=float(np.nextafter(1.0, 2.0)), alarms=0, alarms_per_day=0.0, precision=None, recall=0.0, saved=0.0,
        delayed=0.0, wasted=0.0, rule=RULE, met=False,
        text="no threshold has this precision on every cluster that was left out, so there will be no alarms",
    )  # fmt: skip
    if lowest is None:
        return silent
    y = np.concatenate([lesson.failed for lesson, _ in scored])
    rings = np.concatenate([p >= lowest for _, p in scored])
    return replace(
        silent,
        value=lowest,
        alarms=int(rings.sum()),
        precision=worst,
        recall=float(rings[y > 0].mean()),
        met=True,
        text=f"precision of at least {RULE.value:g} on every cluster that was left out; {worst:.3f} on the worst",
    )


def _precisions(scored: Scored, threshold: float) -> Iterator[float]:
    """Of each cluster with enough alarms."""
    for lesson, p in scored:
        rings = p >= threshold
        if rings.sum() >= FEWEST_ALARMS:
            yield float(lesson.failed[rings].mean())


def _card(
    model: FittedFailure, scored: Scored, covered: Mapping[str, Mapping[str, float]], folder: Path
) -> Card:
    figures = []
    for lesson, scores in scored:
        late = lesson.late
        calibrator, threshold = _chosen([each for each in scored if each[0].cluster != lesson.cluster])
        p = calibrator.apply(scores[late])
        found = evaluate(lesson.failed[late], p, lesson.submit[late], threshold=threshold.value)
        data = f"{lesson.cluster}, {lesson.target}, {int(late.sum()):,} jobs"
        figures += [
            each.figure(stage=model.columns.stage, split=SPLIT, data=data)
            for each in found
            if each.name in ("auc", "precision", "recall", "calibration_error")
        ]
    figures += [
        Figure(
            name=f"{resource}: share of completed jobs within the bound",
            value=share,
            low=None,
            high=None,
            stage=model.columns.stage,
            split="each cluster left out in turn: trained on the others; the bound is wide enough for all",
            data=cluster,
            reason="no interval: the worst cluster sets the bound",
        )
        for resource, shares in covered.items()
        for cluster, share in shares.items()
    ]
    return Card(
        detector="failure",
        version="builtin" if model.columns.stage is Stage.SUBMIT else f"builtin-{model.columns.stage}",
        stage=model.columns.stage,
        engine=model.engine,
        created=CREATED,
        target=str(model.target),
        clusters=list(model.clusters),
        window=model.window,
        rows=model.rows,
        features=model.columns.names,
        parameters={**PARAMETERS, "rounds": ROUNDS, "data": dict(DATA)},
        calibration=model.calibrated.calibrator.to_json(),
        thresholds=[model.calibrated.threshold.to_json()],
        figures=figures,
        files=hashes(folder),
    )


def main(arguments: Sequence[str]) -> int:
    if not arguments:
        print("usage: python -m tools.make_failure_weights DATA_FOLDER [STAGE …]", file=sys.stderr)
        return 2
    try:
        for stage in map(Stage, arguments[1:] or ("submit", "start", "early")):
            card = make_builtin(Path(arguments[0]), stage)
            for figure in card.figures:
                if figure.name == "auc":
                    print(
                        f"{stage} {figure.name}: {figure.value} [{figure.low}, {figure.high}] ({figure.data})",
                        flush=True,
                    )
            for figure in card.figures:
                if "bound" in figure.name:
                    print(stage, figure.name, figure.data, figure.value, flush=True)
            print(stage, card.thresholds[0]["value"], card.thresholds[0]["text"], flush=True)
    except TocsinError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
