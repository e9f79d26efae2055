"""A table without a mapping is read by the names of its columns, and refused where they have two readings."""

import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.core.errors import SourceError
from tocsin.core.intake import JobSource
from tocsin.core.units import UNLIMITED
from tocsin.sources.formats import open_log
from tocsin.sources.mapping import read_mapping
from tocsin.sources.table import TableFile

DAY = 1704067200  # 2024-01-01T00:00:00Z
HEAD = "job_id,user,submit_time,start_time,end_time,state"
ROW = "7,ann,2024-01-01 00:00:00,2024-01-01 00:01:00,2024-01-01 01:01:00,COMPLETED"


def opened(folder: Path, text: str, **options: Any) -> JobSource:
    (folder / "jobs.csv").write_text(text)
    return open_log(str(folder / "jobs.csv"), **options)


def jobs_of(source: JobSource) -> list[dict[str, Any]]:
    jobs = pl.concat([batch.jobs for batch in source.batches()])
    assert not source.rejects.counts
    return [{name: value for name, value in row.items() if value is not None} for row in jobs.to_dicts()]


def with_column(name: str, *values: str) -> str:
    rows = (ROW.replace("7,", f"{7 + number},", 1) + f",{value}\n" for number, value in enumerate(values))
    return f"{HEAD},{name}\n" + "".join(rows)


def test_a_trace_of_gpu_jobs(tmp_path: Path) -> None:
    text = (
        "job_id,user,vc,jobname,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
        "1,u1,vcA,train,8,32,2,NODE_FAIL,2024-01-01 00:00:00,2024-01-01 00:00:10,2024-01-01 01:00:10,3600,10\n"
        "2,u2,vcB,eval,0,4,1,CANCELLED,2024-01-01 00:00:00,,2024-01-01 00:10:00,0,600\n"
    )
    source = opened(tmp_path, text, cluster="lab")
    first, second = jobs_of(source)
    assert first == {
        "cluster": "lab",
        "job_id": 1,
        "submit": DAY,
        "name": "train",
        "user": "u1",
        "partition": "vcA",
        "req_nodes": 2,
        "req_cpus": 32,
        "req_gpus": 8,
        "start": DAY + 10,
        "end": DAY + 3610,
        "elapsed": 3600,
        "state": "NODE_FAIL",
        "outcome": "node_fail",
        "source": "table",
        "request_final": True,
    }
    assert second["outcome"] == "cancelled"
    assert "start" not in second
    read, rest, zone = source.notes
    assert 'submit = "submit_time"' in read
    assert 'partition = "vc"' in read
    assert rest == "columns not read: duration, queue"
    assert zone == "times without a time zone are read as UTC (set it with --tz)"


def test_quoted_capitals_and_an_exit_status_without_a_state(tmp_path: Path) -> None:
    text = (
        '"JOB_NAME","COBALT_JOBID","MACHINE_NAME","QUEUED_TIMESTAMP","START_TIMESTAMP","END_TIMESTAMP",'
        '"USERNAME_GENID","WALLTIME_SECONDS","RUNTIME_SECONDS","NODES_USED","NODES_REQUESTED","EXIT_STATUS"\n'
        '"12.x","12","x","2024-01-01 00:00:00","2024-01-01 00:30:00","2024-01-01 01:00:00","9","7200.00","1800.0","4","8","0"\n'
        '"13.x","13","x","2024-01-01 00:00:00","2024-01-01 00:30:00","2024-01-01 01:00:00","9","7200.00","1800.0","4","8","143"\n'
    )
    source = opened(tmp_path, text)
    first, second = jobs_of(source)
    assert (first["cluster"], first["time_limit"], first["req_nodes"], first["alloc_nodes"]) == (
        "x",
        7200,
        8,
        4,
    )
    assert (first["outcome"], second["outcome"], second["exit_code"]) == ("completed", "failed", 143)
    assert "no column has states: 0 → COMPLETED, any other → FAILED" in source.notes[0]


