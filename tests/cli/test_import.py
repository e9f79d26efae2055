"""`tocsin import` reports what it did, adds nothing twice, and names bad lines."""

import gzip
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.kits.command_line import Tocsin

SACCT = (
    "JobID|JobName|User|Account|Cluster|Partition|Submit|Start|End|Elapsed|State|ExitCode|ReqCPUS|NNodes|ReqMem|Timelimit\n"
    "1|ok|alice|research|lab|main|2026-01-01T10:00:00|2026-01-01T10:00:05|2026-01-01T10:10:05|00:10:00|COMPLETED|0:0|2|1|4Gn|01:00:00\n"
    "2|bad|bob|research|lab|main|2026-01-01T11:00:00|2026-01-01T11:00:05|2026-01-01T11:00:06|00:00:01|FAILED|1:0|2|1|4Gn|01:00:00\n"
    "3_[1-9%2]|many|bob|research|lab|main|2026-01-01T12:00:00|Unknown|Unknown|00:00:00|PENDING|0:0|1|1|1Gc|UNLIMITED\n"
    "4|gone|bob|research|lab|main|2026-01-01T12:00:00|2026-01-01T12:00:09|2026-01-01T12:01:09|00:01:00|CANCELLED by 1002|0:15|1|1|1Gc|00:10:00\n"
)
SWF = "; UnixStartTime: 1000000\n1 0 5 60 4 -1 -1 4 600 -1 1 7 7 3 1 -1 -1 -1\n"


