"""The figures of a walk, counted by hand."""

from dataclasses import replace

import numpy as np
import pytest

from tests.kits.ended_jobs import DAY, job, jobs
from tocsin.core.errors import ModelError
from tocsin.core.outcomes import Outcome, Target
from tocsin.learn.report import report
from tocsin.learn.walk import StepResult
from tocsin.models.promise import Range
from tocsin.models.splits import Step
from tocsin.models.thresholds import ThresholdRule

NOBODY = np.array([], dtype=np.int64)
MARCH = 1_740_787_200  # 2025-03-01


def step(
    rows: list[dict[str, object]], p: list[float], *, limits: int | None = None, refused: str | None = None
) -> StepResult:
    """The model alarms from 0.5 on where there is one, `limits` on one row."""
    frame = jobs(rows)
    silent = np.zeros(frame.height, dtype=bool)
    return StepResult(
        step=Step(MARCH, NOBODY, NOBODY),
        jobs=frame,
        probability=np.array(p),
        alarms={
            "model": silent if refused else np.array(p) >= 0.5,
            "limits": silent if limits is None else np.arange(frame.height) == limits,
        },
        missing={"limits": "no machine"},
        bound=np.full(frame.height, 3600.0),
        searched=refused is None,
        trained=refused is None,
        refused=refused,
    )


def asked() -> list[StepResult]:
    """A failing job of two nodes and two hours that rings, a good one of an hour that rings, and others that do not."""
    failing = {"outcome": Outcome.FAILED}
    march = [
        job(1, submit=MARCH, elapsed=7200, alloc_nodes=2, **failing),
        job(2, submit=MARCH + DAY, elapsed=3600, alloc_nodes=1),
        job(3, submit=MARCH + 2 * DAY, elapsed=3601, alloc_nodes=1),
        job(4, submit=MARCH + 3 * DAY, outcome=None, elapsed=None),
        job(5, submit=MARCH + 3 * DAY, outcome=Outcome.CANCELLED),
    ]
    april = [job(6, submit=MARCH + 40 * DAY, elapsed=10800, alloc_nodes=1, **failing)]
    return [
        step(march, [0.9, 0.6, 0.1, 0.9, 0.9]),
        step(april, [0.6], refused="nothing to learn from"),
    ]


def test_what_ringing_would_have_saved_and_delayed() -> None:
    found = report(asked(), Target.FAILED)
    assert (found.predicted, found.judged) == (6, 4), "no outcome, or another than the target's, is no label"
    everything = found.sources[-1]
    assert (everything.source, everything.alarms, everything.saved, everything.delayed) == (
        "all",
        2,
        4.0,
        1.0,
    )
    assert found.wasted == 3.0
    assert (found.trainings, found.searches, found.without_model) == (1, 1, 1)


def test_each_source_of_alarms_counts_for_itself() -> None:
    march, april = asked()
    third = np.arange(march.jobs.height) == 2  # a good job of an hour and a second
    found = report([replace(march, alarms={**march.alarms, "limits": third}), april], Target.FAILED)
    model, limits, everything = found.sources
    assert (model.source, model.alarms, model.precision, model.recall) == ("model", 2, 0.5, 0.5)
    assert (limits.source, limits.alarms, limits.precision, limits.recall) == ("limits", 1, 0.0, 0.0)
    assert limits.delayed == pytest.approx(3601 / 3600)
    assert (everything.source, everything.alarms) == ("all", 3)
    assert everything.precision == pytest.approx(1 / 3)
    assert everything.delayed == pytest.approx(1 + 3601 / 3600)
    assert [each.missing for each in found.sources] == [None, "no machine", None]


def test_figures_of_alarms_count_every_alarm() -> None:
    figures = {figure.name: figure.value for figure in report(asked(), Target.FAILED).figures}
    assert (figures["precision"], figures["recall"], figures["accuracy"]) == (0.5, 0.5, 0.5)
    assert figures["baseline"] == 0.5
    assert figures["auc"] == pytest.approx(0.875)  # 0.9 and 0.6 beside 0.6 and 0.1: three won, one tie
    assert figures["brier"] == pytest.approx((0.01 + 0.36 + 0.01 + 0.16) / 4)


def test_months_stand_for_themselves() -> None:
    march, april = report(asked(), Target.FAILED).months
    assert (march.month, march.jobs, march.alarms, march.precision, march.recall) == (
        "2025-03",
        3,
        2,
        0.5,
        1.0,
    )
    assert march.auc == 1.0
    assert (april.month, april.jobs, april.failing, april.alarms) == ("2025-04", 1, 1.0, 0)
    assert (april.precision, april.recall, april.auc) == (None, 0.0, None)


def test_the_bound_on_run_time_is_held_or_not() -> None:
    found = report(asked(), Target.FAILED).runtime
    assert (found.completed, found.jobs) == (0.5, 2)
    assert found.all_ended == 0.25


def test_another_target_counts_other_jobs() -> None:
    assert report(asked(), Target.UNSUCCESSFUL).judged == 5


def test_what_we_stopped_ourselves_is_no_failure() -> None:
    rows = [job(1, submit=MARCH, outcome=Outcome.FAILED, intervened=True), job(2, submit=MARCH)]
    assert report([step(rows, [0.9, 0.1])], Target.FAILED).judged == 1


def test_a_walk_without_a_single_outcome_is_a_sentence() -> None:
    with pytest.raises(ModelError, match="no predicted job has an outcome for the target failed"):
        report([step([job(1, submit=MARCH, outcome=None, elapsed=None)], [0.5])], Target.FAILED)


def test_where_a_log_tells_no_nodes_processors_are_counted() -> None:
    rows = [
        job(1, submit=MARCH, elapsed=3600, alloc_cpus=64, outcome=Outcome.FAILED),
        job(2, submit=MARCH + 1),
    ]
    found = report([step(rows, [0.9, 0.1])], Target.FAILED)
    assert (found.hours, found.sources[-1].saved) == ("CPU-hours", 64.0)
    assert report(asked(), Target.FAILED).hours == "node-hours"


def test_steps_whose_threshold_does_not_meet_the_rule_are_counted() -> None:
    steps = asked()
    assert report(steps, Target.FAILED).unmet == 0
    assert report([replace(steps[0], met=False), steps[1]], Target.FAILED).unmet == 1


def test_a_promise_is_kept_missed_or_silent_month_by_month() -> None:
    march, april = asked()
    may = step([job(7, submit=MARCH + 65 * DAY, outcome=Outcome.FAILED)], [0.8])
    steps = [replace(march, expected=Range(0.7, 0.4, 0.9)), april, may]
    found = report(steps, Target.FAILED, rule=ThresholdRule("precision_at_least", 0.8)).promise
    assert found
    assert (found.months, found.silent, found.kept, found.missed) == (3, 1, 1, ["2025-03"])
    # 0.5 in March, where 0.4 to 0.9 was expected; all of May's alarms were right, and the rule was all that was expected
    assert found.inside == 2
    assert report(steps, Target.FAILED, rule=ThresholdRule("recall_at_least", 0.5)).promise is None
