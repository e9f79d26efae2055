"""A verdict on one screen, in words that its user reads once."""

from dataclasses import replace
from datetime import UTC

import pytest

from tocsin.app.verdict_text import action_lines, check_headline, explain_headline, verdict_screen
from tocsin.core.outcomes import Outcome, Target
from tocsin.core.stages import Stage
from tocsin.core.verdict import Advice, Failure, Level, MemoryRange, Resources, Similar, Verdict

GIB = 2**30
PREDICTED = Failure(probability=0.35, threshold=0.8, will_fail=False, target=Target.FAILED)
PLAIN = Verdict(
    job="lab:1@1", stage=Stage.SUBMIT, at=1, known_until=1, level=Level.UNKNOWN, failure=PREDICTED
)


def test_a_prediction_without_earlier_jobs_was_checked() -> None:
    verdict = replace(
        PLAIN, missing={"failure.history": "no earlier job of ann is known", "limits": "no nodes"}
    )
    headline, screen = check_headline(verdict), list(verdict_screen(verdict, "x"))
    assert "not everything could be checked (limits)" in headline
    assert "  note: no earlier job of ann is known" in screen
    assert "  not checked: limits: no nodes" in screen


def test_without_a_prediction_its_history_is_not_the_point() -> None:
    verdict = replace(PLAIN, failure=None, missing={"failure": "no model"})
    assert "(failure)" in check_headline(verdict)
    assert "  not checked: failure: no model" in verdict_screen(verdict, "x")


def test_expected_memory_has_no_more_digits_than_are_known() -> None:
    resources = Resources(memory_bytes=MemoryRange(p50=7 * GIB + 1, p95=31_413 * 2**20))
    screen = verdict_screen(replace(PLAIN, resources=resources), "x")
    assert "    expected memory 7.1G (at most 30.7G in 95% of cases)" in screen


def test_an_alarm_without_advice_says_so_and_names_a_failed_job_to_look_at() -> None:
    similar = [
        Similar(job="lab:7@1", outcome=Outcome.COMPLETED, distance=0.1),
        Similar(job="lab:8@1", outcome=Outcome.TIMEOUT, distance=0.2),
    ]
    alarm = replace(PLAIN, level=Level.WARNING, failure=replace(PREDICTED, will_fail=True, similar=similar))
    line = "  no change to the request is known that would lower the risk"
    assert f"{line}; why a similar job failed: tocsin explain lab:8@1" in verdict_screen(alarm, "x")
    alone = replace(PREDICTED, will_fail=True)
    assert line in verdict_screen(replace(alarm, failure=alone), "x")
    advised = replace(alarm, advice=[Advice(change="--time=02:00:00", why="it needs more")])
    assert not any(text.startswith(line) for text in verdict_screen(advised, "x"))
    assert not any(text.startswith(line) for text in verdict_screen(PLAIN, "x"))


@pytest.mark.parametrize("stage", Stage)
def test_every_stage_is_a_time_in_words(stage: Stage) -> None:
    text = explain_headline(replace(PLAIN, stage=stage), None)
    assert text.startswith("lab:1@1 as known ")
    assert f"at {stage}:" not in text


def test_what_holds_a_job_is_named_with_its_end() -> None:
    """squeue shows its owner no more than JobHeldAdmin."""
    hold = {
        "kind": "hold",
        "status": "done",
        "done": "2026-11-19T03:55:58Z",
        "expires": "2026-11-20T03:55:58Z",
        "reason": "cryptomining is never allowed",
    }
    lines = list(action_lines([hold, {**hold, "status": "undone"}, {**hold, "kind": "notify"}], UTC))
    assert lines == [
        "",
        "  held by tocsin at 2026-11-19T03:55:58 until 2026-11-20T03:55:58 at the latest: cryptomining is never allowed",
    ]
