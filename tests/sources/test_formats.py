"""A file is recognised by its content; other output of Slurm is named in the error."""

import json
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
        ("nothing of the kind\n", "PBS"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "x").write_text(text)
    with pytest.raises(SourceError, match=what):
        read(tmp_path / "x", cluster="lab")
