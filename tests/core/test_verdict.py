"""A verdict is the same document everywhere, and the published schema holds for it."""

import dataclasses
import json
from enum import StrEnum
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.core.errors import InputError
from tocsin.core.fields import ValueType, value_type
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


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Any value that a field with this type may hold."""
    if isinstance(hint, UnionType):
        return st.none() | values(get_args(hint)[0])
    if dataclasses.is_dataclass(hint):
        hints = get_type_hints(hint, include_extras=True)
        return st.builds(hint, **{name: values(each) for name, each in hints.items()})
    if get_origin(hint) is list:
        return st.lists(values(get_args(hint)[0]), max_size=2)
    if get_origin(hint) is dict:
        return st.dictionaries(st.text(max_size=3), values(get_args(hint)[1]), max_size=2)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return st.sampled_from(list(hint))
    plain = {
        ValueType.TEXT: st.text(max_size=5),
        ValueType.FLAG: st.booleans(),
        ValueType.NUMBER: st.floats(allow_nan=False, allow_infinity=False),
        ValueType.INSTANT: st.integers(0, 4 * 10**9),
        ValueType.SECONDS: st.integers(0, 10**9) | st.just(UNLIMITED),
    }
    return plain.get(value_type(hint), st.integers(0, 10**12))


@given(values(Verdict))
def test_a_verdict_read_back_from_json_is_the_same(verdict: Verdict) -> None:
    assert Verdict.from_json(json.loads(json.dumps(verdict.to_json()))) == verdict


@pytest.mark.parametrize(
    "change", [{"schema": 99}, {"surprise": 1}, {"level": "loud"}, {"job": None, "failure": 3}]
)
def test_what_is_no_verdict_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Verdict.from_json({**FULL.to_json(), **change})