@pytest.fixture
def sacct(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.txt"
    path.write_text(SACCT)
    return path


def test_the_summary_has_the_promised_keys_and_a_second_import_adds_nothing(
    tocsin: Tocsin, sacct: Path
) -> None:
    first = json.loads(tocsin("import", sacct, "--json").out)
    assert (first["read"], first["new"], first["updated"], first["rejected"]) == (4, 4, 0, {})
    assert first["rows_per_second"] > 0
    again = json.loads(tocsin("import", sacct, "--json").out)
    assert (again["read"], again["new"], again["updated"]) == (4, 0, 0)


def test_a_job_that_changes_is_updated_and_never_doubled(tocsin: Tocsin, sacct: Path) -> None:
    tocsin("import", sacct)
    sacct.write_text(
        SACCT.replace("Unknown|Unknown|00:00:00|PENDING", "Unknown|Unknown|00:00:00|CANCELLED by 0")
    )
    assert json.loads(tocsin("import", sacct, "--json").out)["updated"] == 1
    assert len(json.loads(tocsin("jobs", "--json").out)["jobs"]) == 4


def test_bad_rows_are_counted_with_their_lines_and_the_good_ones_kept(tocsin: Tocsin, tmp_path: Path) -> None:
    path = tmp_path / "log.swf.gz"
    path.write_bytes(
        gzip.compress((SWF + "2 1 2\n3 nine 5 60 4 -1 -1 4 600 -1 1 7 7 3 1 -1 -1 -1\n").encode())
    )
    said = tocsin("import", path)
    assert said.code == 0
    assert "1 new" in said.out
    assert "2 rejected" in said.out
    assert "first at 3" in said.err
    assert "first at 4" in said.err
    assert tocsin("import", path, "--strict").code == 1


def test_a_truncated_archive_gives_what_was_whole(tocsin: Tocsin, tmp_path: Path) -> None:
    lines = "".join(f"{n} {n} 5 60 4 -1 -1 4 600 -1 1 7 7 3 1 -1 -1 -1\n" for n in range(1, 2001))
    whole = gzip.compress(("; UnixStartTime: 1000000\n" + lines).encode())
    path = tmp_path / "cut.swf.gz"
    path.write_bytes(whole[: len(whole) * 2 // 3])
    said = tocsin("import", path, "--json")
    assert said.code == 0
    summary = json.loads(said.out)
    assert 0 < summary["new"] < 2000
    assert "gz" in " ".join([*summary["notes"], *summary["rejected"]]).lower()


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("nothing.swf", None, "there is no file"),
        ("folder", "folder", "is a directory"),
        ("empty.swf", "", "empty"),
    ],
)
def test_unreadable_input_is_reported(
    tocsin: Tocsin, tmp_path: Path, name: str, content: str | None, sentence: str
) -> None:
    path = tmp_path / name
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_text(content)
    said = tocsin("import", path)
    assert sentence in said.err
    assert "Traceback" not in said.err
    assert said.code == (0 if content == "" else 1)


def test_sacct_without_a_header_takes_its_columns_from_the_line(tocsin: Tocsin, tmp_path: Path) -> None:
    header, *rows = SACCT.splitlines(keepends=True)
    path = tmp_path / "bare.txt"
    path.write_text("".join(rows))
    said = tocsin("import", "-o", header.strip().replace("|", ","), path, "--json")
    assert json.loads(said.out)["new"] == 4


def test_local_times_are_read_in_the_zone_that_is_named(tocsin: Tocsin, sacct: Path) -> None:
    tocsin("import", "--tz", "Europe/Rome", sacct)
    job = json.loads(tocsin("job", "1", "--json").out)["jobs"][0]
    assert job["submit"] == "2026-01-01T09:00:00Z"
    assert "not a time zone" in tocsin("import", "--tz", "Middle/Earth", sacct).err


def test_debug_shows_the_traceback_and_without_it_there_is_none(tocsin: Tocsin, tmp_path: Path) -> None:
    assert "Traceback" in tocsin("--debug", "import", tmp_path / "none").err
    assert "Traceback" not in tocsin("import", tmp_path / "none").err


def test_a_mapping_that_is_broken_names_the_key(tocsin: Tocsin, tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text('[fields]\nshoe_size = "x"\n')
    (tmp_path / "t.csv").write_text("x\n1\n")
    said = tocsin("import", "-m", tmp_path / "map.toml", tmp_path / "t.csv")
    assert said.code == 1
    assert "shoe_size" in said.err


@pytest.mark.parametrize(
    ("file", "jobs"), [("SDSC-BLUE-2000-4.2-cln", 243_306), ("KTH-SP2-1996-2.1-cln", 27_992)]
)
def test_a_public_log_is_stored_whole_and_only_once(tocsin: Tocsin, data: Path, file: str, jobs: int) -> None:
    path = data / "swf" / f"{file}.swf.gz"
    assert json.loads(tocsin("import", path, "--json").out)["new"] == jobs
    assert json.loads(tocsin("import", path, "--json").out)["new"] == 0


def test_a_source_without_a_usable_record_is_an_error(tocsin: Tocsin, sacct: Path, tmp_path: Path) -> None:
    said = tocsin("import", "-M", "gamma", sacct)
    assert said.code == 1
    assert 'not of cluster "gamma"' in said.err
    assert "nothing was stored: all records were rejected" in said.err
    assert tocsin("import", "-M", "gamma", sacct, "--json").code == 1
    (tmp_path / "cut.json").write_text('{"jobs": [{"job_id"')
    said = tocsin("import", tmp_path / "cut.json")
    assert said.code == 1
    assert "before the first job" in said.err


def test_messages_name_the_file_the_line_and_what_was_wrong(
    tocsin: Tocsin, sacct: Path, tmp_path: Path
) -> None:
    odd = tmp_path / "odd.txt"
    odd.write_text(SACCT.replace("2026-01-01T11:00:05", "soon").replace("1Gc", "?"))
    said = tocsin("import", sacct, odd)
    assert (
        f'rejected: {odd}: 1 record: time that cannot be read (first at 3; line 3: Start "soon")' in said.err
    )
    assert (
        f'note: {odd}: ReqMem could not be read in 2 records and is left empty (first at line 4: "?")'
        in said.err
    )
    summary = json.loads(tocsin("import", odd, "--json").out)
    assert summary["rejected_examples"] == {"time that cannot be read": 'Start "soon"'}
    kept = summary["new"] + summary["updated"] + summary["unchanged"]
    assert summary["read"] == kept + sum(summary["rejected"].values())


def test_a_fifo_gives_all_that_is_written_into_it(tocsin: Tocsin, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(fifo.write_text, SACCT)
        said = tocsin("import", fifo, "--json")
        written.result(timeout=10)
    assert json.loads(said.out)["new"] == 4


HANGING = """#!/bin/sh
[ "$1" = --helpformat ] && { echo JobID Submit State Partition; exit; }
echo $$ > "$0.started"
exec sleep 600
"""


@pytest.fixture
def hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A sacct that never answers, first in the path; where it tells its process id."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "sacct").write_text(HANGING)
    (folder / "sacct").chmod(0o755)
    os.mkfifo(folder / "sacct.started")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    started = os.open(folder / "sacct.started", os.O_RDONLY | os.O_NONBLOCK)
    yield started
    os.close(started)


def test_a_sacct_that_hangs_is_waited_for_as_long_as_the_settings_say(
    tocsin: Tocsin, hanging: int, tmp_path: Path
) -> None:
    (tmp_path / "short.toml").write_text("[cluster.lab]\ntimeout = 1\n")
    said = tocsin("--config", tmp_path / "short.toml", "import", "slurm")
    assert said.code == 1
    assert "did not answer within 1 s" in said.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_ending_an_import_ends_its_sacct(tocsin: Tocsin, hanging: int, number: signal.Signals) -> None:
    # as at a terminal: a shell without job control has the interrupt ignored in what it puts in the background
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    argv = [sys.executable, "-c", f"{heard}; from tocsin.cli.main import run; run(['import', 'slurm'])"]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert select.select([hanging], [], [], 20)[0], "sacct was not started"
        child = os.pidfd_open(int(os.read(hanging, 100)))
        process.send_signal(number)
        process.communicate(timeout=20)
    assert process.returncode != 0
    assert select.select([child], [], [], 10)[0], "sacct still runs"
    os.close(child)