def test_a_table_without_job_ids_counts_its_rows(tmp_path: Path) -> None:
    text = (
        "user_ID,group_ID,submit_time,start_time,end_time,wallclock_limit,job_status,node_count,tasks_requested\n"
        "0,1,2024-01-01 00:00:00-06:00,2024-01-01 00:00:05-06:00,2024-01-01 01:00:05-06:00,16:00:00,COMPLETED,2,32\n"
        "0,1,2024-01-01 00:00:00-06:00,,2024-01-01 00:09:00-06:00,1-00:00:00,CANCELLED,2,32\n"
    )
    source = opened(tmp_path, text)
    first, second = jobs_of(source)
    assert (first["job_id"], second["job_id"]) == (1, 2)
    assert (first["submit"], first["time_limit"], second["time_limit"]) == (DAY + 6 * 3600, 57600, 86400)
    assert "job_id = row number" in source.notes[1]
    assert not any("without a time zone" in note for note in source.notes)


def test_parquet_with_times_and_an_empty_column(tmp_path: Path) -> None:
    at = [datetime(2024, 1, 1, hour, tzinfo=UTC) for hour in range(3)]
    pl.DataFrame(
        {
            "job_id": [1], "submit_time": at[:1], "start_time": at[1:2], "end_time": at[2:], "job_state": ["OUT_OF_MEMORY"],
            "num_nodes_req": [2], "req_nodes": [""], "mem_req": [460], "time_limit": [1440], "nodes": ["n1,n2"],
        }
    ).write_parquet(tmp_path / "p.parquet")  # fmt: skip
    source = open_log(str(tmp_path / "p.parquet"))
    [job] = jobs_of(source)
    assert (job["submit"], job["end"], job["outcome"]) == (DAY, DAY + 7200, "out_of_memory")
    assert job["req_nodes"] == 2
    assert not {"req_memory", "time_limit"} & set(job)
    notes = "\n".join(source.notes)
    assert 'column "time_limit" is not read: its unit is not known' in notes
    assert (
        'column "mem_req" is not read: its unit, and whether it is per node, CPU or job, is not known'
        in notes
    )


@pytest.mark.parametrize(
    ("column", "value", "limit"),
    [
        ("wallclock_req_sec", "7200", 7200),
        ("Time limit (min)", "120", 7200),
        ("req_walltime_hours", "2.5", 9000),
        ("timelimit", "02:00:00", 7200),
        ("timelimit", "UNLIMITED", UNLIMITED),
        ("time_limit", "120", None),
        ("walltime_s", "7200", None),
        ("timelimit", "two hours", None),
    ],
)
def test_a_time_limit_is_read_only_with_its_unit(
    tmp_path: Path, column: str, value: str, limit: int | None
) -> None:
    source = opened(tmp_path, with_column(column, value))
    [job] = jobs_of(source)
    assert job.get("time_limit") == limit
    assert (limit is None) == any(f'column "{column}" is not read' in note for note in source.notes)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1704067200", DAY),
        ("1704067200.75", DAY),
        ("1704067200123", DAY),
        ("1704067200123456", DAY),
        ("2024-01-01T01:00:00+01:00", DAY),
        ("01.02.2024 00:00:00", DAY + 31 * 86400),
        ("01/31/2024 00:00", DAY + 30 * 86400),
        ("31/01/2024 00:00:00", DAY + 30 * 86400),
        ("01/01/2024 12:30:00 PM", DAY + 12 * 3600 + 1800),
    ],
)
def test_times_in_one_clear_form(tmp_path: Path, text: str, seconds: int) -> None:
    source = opened(tmp_path, f"jobid,user,submitted,state\n1,ann,{text},FAILED\n")
    [job] = jobs_of(source)
    assert job["submit"] == seconds


