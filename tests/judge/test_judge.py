"""The judge: parts joined to one verdict, levels, and detectors that are wrong in every way."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.kits.watching import NOON, ended, frame, running
from tocsin.app.judge import load_seats, untrained
from tocsin.core.detector import Budget, Known, Parts
from tocsin.core.outcomes import Target
from tocsin.core.schema import verdict_schema
from tocsin.core.stages import Stage
from tocsin.core.verdict import (
    Advice,
    Anomaly,
    Edit,
    Failure,
    Finding,
    Level,
    Resources,
    RuntimeRange,
    Workload,
)
from tocsin.history.ledger import Ledger
from tocsin.judge.answers import DetectorModels, Model, assess_and_explain
from tocsin.judge.conclusion import conclude
from tocsin.judge.judge import Judge
from tocsin.models.registry import Registry

Say = Callable[[dict[str, Any]], Any]


class Speaker:
    """A fitted detector that says of each job what a function says."""

    def __init__(self, say: Say) -> None:
        self.say = say
        self.seen: list[pl.DataFrame] = []

    def assess(self, jobs: pl.DataFrame, known: Known, *, stage: Stage) -> list[Parts]:
        self.seen.append(jobs)
        return [self.say(row) for row in jobs.to_dicts()]

    def explain(self, job: pl.DataFrame, known: Known, *, stage: Stage) -> Parts:
        parts: Parts = self.say(job.to_dicts()[0])
        return replace(parts, advice=[Advice(change="do not", why="it is explained")])

    def save(self, folder: Path) -> None:
        raise AssertionError


def seat(say: Say, *stages: Stage) -> DetectorModels:
    return DetectorModels(dict.fromkeys(stages or Stage, Model(Speaker(say), "7")))


def finding(level: Level, detector: str = "a", **more: Any) -> Finding:
    return Finding(detector=detector, kind="k", level=level, text=f"it is {level}", **more)


def warns(row: dict[str, Any]) -> Parts:
    return Parts(findings=[finding(Level.WARNING)])


def assess(judge: Judge, jobs: pl.DataFrame, stage: Stage = Stage.SUBMIT, **more: Any) -> list[Any]:
    return judge.decide(jobs, stage, known=Ledger(), at=NOON + 9, **more).verdicts


def test_the_worst_finding_is_the_level_and_every_part_has_its_place() -> None:
    failure = Failure(probability=0.9, threshold=0.5, will_fail=True, target=Target.FAILED)
    resources = Resources(runtime_seconds=RuntimeRange(p50=1, p95=2))
    judge = Judge(
        {
            "a": seat(warns),
            "b": seat(lambda row: Parts(findings=[finding(Level.CRITICAL, "b")], failure=failure)),
            "c": seat(lambda row: Parts(resources=resources, missing={"c": "no memory is known"})),
        }
    )
    [verdict] = assess(judge, frame({}))
    assert verdict.level is Level.CRITICAL
    assert [f.detector for f in verdict.findings] == ["b", "a"], "the gravest first"
    assert (verdict.failure, verdict.resources) == (failure, resources)
    assert verdict.models == {"a": "7", "b": "7", "c": "7"}
    assert verdict.missing == {"c": "no memory is known"}
    assert (verdict.job, verdict.stage, verdict.seq) == (f"lab:1@{NOON}", "submit", 0)
    assert (verdict.at, verdict.known_until, verdict.late) == (NOON + 9, NOON, False)
    schema = pytest.importorskip("jsonschema")
    schema.validate(json.loads(json.dumps(verdict.to_json())), verdict_schema())


def test_of_two_that_tell_the_same_part_the_first_is_heard() -> None:
    def tells(share: float) -> Say:
        return lambda row: Parts(
            failure=Failure(probability=share, threshold=0.5, will_fail=False, target=Target.FAILED)
        )

    [verdict] = assess(Judge({"a": seat(tells(0.1)), "b": seat(tells(0.2))}), frame({}))
    assert verdict.failure.probability == 0.1
    assert verdict.missing == {"failure by b": "a gave it already"}


def _raises(row: dict[str, Any]) -> Parts:
    raise RuntimeError("out of order")


@pytest.mark.parametrize(
    ("say", "reason"),
    [
        (_raises, "it failed: RuntimeError: out of order"),
        (lambda row: None, "NoneType, not Parts"),
        (lambda row: Parts(findings=[finding(Level.OK, "other")]), "names another detector"),
        (lambda row: Parts(findings=[finding(Level.OK, score=math.nan)]), "cannot be written as JSON"),
        (
            lambda row: Parts(anomalies=[Anomaly(detector="a", kind="k", text="it is odd", score=math.inf)]),
            "cannot be written as JSON",
        ),
    ],
)
def test_a_detector_that_is_wrong_is_named_and_the_others_are_heard(say: Say, reason: str) -> None:
    [verdict] = assess(Judge({"a": seat(say), "b": seat(lambda row: Parts())}), frame({}))
    assert reason in verdict.missing["a"]
    assert verdict.models == {"b": "7"}
    assert verdict.level is Level.UNKNOWN
    [alone] = assess(Judge({"a": seat(say)}), frame({}))
    assert alone.level is Level.UNKNOWN


@pytest.mark.parametrize(
    ("parts", "level"),
    [
        (Parts(), Level.OK),
        (Parts(missing={"a": "the machine is unknown"}), Level.UNKNOWN),
        (Parts(missing={"a.nodes": "the nodes are unknown"}), Level.UNKNOWN),
        (Parts(missing={"a.history": "a new user"}, workload=Workload()), Level.OK),
        (Parts(missing={"a": "unknown"}, findings=[finding(Level.WARNING)]), Level.WARNING),
    ],
)
def test_ok_means_that_every_detector_looked(parts: Parts, level: Level) -> None:
    judge = Judge({"a": seat(lambda row: parts), "b": seat(lambda row: Parts())})
    assert assess(judge, frame({}))[0].level is level


def test_a_detector_without_a_model_counts_at_submission_only() -> None:
    untaught = DetectorModels(missing=dict.fromkeys(Stage, "no model yet"))
    both = Judge({"a": untaught, "b": seat(lambda row: Parts())})
    job = frame(running(NOON + 1))
    assert assess(both, job)[0].level is Level.UNKNOWN
    assert assess(both, job, Stage.START)[0].level is Level.OK
    assert assess(Judge({"a": untaught}), job, Stage.START)[0].level is Level.UNKNOWN


def test_answers_for_another_number_of_jobs_are_no_answers() -> None:
    class Short(Speaker):
        def assess(self, jobs: pl.DataFrame, known: Known, *, stage: Stage) -> list[Parts]:
            return []

    judge = Judge({"a": DetectorModels({Stage.SUBMIT: Model(Short(warns), "1")})})
    assert "0 answers for 1 jobs" in assess(judge, frame({}))[0].missing["a"]


def test_one_odd_job_does_not_silence_a_detector_on_the_others() -> None:
    def picky(row: dict[str, Any]) -> Parts:
        return _raises(row) if row["job_id"] == 13 else warns(row)

    verdicts = assess(Judge({"a": seat(picky)}), frame(*({"job_id": n} for n in range(50))))
    assert [number for number, verdict in enumerate(verdicts) if verdict.missing] == [13]
    assert sum(verdict.level is Level.WARNING for verdict in verdicts) == 49


def test_a_detector_that_always_fails_is_not_asked_for_ever() -> None:
    calls = 0

    def broken(row: dict[str, Any]) -> Parts:
        nonlocal calls
        calls += 1
        raise ValueError("no")

    verdicts = assess(Judge({"a": seat(broken)}), frame(*({"job_id": n} for n in range(5000))))
    assert all("ValueError" in verdict.missing["a"] for verdict in verdicts)
    assert calls < 1000


def test_only_what_was_known_at_the_stage_is_shown() -> None:
    speaker = Speaker(lambda row: Parts())
    judge = Judge({"a": DetectorModels(dict.fromkeys(Stage, Model(speaker, "1")))})
    job = frame(ended(NOON + 5, NOON + 400, elapsed=395, node_list="n1", name="x", known_at=NOON + 401))
    for stage in (Stage.SUBMIT, Stage.START, Stage.EARLY, Stage.END):
        assess(judge, job, stage)
    submit, start, early, end = (seen.to_dicts()[0] for seen in speaker.seen)
    hidden = ("start", "node_list", "state", "outcome", "end", "elapsed", "known_at")
    assert [name for name in hidden if submit[name] is not None] == []
    assert [name for name in hidden if start[name] is not None] == ["start", "node_list"]
    assert early == start
    assert all(end[name] is not None for name in hidden)
    assert submit["name"] == "x"


def test_a_detector_is_heard_at_its_stages_only() -> None:
    judge = Judge({"a": seat(warns, Stage.SUBMIT)})
    job = frame(running(NOON + 5))
    assert assess(judge, job)[0].level is Level.WARNING
    [start] = assess(judge, job, Stage.START)
    assert (start.level, start.models, start.missing) == (Level.OK, {}, {})
    assert start.known_until == NOON + 5


def test_an_alarm_comes_explained_and_nothing_else_is() -> None:
    def say(row: dict[str, Any]) -> Parts:
        return warns(row) if row["job_id"] == 2 else Parts()

    quiet, loud = assess(Judge({"a": seat(say)}), frame({"job_id": 1}, {"job_id": 2}))
    assert [advice.change for advice in loud.advice] == ["do not"]
    assert quiet.advice == []


def test_an_alarm_that_cannot_be_explained_rings_all_the_same() -> None:
    class Mute(Speaker):
        def explain(self, job: pl.DataFrame, known: Known, *, stage: Stage) -> Parts:
            raise ValueError("no words")

    [verdict] = assess(Judge({"a": DetectorModels({Stage.SUBMIT: Model(Mute(warns), "1")})}), frame({}))
    assert (verdict.level, verdict.missing) == (Level.WARNING, {})


def test_the_same_parts_are_concluded_alike_wherever_they_were_computed() -> None:
    jobs, judge = frame({"job_id": 1}, {"job_id": 2}), Judge({"a": seat(warns)})
    answers = assess_and_explain(judge.detectors, jobs, Ledger(), Stage.SUBMIT)
    here = judge.decide(jobs, Stage.SUBMIT, known=Ledger(), at=NOON)
    assert conclude(jobs, answers, stage=Stage.SUBMIT, at=NOON) == here
    again = conclude(jobs, answers, stage=Stage.SUBMIT, at=NOON, seq=[3, 4])
    assert [verdict.seq for verdict in again.verdicts] == [3, 4]


def test_no_jobs_no_verdicts() -> None:
    assert assess(Judge({"a": seat(warns)}), frame()) == []


def test_an_explanation_has_what_a_verdict_leaves_out() -> None:
    verdict = Judge({"a": seat(warns)}).explain(frame({}), Stage.SUBMIT, known=Ledger(), at=NOON)
    assert verdict.level is Level.WARNING
    assert [advice.change for advice in verdict.advice] == ["do not"]


class _Learner:
    name = "learner"
    stages = (Stage.SUBMIT,)
    learns = True
    needs = ()

    def fit(self, jobs: pl.DataFrame, known: Known, *, stage: Stage, seed: int, budget: Budget) -> Speaker:
        return Speaker(warns)

    def load(self, folder: Path) -> Speaker:
        raise AssertionError("there is nothing to load")


def test_a_detector_without_a_model_says_so_and_one_that_needs_none_is_fitted(tmp_path: Path) -> None:
    class Ruler(_Learner):
        name = "limits"
        learns = False

    found = load_seats({"limits": Ruler(), "learner": _Learner()}, Registry(tmp_path), Ledger())
    judge = Judge({"a": found["limits"], "learner": found["learner"]})
    [verdict] = assess(judge, frame({}))
    assert verdict.missing == {"learner": untrained("learner", Stage.SUBMIT, tmp_path)}
    assert list(verdict.models) == ["a"]


def test_a_detector_that_cannot_be_fitted_takes_nobody_down(tmp_path: Path) -> None:
    class Broken(_Learner):
        name = "limits"
        learns = False

        def fit(
            self, jobs: pl.DataFrame, known: Known, *, stage: Stage, seed: int, budget: Budget
        ) -> Speaker:
            raise OSError("no disk")

    found = load_seats({"limits": Broken()}, Registry(tmp_path), Ledger())
    assert "no disk" in found["limits"].missing[Stage.SUBMIT]


def test_of_two_edits_of_one_line_that_with_a_known_effect_is_told() -> None:
    def advice(change: str, line: int, risk: float | None = None) -> Advice:
        return Advice(
            change=change, why="it is known to help", edit=Edit(line=line, old="a", new="b"), risk_after=risk
        )

    told = {
        "a": [advice("2 h", 3), advice("1 node", 4)],
        "b": [advice("4 h", 3, 0.1)],
        "c": [advice("9 h", 3)],
    }
    judge = Judge({name: seat(lambda row, name=name: Parts(advice=told[name])) for name in told})
    [verdict] = assess(judge, frame({}))
    assert sorted(each.change for each in verdict.advice) == ["1 node", "4 h"]


def test_of_two_numbers_for_one_field_the_one_that_lets_the_job_run_is_given() -> None:
    """Neither has an edit: the job has no script."""
    wanted = Parts(
        advice=[Advice(change="--mem=8G", why="it will need it", field="req_memory", risk_after=0.1)]
    )
    allowed = Parts(
        findings=[Finding(detector="b", kind="too_much", level=Level.CRITICAL, text="only 4G are allowed")],
        advice=[Advice(change="--mem=4G", why="no more is allowed", field="req_memory")],
    )

    class Adviser(Speaker):
        def explain(self, job: pl.DataFrame, known: Known, *, stage: Stage) -> Parts:
            return self.assess(job, known, stage=stage)[0]

    for told in ({"a": wanted, "b": allowed}, {"b": allowed, "a": wanted}):
        speakers = {name: Adviser(lambda row, parts=parts: parts) for name, parts in told.items()}
        judge = Judge(
            {name: DetectorModels({Stage.SUBMIT: Model(each, "7")}) for name, each in speakers.items()}
        )
        [verdict] = assess(judge, frame({}))
        assert [each.change for each in verdict.advice] == ["--mem=4G"]
