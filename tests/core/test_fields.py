"""One table makes the record, the frame and the JSON, and says when each value is known."""

import polars as pl
import pytest

from tocsin.core.fields import FIELDS, KEY, Job, Part, ValueType, fields_of
from tocsin.core.frames import SCHEMA, conform, from_jobs, key_text, outcome_from_state
from tocsin.core.job_json import to_json
from tocsin.core.outcomes import (
    DATABASE_STATES,
    SHORT_STATES,
    STATES,
    SWF_STATUSES,
    TARGETS,
    Outcome,
    Target,
    outcome_of,
)
from tocsin.core.stages import Stage
from tocsin.core.units import UNLIMITED

JOB = Job(
    cluster="lab",
    job_id=17,
    task=4,
    submit=1794775393,
    user="alice",
    time_limit=UNLIMITED,
    end=1794775400,
    outcome=Outcome.TIMEOUT,
)


def test_a_job_goes_into_a_frame_and_comes_back_the_same() -> None:
    assert Job(**from_jobs([JOB]).row(0, named=True)) == JOB


def test_the_frame_has_exactly_the_tables_fields() -> None:
    assert from_jobs([]).schema == SCHEMA
    assert list(SCHEMA) == list(FIELDS)
    assert KEY == ("cluster", "job_id", "task", "submit")


def test_a_partial_frame_is_filled_up_and_strangers_are_dropped() -> None:
    frame = conform(pl.DataFrame({"job_id": [1], "cluster": ["lab"], "shoe_size": [44]}))
    assert frame.schema == SCHEMA
    assert frame["user"].to_list() == [None]


def test_nothing_that_tells_the_end_is_known_before_the_end() -> None:
    early = {name for name, field in FIELDS.items() if Stage.EARLY.knows(field.stage)}
    assert not early & {
        "end",
        "outcome",
        "state",
        "exit_code",
        "elapsed",
        "cpu_seconds",
        "max_memory",
        "energy",
    }
    assert not early & {"known_at", "intervened"}
    at_submit = {name for name, field in FIELDS.items() if Stage.SUBMIT.knows(field.stage)}
    assert not at_submit & {"start", "node_list", "alloc_cpus", "eligible", "segment"}
    assert set(fields_of(Part.REQUEST)) <= at_submit


def test_json_has_instants_in_utc_and_no_limit_as_a_word() -> None:
    row = to_json(from_jobs([JOB]).row(0, named=True))
    assert row["job"] == "lab:17_4@1794775393"
    assert row["end"].endswith("Z")
    assert row["time_limit"] == "UNLIMITED"
    assert row["outcome"] == "timeout"


def test_the_key_of_a_frame_is_the_key_of_its_jobs() -> None:
    plain = Job(cluster="lab", job_id=9, task=None, submit=5)
    frame = from_jobs([JOB, plain]).select(key_text())
    assert frame["job"].to_list() == [str(JOB.key), str(plain.key)]


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        ("CANCELLED by 1234", Outcome.CANCELLED),
        ("COMPLETED", Outcome.COMPLETED),
        ("OOM", Outcome.OUT_OF_MEMORY),
        ("RUNNING", None),
        ("PENDING", None),
        ("CANCELLED+", Outcome.CANCELLED),
        ("SOMETHING_NEW", Outcome.UNKNOWN),
        ("", None),
        (None, None),
    ],
)
def test_the_outcome_is_read_from_the_state(state: str | None, outcome: Outcome | None) -> None:
    assert outcome_of(state) == outcome


def test_a_column_of_states_has_the_same_outcomes_as_each_state_alone() -> None:
    states = [*STATES, *SWF_STATUSES.values(), "SOMETHING_NEW"]
    column = pl.DataFrame({"state": states}).select(outcome_from_state(pl.col("state")))["state"]
    assert column.to_list() == [outcome_of(state) for state in states]


def test_every_short_and_numbered_state_is_a_state() -> None:
    assert set(SHORT_STATES.values()) <= set(STATES)
    assert set(DATABASE_STATES.values()) <= set(STATES)


def test_a_cancelled_job_is_no_failure_but_unsuccessful() -> None:
    assert Outcome.CANCELLED not in TARGETS[Target.FAILED]
    assert TARGETS[Target.UNSUCCESSFUL] - TARGETS[Target.FAILED] == {Outcome.CANCELLED}
    assert not TARGETS[Target.UNSUCCESSFUL] & {Outcome.COMPLETED, Outcome.PREEMPTED, Outcome.UNKNOWN}


def test_every_kind_has_a_place_in_frames() -> None:
    assert {field.type for field in FIELDS.values()} == set(ValueType)
