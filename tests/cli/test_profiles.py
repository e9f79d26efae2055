"""`tocsin profiles` on logs of each format, for eyes and for programs."""

import gzip
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import polars as pl
import pytest

from tests.cli.conftest import Tocsin
from tocsin.cli.logs import read_log
from tocsin.cli.settings import Context
from tocsin.core.errors import SourceError


def swf(jobs: int = 120) -> str:
    """Every third job has 64 CPUs, runs for hours and is cancelled."""
    lines = ["; UnixStartTime: 1000000000"]
    for number in range(1, jobs + 1):
        large = number % 3 == 0
        run, procs, limit, status = (
            (20_000, 64, 36_000, 5) if large else (60 + number, 1 + number % 2, 600, 1)
        )
        words = [
            number,
            number * 500,
            10,
            run,
            procs,
            -1,
            -1,
            procs,
            limit,
            -1,
            status,
            1 + number % 7,
            1,
            1,
            1,
            1,
        ]
        lines.append(" ".join(map(str, [*words, -1, -1])))
    return "\n".join(lines) + "\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "small.swf.gz"
    path.write_bytes(gzip.compress(swf().encode()))
    return path


def test_profiles_are_printed_in_words_and_tables(tocsin: Tocsin, log: Path) -> None:
    said = tocsin("profiles", log)
    assert said.code == 0
    assert "request profiles of 120 jobs by a Gaussian mixture" in said.out
    assert "medium 64-CPU jobs of many users, 5.6 h of 10 h asked: 40 jobs (33%)" in said.out
    for title in ("Resources and times", "Jobs by run time", "Users by activity", "target: unsuccessful"):
        assert title in said.out
    assert "no job tells its memory" in said.err


def test_json_and_the_files_say_the_same(tocsin: Tocsin, log: Path, tmp_path: Path) -> None:
    said = tocsin(
        "profiles", log, "--kind", "usage", "--method", "kmeans", "--out", tmp_path / "out", "--json"
    )
    document = json.loads(said.out)
    assert document == json.loads((tmp_path / "out" / "profiles.json").read_text())
    assert document["kind"] == "usage"
    assert sum(row["jobs"] for row in document["tables"]["resources"]) == document["rows"] == 120
    for name in ("elbow", "bic", "labels", "correlation"):
        ElementTree.fromstring((tmp_path / "out" / f"{name}.svg").read_text())


def test_the_store_gives_the_same_profiles_as_the_log(tocsin: Tocsin, log: Path) -> None:
    assert tocsin("import", "swf", log).code == 0
    stored, read = (json.loads(tocsin("profiles", *of, "--json").out) for of in (["--store"], [log]))
    assert stored == read


def test_what_cannot_be_done_is_a_sentence(tocsin: Tocsin, tmp_path: Path) -> None:
    (tmp_path / "few.swf").write_text(swf(20))
    (tmp_path / "junk.txt").write_text("hello\nworld\n")
    assert "20 jobs are too few for profiles; 50 are needed" in tocsin("profiles", tmp_path / "few.swf").err
    assert "name a mapping with -m" in tocsin("profiles", tmp_path / "junk.txt").err
    assert "there is no file" in tocsin("profiles", tmp_path / "none").err
    assert "the store has no jobs" in tocsin("profiles", "--store").err
    assert "name a LOG, or --store" in tocsin("profiles").err
    assert tocsin("profiles", tmp_path / "few.swf", "--store").code == 2


SACCT = """JobID|Cluster|User|Partition|Submit|Start|End|Elapsed|State|ReqCPUS|NNodes
7|lab|ada|long|2025-02-01T10:00:00|2025-02-01T10:01:00|2025-02-01T10:02:00|00:01:00|COMPLETED|4|1
8|lab|bob|long|2025-02-01T09:00:00|2025-02-01T10:01:00|2025-02-01T10:02:00|00:01:00|FAILED|4|1
"""


def test_a_log_is_known_by_its_content_not_by_its_name(tmp_path: Path, tocsin: Tocsin) -> None:
    context = Context(environ={"HOME": str(tmp_path), "TZ": "UTC"})
    (tmp_path / "a").write_text(SACCT)
    jobs = read_log(context, str(tmp_path / "a"))
    assert jobs["job_id"].to_list() == [8, 7]  # by submission
    assert jobs["known_at"].to_list() == (jobs["end"] + 60).to_list()
    header, rows = SACCT.partition("\n")[::2]
    (tmp_path / "b").write_bytes(gzip.compress(rows.encode()))
    assert read_log(context, str(tmp_path / "b"), columns=header.replace("|", ",")).equals(jobs)
    (tmp_path / "c").write_text(swf(3))
    assert read_log(context, str(tmp_path / "c"), cluster="old")["cluster"].unique().to_list() == ["old"]
    table = pl.DataFrame({"id_job": [1, 2], "time_submit": [10**9, 10**9 + 5], "state": [3, 5]})
    table.write_parquet(tmp_path / "d")
    table.write_csv(tmp_path / "e")
    for name in ("d", "e"):
        assert read_log(context, str(tmp_path / name), cluster="t")["outcome"].to_list() == [
            "completed",
            "failed",
        ]


def test_a_time_zone_shifts_the_times_of_sacct(tmp_path: Path, tocsin: Tocsin) -> None:
    context = Context(environ={"HOME": str(tmp_path), "TZ": "UTC"})
    (tmp_path / "a").write_text(SACCT)
    utc, rome = (read_log(context, str(tmp_path / "a"), tz=zone) for zone in (None, "Europe/Rome"))
    assert (utc["submit"] - rome["submit"]).to_list() == [3600, 3600]


@pytest.mark.parametrize(
    "content", [b"", b"; only a comment\n", b"\x1f\x8bbroken", b"PAR1nothing", b"\x00" * 50]
)
def test_nonsense_is_refused_with_a_sentence(tmp_path: Path, tocsin: Tocsin, content: bytes) -> None:
    (tmp_path / "bad").write_bytes(content)
    with pytest.raises(SourceError, match="bad"):
        read_log(Context(environ={"HOME": str(tmp_path), "TZ": "UTC"}), str(tmp_path / "bad"))
