"""The log: each verdict once, whatever happens to the process that writes it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kits.outbox import give as give_to
from tests.kits.outbox import send, verdict
from tocsin.core.errors import StoreError
from tocsin.core.ports import Message
from tocsin.sinks.deliver import deliver
from tocsin.sinks.log import Log
from tocsin.store.database import Store, open_store
from tocsin.store.home import Home
from tocsin.store.outbox import waiting


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").prepare()


@pytest.fixture
def store(home: Home) -> Iterator[Store]:
    with open_store(home.url) as opened:
        yield opened


def log(tmp_path: Path, *, largest: int = 0, files: int = 2) -> Log:
    return Log(tmp_path / "verdicts.log", largest=largest, files=files)


def give(store: Store, *numbers: int) -> None:
    give_to(store, "log", *numbers)


def logged(tmp_path: Path) -> list[str]:
    """The jobs in the log, the oldest first."""
    files = sorted(tmp_path.glob("verdicts.log*"), reverse=True)
    return [json.loads(line)["job"] for file in files for line in file.read_text().splitlines()]


def jobs(*numbers: int) -> list[str]:
    return [verdict(number).job for number in numbers]


def test_every_verdict_is_logged_once_and_the_outbox_is_empty(
    store: Store, home: Home, tmp_path: Path
) -> None:
    sink = log(tmp_path)
    for number in range(3):
        give(store, number)
        give(store, number)
        assert deliver(store, sink) is None
    assert logged(tmp_path) == jobs(0, 1, 2)
    assert waiting(store, "log", 9) == []


def test_what_was_logged_and_not_acknowledged_is_not_logged_again(
    store: Store, home: Home, tmp_path: Path
) -> None:
    give(store, 1, 2, 3)
    send(log(tmp_path), waiting(store, "log", 2))  # and killed
    deliver(store, log(tmp_path))
    assert logged(tmp_path) == jobs(1, 2, 3)


def test_another_process_that_was_killed_leaves_no_double_lines(
    store: Store, home: Home, tmp_path: Path
) -> None:
    mine = log(tmp_path)
    give(store, 1)
    deliver(store, mine)
    give(store, 2)
    send(log(tmp_path), waiting(store, "log", 9))
    deliver(store, mine)
    assert logged(tmp_path) == jobs(1, 2)


def test_half_a_line_is_written_anew(store: Store, home: Home, tmp_path: Path) -> None:
    give(store, 1, 2)
    sink = log(tmp_path)
    send(sink, waiting(store, "log", 9))
    path = tmp_path / "verdicts.log"
    path.write_bytes(path.read_bytes()[:-40])
    deliver(store, log(tmp_path))
    assert logged(tmp_path) == jobs(1, 2)


def test_the_log_is_rotated_and_only_its_owner_reads_it(store: Store, home: Home, tmp_path: Path) -> None:
    size = len(json.dumps(verdict(1).to_json()))
    for number in range(10):
        give(store, number)
        deliver(store, log(tmp_path, largest=2 * size + 10))
    files = sorted(tmp_path.glob("verdicts.log*"))
    assert [file.name for file in files] == ["verdicts.log", "verdicts.log.1", "verdicts.log.2"]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert logged(tmp_path) == jobs(*range(4, 10))


def test_a_log_that_cannot_be_written_is_reported_and_tried_again(
    store: Store, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(store, 1, 2)
    sink = log(tmp_path)
    written = []

    def full(file: int, line: bytes) -> int:
        if written:
            raise OSError(28, "No space left on device")
        written.append(line)
        return real(file, line)

    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        assert "No space left" in str(deliver(store, sink))
    assert deliver(store, sink) is None
    assert logged(tmp_path) == jobs(1, 2)


def test_a_log_that_cannot_be_opened_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"sinks\.log\.file"):
        Log(tmp_path / "no" / "verdicts.log", largest=0, files=0)
    (tmp_path / "verdicts.log").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="cannot be opened"):
        log(tmp_path)


def test_lines_of_others_in_the_log_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "verdicts.log").write_text('not ours\n{"id": 3}\n[]\n')
    send(log(tmp_path), [Message(1, "verdict", "a", {"id": "a"})])
    assert (tmp_path / "verdicts.log").read_text().endswith('[]\n{"id": "a"}\n')


KILLED = """
import os, signal, sys
from pathlib import Path
from tocsin.core.decision import Decision
from tocsin.core.ports import Subscription
from tocsin.core.stages import Stage
from tocsin.core.verdict import Level, Verdict
from tocsin.sinks.deliver import deliver
from tocsin.sinks.log import Log
from tocsin.store import outbox
from tocsin.store.database import open_store
from tocsin.store.decisions import record
from tocsin.store.home import Home
home, log, number = Home(Path(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3])
jobs = [f"lab:{2 * number}@7", f"lab:{2 * number + 1}@7"]
verdicts = [Verdict(job=job, stage=Stage.SUBMIT, at=9, known_until=7, level=Level.OK) for job in jobs]
with open_store(home.url) as store:
    sink = Log(log, largest=0, files=2)
    deliver(store, sink)
    takes = Subscription(kinds=["verdict"], levels=["ok"], most=99)
    record(store, Decision(verdicts=verdicts), {sink.name: takes})
    if number % 2:
        list(sink.send(outbox.waiting(store, sink.name, 1)))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_is_killed_twenty_times_logs_each_verdict_once(
    store: Store, home: Home, tmp_path: Path
) -> None:
    """Between commit and log, or between log and acknowledgement."""
    for number in range(20):
        path = str(tmp_path / "verdicts.log")
        arguments = [sys.executable, "-c", KILLED, str(home.root), path, str(number)]
        done = subprocess.run(arguments, check=False, capture_output=True, text=True)
        assert done.returncode == -signal.SIGKILL, done.stderr
    deliver(store, log(tmp_path))
    assert logged(tmp_path) == jobs(*range(40))


def test_a_case_is_a_line_with_its_kind_and_id(tmp_path: Path) -> None:
    case = Message(1, "case", "17", {"case": 17, "job": "lab:1@7"})
    for _ in range(2):
        send(log(tmp_path), [case])
    [line] = (tmp_path / "verdicts.log").read_text().splitlines()
    assert json.loads(line) == {"kind": "case", "id": "case-17", "case": 17, "job": "lab:1@7"}
