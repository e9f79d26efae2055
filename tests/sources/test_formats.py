"""A file is recognised by its content; other output of Slurm is named in the error."""

import bz2
import gzip
import json
import lzma
import re
from pathlib import Path

import polars as pl
import pytest

from tocsin.core.errors import SourceError
from tocsin.sources.formats import open_log


def read(path: Path, **how: str) -> pl.DataFrame:
    return pl.concat([batch.jobs for batch in open_log(str(path), **how).batches()])  # type: ignore[arg-type]  # options


def test_the_queue_as_json_is_read(tmp_path: Path) -> None:
    job = {
        "job_id": 7,
        "job_state": ["RUNNING"],
        "submit_time": {"set": True, "number": 100},
        "cluster": "lab",
    }
    running = job | {
        "start_time": {"set": True, "number": 110},
        "nodes": "n1",
        "tres_alloc_str": "cpu=1,node=1",
    }
    (tmp_path / "queue.json").write_text(json.dumps({"jobs": [running]}))
    assert read(tmp_path / "queue.json").select("job_id", "submit", "start", "state", "source").row(0) == (
        *(7, 100, 110, "RUNNING", "squeue"),
    )


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("JobId=7 JobName=x\n   UserId=ada(1000)\n", "scontrol"),
        ("NodeName=n1 Arch=x86_64\n", "scontrol"),
        (
            "             JOBID PARTITION     NAME     USER ST\n                 7      main        x      ada  R\n",
            "squeue",
        ),
        (
            "JobID           JobName      State \n------------ ---------- ---------- \n2 wrap COMPLETED\n",
            "sacct -P",
        ),
        ("PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n", "sinfo"),
        ("-" * 80 + "\nCluster/Account/User Utilization\n", "sreport"),
        ("Cluster|Account|Login|Proper Name|Used|Energy\nlab|root|||10|0\n", "sreport"),
        ("Job: 12.head\n\n04/16/2023 00:00:02  S    enqueuing\n", "server_priv/accounting"),
        ("Job Id: 12.head\n    Job_Name = x\n", "server_priv/accounting"),
        (
            "Job ID: 12\nCluster: lab\nState: FAILED (exit code 1)\n",
            "seff, which has no times; give the output of sacct",
        ),
        ("     JobID    State     Elapsed  TimeEff   CPUEff\n  7    FAILED\n", "reportseff"),
        ("*" * 55 + "\nsdiag output at Mon\n", "sdiag"),
        (
            " ID     OWNER          SUBMITTED   RUN_TIME     ST COMPLETED\n",
            "HTCondor.*export its jobs as CSV",
        ),
        ("ClusterId = 12\nProcId = 0\n", "HTCondor"),
        (
            "000 (012.000.000) 2024-01-01 00:00:00 Job submitted from host: <>\n",
            "HTCondor's log of job events",
        ),
        ('{"jobs": [{"id": 1, "t_submit": 1.5}]}', "JSON of Flux"),
        ('{"7": {"submissionTime": 1}}', "JSON of OAR"),
        ('[{"status": "Pass", "submitted_time": "2024-01-01 00:00:00"}]', "JSON of the Philly trace"),
        ('[{"JobID": 1}]', "a JSON list"),
        (
            "# JobID SubmitTime WaitTime\n0 1 2 3 1 -1 -1 1 -1 -1 1 U1 G1 X1 Q1" + " -1" * 14 + "\n",
            "Grid Workload Format",
        ),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
        ("<!DOCTYPE html><html></html>\n", "a web page; download the file itself"),
        (
            "-- MySQL dump 10.13\nCREATE TABLE x (y int);\n",
            "a dump of a database; export the table of jobs as CSV",
        ),
        ("nothing of the kind\n", "PBS"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "x").write_text(text)
    with pytest.raises(SourceError, match=what):
        read(tmp_path / "x", cluster="lab")


ROW = "JobID|Cluster|Submit\n1|lab|2024-01-02T10:00:00\n"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (lzma.compress(ROW.encode()), "packed with xz; unpack it, such as with xzcat"),
        (bz2.compress(ROW.encode()), "packed with bzip2"),
        (b"\x28\xb5\x2f\xfd\0\0", "packed with zstd"),
        (gzip.compress(lzma.compress(ROW.encode())), "packed with xz"),
        (b"jobs.txt" + bytes(249) + b"ustar\x0000", "a tar archive"),
        (ROW.encode("utf-16"), "UTF-16"),
        (ROW.encode("utf-16-le"), "UTF-16"),
        (ROW.encode("utf-16-be"), "UTF-16"),
        (
            b"sacct: error: Connection refused\n",
            "is an error message of Slurm, not its jobs; run the command again",
        ),
        (
            b"PK\x03\x04" + bytes(26) + b"[Content_Types].xml",
            "an Excel workbook; save its sheet of jobs as CSV",
        ),
        (b"SQLite format 3\0" + bytes(80), "an SQLite database; export the table of jobs as CSV"),
        (
            b"\x80\x04\x95" + bytes(80),
            "a Python pickle, which can run code, so it is not read; write it as Parquet",
        ),
        (b"ARROW1\0\0" + bytes(80), "an Arrow (Feather) file; write it as Parquet or CSV"),
        (b"\x01\x02\x03" + bytes(80), "has no known format; it is not text"),
        (b'{"nodes": [{"name": "n1"}], "meta": {}}', 'has no list "jobs", but nodes, meta'),
        (b'{"job_id": 1}\n{"job_id": 2}\n', 'has no list "jobs", but job_id'),
    ],
)
def test_a_file_of_another_kind_is_an_error_with_the_next_step(
    tmp_path: Path, content: bytes, what: str
) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(SourceError, match=re.escape(what)):
        read(tmp_path / "x")


def test_a_log_in_swf_may_be_indented(tmp_path: Path) -> None:
    row = " 1 5 10 100 4 -1 -1 4 100 -1 1 1 1 -1 1 -1 -1 -1\n"
    (tmp_path / "x.swf").write_text(f"  ; UnixStartTime: 1000000000\n{row}")
    assert read(tmp_path / "x.swf")["submit"].to_list() == [1_000_000_005]


def test_the_note_on_unreadable_times_names_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "x").write_text(ROW + "2|lab|Mon 10:00\n")
    source = open_log(str(tmp_path / "x"))
    list(source.batches())
    assert any("SLURM_TIME_FORMAT" in note for note in source.notes)


def test_a_message_of_sacct_may_come_before_its_output(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("sacct: warning: no database\n" + ROW)
    source = open_log(str(tmp_path / "x"))
    jobs = pl.concat([batch.jobs for batch in source.batches()])
    assert jobs["job_id"].to_list() == [1]
    assert source.rejects.lines == {"wrong number of columns": [1]}


def test_times_of_sacct_in_another_format_are_not_taken_for_those_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("JobID|Cluster|Submit|User\n1|lab|01.02.2024 10:00:00|ann\n")
    source = open_log(str(tmp_path / "x"))
    list(source.batches())
    assert source.rejects.total == 1
    assert any("SLURM_TIME_FORMAT" in note for note in source.notes)


def test_a_header_with_widths_may_be_repeated(tmp_path: Path) -> None:
    head = "JobID%30|Cluster|Submit|State%-20\n"
    (tmp_path / "x").write_text(
        f"{head}1|lab|2024-01-02T10:00:00|FAILED\n{head}2|lab|2024-01-02T10:00:00|FAILED\n"
    )
    source = open_log(str(tmp_path / "x"))
    assert pl.concat([batch.jobs for batch in source.batches()])["job_id"].to_list() == [1, 2]
    assert not source.rejects.counts
