"""`tocsin jobs` filters and prints as sacct does; `tocsin job` shows all that is known."""

import json
from pathlib import Path

import pytest

from tests.cli.test_import import SACCT
from tests.kits.command_line import Tocsin


@pytest.fixture
def store(tocsin: Tocsin, tmp_path: Path) -> Tocsin:
    path = tmp_path / "jobs.txt"
    path.write_text(SACCT)
    assert tocsin("import", path).code == 0
    return tocsin


def ids(said: str) -> list[str]:
    return [line.split("|")[0] for line in said.splitlines()]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), ["1", "2", "3_[1-9%2]", "4"]),
        (("-u", "alice"), ["1"]),
        (("-s", "F,CD"), ["1", "2"]),
        (("-s", "cancelled"), ["4"]),
        (("-j", "2,4"), ["2", "4"]),
        (("-j", "1_[1-3],4"), ["4"]),
        (("-a", "-X", "-D", "-u", "alice"), ["1"]),
        (("-A", "research", "-r", "main", "--name", "bad"), ["2"]),
        (("-S", "2026-01-01T11:30:00"), ["3_[1-9%2]", "4"]),
        (("-E", "2026-01-01T10:30:00"), ["1"]),
        (("--limit", "1"), ["4"]),
    ],
)
def test_filters_choose_as_sacct_does(store: Tocsin, options: tuple[str, ...], expected: list[str]) -> None:
    assert ids(store("jobs", "-n", "-P", "-o", "JobID", *options).out) == expected


def test_columns_are_the_ones_asked_for(store: Tocsin) -> None:
    out = store("jobs", "-P", "-j", "4", "-o", "jobid,State,ExitCode,Timelimit,req_memory,Submit,key").out
    assert out.splitlines() == [
        "JobID|State|ExitCode|Timelimit|req_memory|Submit|Key",
        "4|CANCELLED by 1002|0:15|00:10:00|1G|2026-01-01T12:00:00|lab:4@1767268800",
    ]


def test_a_width_cuts_with_a_plus_sign(store: Tocsin) -> None:
    assert store("jobs", "-n", "-j", "4", "-o", "State%5").out == "CANC+\n"


def test_no_limit_is_shown_as_the_word(store: Tocsin) -> None:
    assert "UNLIMITED" in store("jobs", "-j", "3", "-o", "Timelimit").out
    assert json.loads(store("jobs", "-j", "3", "--json").out)["jobs"][0]["time_limit"] == "UNLIMITED"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("-o", "ShoeSize"), '"ShoeSize" is not a column'),
        (("-M", "elsewhere"), 'no cluster "elsewhere"; known clusters: lab'),
        (("-s", "TIRED"), '"TIRED" is not a job state'),
        (("-S", "someday"), '"someday" is not a time'),
        (("-j", "abc"), '"abc" is not a job id'),
        (("-j", ""), "names no job"),
        (("-j", "1_[1-99999999]"), "more than 1000 tasks"),
        (("-o", "JobID%99999999999"), "needs a width"),
        (("-o", ""), "names no column"),
    ],
)
def test_a_wrong_word_is_named(store: Tocsin, options: tuple[str, ...], sentence: str) -> None:
    said = store("jobs", *options)
    assert said.code == 1
    assert sentence in said.err
    assert said.out == ""


def test_a_job_is_found_by_its_id_and_by_its_key(store: Tocsin) -> None:
    by_id = json.loads(store("job", "4", "--json").out)["jobs"]
    by_key = json.loads(store("job", by_id[0]["job"], "--json").out)["jobs"]
    assert by_id == by_key
    assert by_id[0]["outcome"] == "cancelled"
    assert by_id[0]["cancelled_by"] == 1002


def test_a_job_in_words_shows_only_what_is_known(store: Tocsin) -> None:
    out = store("job", "3").out
    assert "lab:3@" in out
    assert "req_memory" in out
    assert "exit_code" not in out
    assert "start " not in out


def test_a_job_name_cannot_control_the_terminal(tocsin: Tocsin, tmp_path: Path) -> None:
    path = tmp_path / "evil.txt"
    path.write_text(SACCT.replace("|ok|", "|\x1b[2Jgone\x07|"))
    tocsin("import", path)
    for said in (tocsin("jobs"), tocsin("jobs", "-P"), tocsin("job", "1")):
        assert "gone" in said.out
        assert not any(ord(letter) < 32 and letter != "\n" for letter in said.out)


def test_options_of_sacct_are_accepted(store: Tocsin) -> None:
    assert store("jobs", "-p", "-j", "2", "-o", "JobID,ElapsedRaw,TimelimitRaw").out.splitlines() == [
        "JobID|ElapsedRaw|TimelimitRaw|",
        "2|1|60|",
    ]
    header = store("jobs", "-P", "-j", "2", "-o", "ALL").out.splitlines()[0].split("|")
    assert {"JobID", "State", "NodeList", "MaxRSS"} <= set(header)
    assert "no job in the store" in store("jobs", "-u", "nobody").err


def test_a_full_disk_is_reported_as_such(store: Tocsin) -> None:
    import subprocess
    import sys

    code = "from tocsin.cli.main import run; run(['jobs'])"
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 1
    assert "No space left" in ended.stderr
    assert "mistake" not in ended.stderr
    closed = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.stdout = None; {code}"], capture_output=True
    )
    assert closed.returncode == 0


def test_an_unknown_job_names_the_next_step(store: Tocsin) -> None:
    said = store("job", "4711")
    assert said.code == 1
    assert "no job 4711" in said.err
    assert "tocsin jobs" in said.err


def test_a_reader_that_stops_early_is_no_error(
    store: Tocsin, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import os
    import subprocess
    import sys

    command = f"{sys.executable} -c 'from tocsin.cli.main import run; run()' jobs --json | true"
    ended = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, env=dict(os.environ)
    )
    assert b"Traceback" not in ended.stderr
    assert b"Exception" not in ended.stderr