def test_a_day_above_twelve_decides_the_form_for_all_columns(tmp_path: Path) -> None:
    text = "jobid,user,submit,start,state\n1,ann,01/02/2024 00:00:00,13/02/2024 00:00:00,FAILED\n"
    [job] = jobs_of(opened(tmp_path, text))
    assert job["submit"] == DAY + 31 * 86400


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("jobid,user,submit,state\n1,ann,01/02/2024 00:00:00,FAILED\n", "which may be %m/%d/%Y %H:%M:%S or %d/%m/%Y"),
        ("job_id,user,submit_time,state\n1,ann,50,FAILED\n", '"submit_time" has numbers such as 50, which are not epoch times'),
        ("job_id,user,submit_time,state\n1,ann,44927.5,FAILED\n", "numbers such as 44927.5"),
        ("job_id,user,submit_time,state\n1,ann,monday,FAILED\n", 'times in an unknown form, such as "monday"'),
        ("job_name,inst,user,status,start_time\na,1,u,Failed,5\n", "no column has a known name for the submit time"),
        (f"{HEAD},submitted_at\n{ROW},2024-01-01 00:05:00\n", '"submit_time" and "submitted_at" could both be submit'),
        (f"{HEAD}\n{ROW}\n{ROW.replace('7,', '7.batch,', 1)}\n", "has steps of jobs too, such as 7.batch; export jobs only"),
    ],
)  # fmt: skip
def test_two_readings_are_refused_with_the_next_step(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(SourceError, match=re.escape(problem)) as raised:
        opened(tmp_path, text)
    assert re.search(r"with -m|sacct -X", str(raised.value))


def test_equal_columns_are_not_two_readings(tmp_path: Path) -> None:
    [job] = jobs_of(opened(tmp_path, f"{HEAD},submitted_at\n{ROW},2024-01-01 00:00:00\n"))
    assert job["submit"] == DAY


def test_states_in_other_words_are_shown_and_unknown_ones_counted(tmp_path: Path) -> None:
    words = ["Success", "killed", "CANCELLED by 7", "Terminated", "oom"]
    rows = "".join(f"{number},u,{DAY},{word}\n" for number, word in enumerate(words))
    source = opened(tmp_path, f"id,user,submit_time,status\n{rows}")
    states = [job["state"] for job in jobs_of(source)]
    assert states == ["COMPLETED", "CANCELLED", "CANCELLED", "TERMINATED", "OUT_OF_MEMORY"]
    assert (
        'state = "status" (Success → COMPLETED, killed → CANCELLED, oom → OUT_OF_MEMORY)' in source.notes[1]
    )
    assert 'the state "TERMINATED" of 1 record is unknown; its outcome is "unknown"' in source.notes


def test_states_as_numbers_are_left_to_a_mapping(tmp_path: Path) -> None:
    source = opened(tmp_path, f"id,user,submit_time,status\n1,u,{DAY},5\n")
    [job] = jobs_of(source)
    assert "outcome" not in job
    assert any('column "status" is not read: numbers such as 5 mean different states' in note for note in source.notes)  # fmt: skip


def test_a_comment_before_the_header_is_no_record(tmp_path: Path) -> None:
    source = opened(tmp_path, f"# exported by hand\n{HEAD}\n{ROW}\nx\n")
    [batch] = source.batches()
    assert (batch.read, batch.jobs.height, source.rejects.lines) == (2, 1, {"wrong number of columns": [4]})


def test_a_mapping_gives_the_unit_and_origin_of_times(tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text(
        '[fields]\njob_id = { unit = "row-number" }\nsubmit = { column = "t", unit = "minutes", origin = "2024-01-01" }\n'
        'time_limit = { column = "limit", unit = "duration" }\nexit_code = { column = "code", unit = "exit-code" }\n'
        'exit_signal = { column = "code", unit = "exit-signal" }\nstate = { column = "s", states = { ok = "COMPLETED", "*" = "FAILED" } }\n'
    )
    (tmp_path / "t.csv").write_text("t,limit,code,s\n0,1-00:00:00,0:9,odd\n1.5,30,1:0,ok\n")
    rows = jobs_of(TableFile(tmp_path / "t.csv", tmp_path / "m.toml"))
    names = ("job_id", "submit", "time_limit", "exit_code", "exit_signal", "state")
    assert [tuple(row[name] for name in names) for row in rows] == [
        (1, DAY, 86400, 0, 9, "FAILED"),
        (2, DAY + 90, 1800, 1, 0, "COMPLETED"),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('submit = { column = "t", origin = "yesterday" }', "fields.submit.origin is wrong"),
        ('submit = { unit = "row-number" }', "needs either a column or a value"),
        ('submit = { column = "t", unit = "row-number" }', '"row-number" is for job_id only'),
    ],
)
def test_a_wrong_origin_or_number_is_refused(tmp_path: Path, line: str, reason: str) -> None:
    (tmp_path / "m.toml").write_text(f'[fields]\njob_id = "id"\n{line}\n')
    with pytest.raises(SourceError, match=reason):
        read_mapping(tmp_path / "m.toml")


VALUES = st.sampled_from(
    ["1", "7.5", "-3", "1704067200", "2024-01-01 00:00:00", "01/02/2024 00:00", "1-00:00:00", "COMPLETED", "", "NaN", "n[1-3]", "é"]
)  # fmt: skip
NAMES = st.sampled_from(
    ["job_id", "id", "submit_time", "Submit", "start", "end_time", "state", "exit_code", "nodes", "queue", "walltime", "mem", "user", "x"]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.data(), st.lists(NAMES, min_size=1, max_size=8), st.integers(0, 5), st.sampled_from(",;\t|"))
def test_any_table_is_read_with_totals_that_add_up_or_refused(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    names: list[str],
    height: int,
    separator: str,
) -> None:
    rows = [data.draw(st.lists(VALUES, min_size=len(names), max_size=len(names))) for _ in range(height)]
    path = tmp_path_factory.mktemp("any") / "jobs.csv"
    path.write_text("".join(separator.join(row) + "\n" for row in [names, *rows]))
    try:
        source = open_log(str(path))
        batches = list(source.batches())
    except SourceError as error:
        assert "; " in str(error) or ", " in str(error), "it has a next step"
        return
    read = sum(batch.read for batch in batches)
    assert read == sum(batch.jobs.height for batch in batches) + source.rejects.total


def test_a_state_without_a_value_at_first_is_a_word(tmp_path: Path) -> None:
    [job] = jobs_of(opened(tmp_path, f"{HEAD}\n{ROW.replace('COMPLETED', '')}\n"))
    assert "state" not in job
    source = opened(
        tmp_path, f"{HEAD}\n" + f"{ROW.replace('COMPLETED', '')}\n" * 1000 + ROW.replace("7,", "8,", 1)
    )
    assert pl.concat([batch.jobs for batch in source.batches()])["state"].to_list() == [None, "COMPLETED"]


def test_columns_of_parquet_that_hold_no_plain_values_are_passed_over(tmp_path: Path) -> None:
    pl.DataFrame(
        {
            "job_id": [1],
            "submit_time": [date(2024, 1, 1)],
            "user": [b"ann"],
            "state": ["FAILED"],
            "nodes": [["n1", "n2"]],
            "time_limit": [timedelta(hours=1)],
            "num_nodes": [True],
            "account": [{"name": "x"}],
        }
    ).write_parquet(tmp_path / "p.parquet")
    [job] = jobs_of(open_log(str(tmp_path / "p.parquet")))
    assert (job["submit"], job["outcome"]) == (DAY, "failed")
    assert not {"user", "node_list", "time_limit", "req_nodes", "account"} & set(job)


def test_ids_of_array_tasks_are_split(tmp_path: Path) -> None:
    text = f"{HEAD}\n{ROW}\n{ROW.replace('7,', '7_4,', 1)}\n"
    assert [(job["job_id"], job.get("task")) for job in jobs_of(opened(tmp_path, text))] == [
        (7, None),
        (7, 4),
    ]


@pytest.mark.parametrize("text", ["1_2", "\u0661\u0662", "1e400", "0x10"])
def test_text_that_only_python_takes_for_a_number_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "m.toml").write_text('[fields]\njob_id = "id"\nsubmit = "t"\nreq_cpus = "cpus"\n')
    (tmp_path / "t.csv").write_text(f"id,t,cpus\n1,{DAY},{text}\n{text},{DAY},1\n", encoding="utf-8")
    source = TableFile(tmp_path / "t.csv", tmp_path / "m.toml")
    [batch] = source.batches()
    assert (batch.jobs["job_id"].to_list(), batch.jobs["req_cpus"].to_list()) == ([1], [None])
    assert source.rejects.counts == {"no job id": 1}
