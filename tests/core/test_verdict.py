"""A verdict is the same document everywhere, and the published schema holds for it."""

import json
from pathlib import Path

import jsonschema
import pytest

from tocsin.core.outcomes import Outcome, Target
from tocsin.core.schema import verdict_schema
from tocsin.core.stages import Stage
from tocsin.core.units import UNLIMITED
from tocsin.core.verdict import (
    Advice,
    Avoid,
    Contribution,
    Edit,
    Evidence,
    Failure,
    Finding,
    Level,
    MemoryRange,
    Nodes,
    Resources,
    Rogue,
    RuntimeRange,
    Screening,
    Similar,
    Verdict,
    Workload,
    worst,
)

FULL = Verdict(
    job="lab:17_4@1794775393",
    stage=Stage.SUBMIT,
    at=1794775394,
    known_until=1794775393,
    level=Level.CRITICAL,
    findings=[
        Finding(
            detector="failure",
            kind="risk",
            level=Level.CRITICAL,
            text="it will fail",
            score=0.9,
            threshold=0.5,
        )
    ],
    failure=Failure(
        probability=0.9,
        threshold=0.5,
        will_fail=True,
        target=Target.FAILED,
        causes={"out_of_memory": 0.8},
        contributions=[
            Contribution(feature="user_oom_rate", value="0.8", effect=1.5, text="4 of 5 ran out of memory")
        ],
        similar=[Similar(job="lab:9@1794700000", outcome=Outcome.OUT_OF_MEMORY, distance=0.1)],
        profile="small and short",
    ),
    workload=Workload(
        submission=Screening(operations={"ai": 0.97}, evidence=[Evidence(line=3, operation="ai")]),
        execution=None,
    ),
    rogue=Rogue(rogue=False, operations=[], rule="ai is allowed", action="none"),
    resources=Resources(
        runtime_seconds=RuntimeRange(p50=60, p95=600, requested=UNLIMITED),
        memory_bytes=MemoryRange(p50=2**30, p95=2**31, requested=2**30),
    ),
    nodes=Nodes(avoid=[Avoid(node="n3", why="3 of its last 4 jobs failed")]),
    advice=[
        Advice(
            change="ask for 2 GiB",
            why="past jobs needed it",
            edit=Edit(line=3, old="#SBATCH --mem=1G", new="#SBATCH --mem=2G"),
            risk_before=0.9,
            risk_after=0.1,
        )
    ],
    models={"failure": "7"},
    missing={"traces": "no agent runs on n3"},
)
PLAIN = Verdict(job="lab:1@5", stage=Stage.END, at=6, known_until=6, level=Level.OK)


@pytest.mark.parametrize("verdict", [FULL, PLAIN])
def test_a_verdict_is_valid_by_its_schema(verdict: Verdict) -> None:
    document = json.loads(json.dumps(verdict.to_json()))
    jsonschema.validate(document, verdict_schema(), format_checker=jsonschema.FormatChecker())


@pytest.mark.parametrize(
    ("part", "value"),
    [("level", "fine"), ("at", 5), ("shoe_size", 44), ("findings", [{"detector": "x"}]), ("stage", "later")],
)
def test_the_schema_refuses_what_is_no_verdict(part: str, value: object) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**FULL.to_json(), part: value}, verdict_schema())


def test_the_published_schema_is_the_one_in_use() -> None:
    published = Path(__file__).parents[2] / "docs" / "verdict.schema.json"
    assert json.loads(published.read_text()) == verdict_schema(), "write it anew: tocsin schema verdict"


def test_no_limit_is_a_word_and_times_are_utc() -> None:
    document = FULL.to_json()
    assert document["resources"]["runtime_seconds"]["requested"] == "UNLIMITED"
    assert document["at"] == "2026-11-15T20:43:14Z"


def test_the_same_verdict_has_the_same_id_and_another_stage_another() -> None:
    assert FULL.to_json()["id"] == FULL.to_json()["id"]
    assert FULL.to_json()["id"] != PLAIN.to_json()["id"]


def test_a_verdict_is_as_bad_as_its_worst_finding() -> None:
    assert worst([]) is Level.OK
    assert worst([Level.OK, Level.UNKNOWN]) is Level.UNKNOWN
    assert worst([Level.UNKNOWN, Level.WARNING, Level.OK]) is Level.WARNING
