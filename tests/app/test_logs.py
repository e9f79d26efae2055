"""The format of a log is found from its content, and bad records are reported."""

import gzip
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.kits.command_line import Tocsin
from tocsin.app.app import App
from tocsin.app.logs import LogRequest, read_jobs
from tocsin.cli.output import print_message
from tocsin.core.errors import SourceError

SACCT = """JobID|Cluster|User|Partition|Submit|Start|End|Elapsed|State|ReqCPUS|NNodes
7|lab|ada|long|2025-02-01T10:00:00|2025-02-01T10:01:00|2025-02-01T10:02:00|00:01:00|COMPLETED|4|1
8|lab|bob|long|2025-02-01T09:00:00|2025-02-01T10:01:00|2025-02-01T10:02:00|00:01:00|FAILED|4|1
"""
SWF = "; UnixStartTime: 1000000000\n1 0 5 60 4 -1 -1 4 600 -1 1 7 7 3 1 -1 -1 -1\n"


@pytest.fixture
def app(tmp_path: Path, tocsin: Tocsin) -> App:  # `tocsin` keeps this machine's settings out
    return App(environ={"HOME": str(tmp_path), "TZ": "UTC"}, notify=print_message)


def read(app: App, path: Path, **how: Any) -> pl.DataFrame:
    return read_jobs(app, LogRequest(path=str(path), **how))


def test_a_log_is_known_by_its_content_not_by_its_name(tmp_path: Path, app: App) -> None:
    (tmp_path / "a").write_text(SACCT)
    jobs = read(app, tmp_path / "a")
    assert jobs["job_id"].to_list() == [8, 7]  # by submission
    assert jobs["known_at"].to_list() == (jobs["end"] + 10).to_list()
    header, rows = SACCT.partition("\n")[::2]
    (tmp_path / "b").write_bytes(gzip.compress(rows.encode()))
    assert read(app, tmp_path / "b", columns=header.split("|")).equals(jobs)
    (tmp_path / "c").write_text(SWF)
    assert read(app, tmp_path / "c", cluster="old")["cluster"].to_list() == ["old"]
    table = pl.DataFrame({"id_job": [1, 2], "time_submit": [10**9, 10**9 + 5], "state": [3, 5]})
    table.write_parquet(tmp_path / "d")
    table.write_csv(tmp_path / "e")
    for name in ("d", "e"):
        assert read(app, tmp_path / name, cluster="t")["outcome"].to_list() == ["completed", "failed"]


def test_a_time_zone_shifts_the_times_of_sacct(tmp_path: Path, app: App) -> None:
    (tmp_path / "a").write_text(SACCT)
    utc, rome = (read(app, tmp_path / "a", tz=zone) for zone in (None, "Europe/Rome"))
    assert (utc["submit"] - rome["submit"]).to_list() == [3600, 3600]


def test_a_bad_record_is_reported_as_by_an_import(
    tmp_path: Path, app: App, tocsin: Tocsin, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "a"
    log.write_text(SACCT + "9|lab|bob|long|yesterday|None|None|00:01:00|FAILED|4|1\n")
    assert read(app, log)["job_id"].to_list() == [8, 7]
    told = capsys.readouterr().err
    assert "rejected: 1 record: " in told
    assert "first at 4; line 4: " in told
    assert "yesterday" in told
    assert tocsin("import", log).err == told


@pytest.mark.parametrize(
    "content", [b"", b"; only a comment\n", b"\x1f\x8bbroken", b"PAR1nothing", b"\x00" * 50]
)
def test_nonsense_is_refused_with_a_sentence(tmp_path: Path, app: App, content: bytes) -> None:
    (tmp_path / "bad").write_bytes(content)
    with pytest.raises(SourceError, match="bad"):
        read(app, tmp_path / "bad")
