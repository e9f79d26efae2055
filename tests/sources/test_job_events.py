"""Job events as JSON: ours and jobcomp's, and what cannot be one."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.watching import ended, frame, running
from tocsin.core.fields import FIELDS
from tocsin.core.intake import Rejects, valid_jobs
from tocsin.core.units import UNLIMITED
from tocsin.sources.job_events import Unreadable, event_document, read_event
from tocsin.sources.kafka import to_frame

RECORDED = Path(__file__).parent / "fixtures" / "jobcomp_kafka.jsonl"


def event(**more: Any) -> bytes:
    plain = {"schema": "tocsin.job/1", "cluster": "lab", "job_id": 7, "submit": "2026-11-15T20:05:56Z"}
    return json.dumps({**plain, **more}).encode()


def fields(data: bytes) -> dict[str, Any]:
    found = read_event(data, "lab")
    assert found is not None
    return found.fields


def test_records_of_a_real_jobcomp_plugin_are_read() -> None:
    first, oom, failed = RECORDED.read_bytes().splitlines()
    with pytest.raises(ValueError, match="not JSON"):
        read_event(first, "lab")
    job = fields(oom)
    assert (job["cluster"], job["job_id"], job["user"], job["account"]) == ("lab", 2, "alice", "research")
    assert (job["submit"], job["start"], job["end"]) == (1794773156, 1794773158, 1794773161)
    assert (job["outcome"], job["state"], job["exit_code"], job["exit_signal"]) == (
        "out_of_memory",
        "OUT_OF_MEMORY",
        0,
        125,
    )
    assert (job["time_limit"], job["req_memory"], job["node_list"]) == (600, 100 * 2**20, "n1")
    assert (job["het_id"], job["task"], job["elapsed"]) == (None, None, 3)
    found = read_event(failed, "lab")
    assert found is not None
    assert str(found.script).startswith("#!/bin/bash\n#SBATCH --job-name=fail")


def test_a_task_of_an_array_and_a_job_that_never_started_by_jobcomp() -> None:
    record = json.loads(RECORDED.read_bytes().splitlines()[1])
    task = fields(json.dumps({**record, "array_job_id": 90, "array_task_id": 4, "jobid": 94}).encode())
    assert (task["job_id"], task["task"], task["raw_id"]) == (90, 4, 94)
    never = {**record, "@start": "Unknown", "nodes": None, "state": "CANCELLED", "tres_alloc": None}
    job = fields(json.dumps({k: v for k, v in never.items() if k != "time_limit"}).encode())
    assert (job.get("start"), job["outcome"], job["end"]) == (None, "cancelled", 1794773161)
    assert job["time_limit"] == UNLIMITED


def test_an_event_of_ours_reads_as_the_job_that_it_was_written_from() -> None:
    for row in frame(
        {"time_limit": UNLIMITED, "name": "naïve", "exclusive": False},
        running(1794773158, req_memory=2**30),
        ended(1794773158, 1794773200, "FAILED", exit_code=3, energy=1.5),
    ).iter_rows(named=True):
        document = event_document(row)
        read = fields(json.dumps(document).encode())
        kept = {name: value for name, value in row.items() if name not in ("known_at", "intervened")}
        assert {name: read.get(name) for name in kept} == kept
    assert [
        event_document(row)["event"] for row in frame({}, running(9), ended(9, 10)).iter_rows(named=True)
    ] == [
        "submit",
        "start",
        "end",
    ]


def test_a_record_without_a_cluster_is_of_this_one_and_those_of_others_are_left_alone() -> None:
    assert fields(event(cluster=None))["cluster"] == "lab"
    assert read_event(event(cluster="other"), "lab") is None


def test_what_the_reader_decides_for_itself_is_not_taken_from_an_event() -> None:
    found = fields(event(known_at="2026-01-01T00:00:00Z", intervened=True, nonsense={"a": 1}))
    assert not {"known_at", "intervened", "nonsense"} & found.keys()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"init", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b"{}", "not a record of"),
        (b"[" * 100_000, "not JSON"),
        (event(submit=None), "no submit"),
        (event(submit="tomorrow"), "submit is not a time"),
        (event(job_id="7"), "job_id has the wrong type"),
        (event(job_id=10**30), "job_id out of range"),
        (event(user=["root"]), "user has the wrong type"),
        (b'{"jobid": 3}', "no submit"),
        (b'{"jobid": "x", "@submit": "2026-11-15T20:05:56"}', "a numeric field of jobcomp is not a number"),
    ],
)
def test_a_record_that_is_no_job_is_refused_with_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        read_event(data, "lab")


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
_NAMES = st.sampled_from([*FIELDS, "jobid", "@submit", "@start", "@end", "exit_code", "tres_req", "schema"])


@given(st.dictionaries(_NAMES, _VALUES), st.sampled_from(["tocsin.job/1", None]))
def test_any_json_is_read_or_refused(found: dict[str, Any], schema: str | None) -> None:
    try:
        read = read_event(json.dumps({**found, "schema": schema, "jobid": 1}).encode(), "lab")
    except Unreadable:
        return
    assert valid_jobs(to_frame([read] if read else []), Rejects()).height <= 1
