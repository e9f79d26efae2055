"""`tocsin serve` as a real process: its socket and port, its events, its restart, and the commands that ask it."""

import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.kits.command_line import Tocsin
from tests.kits.service import Process, wait_until
from tocsin.app.app import App
from tocsin.core.decision import Decision
from tocsin.core.stages import Stage
from tocsin.core.verdict import Level, Verdict
from tocsin.serve.identity.roles import PERMISSIONS
from tocsin.store.decisions import record

SCRIPT = "#!/bin/bash\n#SBATCH --partition=main --mem=5000G --time=18:00:00\nsrun lmp -in water.in\n"


@pytest.fixture(scope="module")
def process(demo_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    home = tmp_path_factory.mktemp("server") / "home"
    shutil.copytree(demo_home, home)
    with Process(home, "--no-watch") as running:
        yield running.ready()


def give(home: Path, number: int, user: str = "ada") -> str:
    """Store a verdict, as a watch in another process does."""
    job = f"demo:{number}@1767600000"
    with App(folder=str(home)) as app:
        verdict = Verdict(
            job=job, stage=Stage.SUBMIT, at=1767600000, known_until=1767600000, level=Level.WARNING, user=user
        )
        assert record(app.store, Decision(verdicts=[verdict]))
    return job


def test_the_socket_knows_its_owner_and_the_port_knows_nobody(process: Process) -> None:
    assert process.get("/api/v1/me")["role"] == "admin"
    status, body = over_tcp(process.port, "GET /api/v1/jobs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert status == 401
    assert b"application/problem+json" in body
    assert over_tcp(process.port, "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")[0] == 200


def over_tcp(port: int, text: str) -> tuple[int, bytes]:
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        connection.sendall(text.encode())
        reply = b"".join(iter(lambda: connection.recv(65536), b""))
    return int(reply.split(b" ", 2)[1]), reply


def test_events_come_as_they_are_stored_and_resume_where_a_client_left(process: Process) -> None:
    events = process.events()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(next, events)
        wait_until(lambda: b"tocsin_event_clients 1.0" in process.ask("/metrics")[1])
        give(process.home, 900_001)
        first = waiting.result(60)
    assert first["event"] == "verdict"
    assert json.loads(first["data"])["job"] == "demo:900001@1767600000"
    events.close()  # type: ignore[attr-defined]  # a generator
    missed = [give(process.home, number) for number in (900_002, 900_003)]
    resumed = itertools.islice(process.events(first["id"]), 2)
    assert [json.loads(event["data"])["job"] for event in resumed] == missed


def test_a_hundred_clients_get_the_same_events(process: Process) -> None:
    # A user may have no more streams than these, and those of the test before may not have ended yet.
    wait_until(lambda: b"tocsin_event_clients 0.0" in process.ask("/metrics")[1])
    with ExitStack() as stack:
        clients = []
        for _ in range(100):
            client = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            client.settimeout(60)
            client.connect(str(process.socket))
            client.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
            clients.append(client)
        wait_until(lambda: b"tocsin_event_clients 100.0" in process.ask("/metrics")[1])
        given = [give(process.home, number) for number in (900_011, 900_012, 900_013)]
        for client in clients:
            lines = (
                line for line in stack.enter_context(client.makefile("rb")) if line.startswith(b"data: ")
            )
            received = [
                json.loads(line.removeprefix(b"data: "))["job"] for line in itertools.islice(lines, 3)
            ]
            assert received == given
    wait_until(lambda: b"tocsin_event_clients 0.0" in process.ask("/metrics")[1])


def test_a_body_of_100_megabytes_is_refused(process: Process) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(60)
        connection.connect(str(process.socket))
        head = "POST /api/v1/check HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: {100 << 20}\r\n\r\n".encode())
        assert b" 413 " in connection.recv(65536)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(60)
        connection.connect(str(process.socket))
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        chunk = b"100000\r\n" + b"x" * (1 << 20) + b"\r\n"
        sent = 0
        try:
            while sent < 100:
                connection.sendall(chunk)
                sent += 1
        except OSError:
            pass
        assert sent < 100
    assert process.ask("/healthz")[0] == 200


def test_a_client_that_gives_up_leaves_no_traceback_in_the_log(process: Process) -> None:
    sending = [(method, path) for method, path in PERMISSIONS if method in ("POST", "PUT")]
    assert len(sending) > 10
    for method, path in sending:
        named = re.sub(r"\{[^}]*\}", "1", path)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(str(process.socket))
            head = f"{method} {named} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            connection.sendall(f'{head}Content-Length: 1000\r\n\r\n{{"script": "#!/bin/'.encode())

    def counted() -> int:
        text = process.ask("/metrics")[1].decode()
        return len(
            set(re.findall(r'tocsin_http_requests_total\{.*route="/api/v1/advice",status="499"', text))
        )

    wait_until(lambda: counted() == 1)
    assert process.ask("/healthz")[0] == 200
    assert "Traceback" not in process.text


@pytest.mark.parametrize(
    "arguments",
    [
        ("jobs", "-M", "demo", "--limit", "7"),
        ("jobs", "-u", "ada,emmy", "-s", "F,CD", "--json"),
        (
            "jobs",
            "-M",
            "demo",
            "-S",
            "2026-01-06",
            "-E",
            "2026-01-07",
            "-P",
            "-o",
            "JobID,State,Submit,Timelimit",
        ),
        ("jobs", "-s", "NONSENSE"),
        ("job", "{job}"),
        ("job", "{job}", "--json"),
        ("job", "987654321"),
        ("explain", "{job}"),
        ("explain", "{job}", "--stage", "end"),
    ],
)
def test_a_command_says_the_same_with_and_without_a_service(
    process: Process, tocsin: Tocsin, arguments: tuple[str, ...]
) -> None:
    job = process.get("/api/v1/jobs?user=ada&state=CD&limit=1")["jobs"][0]["job"]
    words = ["--home", str(process.home), *(word.format(job=job) for word in arguments)]
    asked, local = tocsin(*words), tocsin(*words, "--local")
    assert asked == local


def test_a_check_says_the_same_with_and_without_a_service(
    process: Process, tocsin: Tocsin, tmp_path: Path
) -> None:
    path = tmp_path / "job.sh"
    path.write_text(SCRIPT)
    words = ["--home", process.home, "check", path, "-M", "demo", "-u", "ada"]
    before, asked, after = tocsin(*words, "--local"), tocsin(*words), tocsin(*words, "--local")
    # A minute, or an hour since the last job, may end between two questions.
    assert asked.out in (before.out, after.out)
    assert before.code == asked.code == after.code == 2
    broken = tocsin("--home", process.home, "check", tmp_path / "nothing.sh", "-M", "demo")
    assert broken.code == 3


def test_asking_a_service_loads_no_library_for_tables(process: Process) -> None:
    code = (
        "import sys\nfrom tocsin.cli.main import run\ntry:\n    run(sys.argv[1:])\nexcept SystemExit as ended:\n"
        "    loaded = {'polars', 'numpy', 'sqlalchemy', 'pydantic', 'fastapi'} & set(sys.modules)\n"
        "    assert not loaded, loaded\n    assert not ended.code, ended.code\n"
    )
    for command in (["jobs", "--limit", "3"], ["jobs", "--limit", "3", "--json"]):
        done = subprocess.run(
            [sys.executable, "-c", code, "--home", str(process.home), *command],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_the_hooks_of_slurm_see_that_it_answers(process: Process) -> None:
    heartbeat = process.socket.with_name("heartbeat")
    first = int(heartbeat.read_text())
    wait_until(lambda: int(heartbeat.read_text()) > first)


def test_a_second_service_on_the_same_socket_is_refused(process: Process) -> None:
    with Process(process.home, "--no-watch") as second:
        assert second.process.wait(60) == 1
    assert process.ask("/healthz")[0] == 200


def test_a_service_that_was_killed_starts_again_and_knows_what_it_knew(
    demo_home: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    shutil.copytree(demo_home, home)
    question = {"script": SCRIPT, "user": "ada", "cluster": "demo"}
    answers = []
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGTERM):
        with Process(home, "--no-watch") as running:
            status, body = running.ready().ask("/api/v1/check", "POST", question)
            assert status == 200
            answers.append([finding["text"] for finding in json.loads(body)["findings"]])
            code = running.stop(number)
            assert code == (0 if number == signal.SIGTERM else -signal.SIGKILL)
            assert running.socket.exists() == (number == signal.SIGKILL)
    assert answers[0] == answers[1] == answers[2]
    assert (home / "cache" / "history" / "demo" / "history.json.z").exists()


def test_the_home_of_another_user_is_no_reason_to_ask_another_service(
    process: Process, tocsin: Tocsin, tmp_path: Path
) -> None:
    assert tocsin("jobs").err == "no job in the store matches\n"
    os.environ["TOCSIN_SERVICE"] = f"unix:{process.socket}"
    try:
        assert "JobID" in tocsin("jobs", "--limit", "2").out
        assert len(tocsin("jobs", "--limit", "2", "-n").out.splitlines()) == 2
    finally:
        del os.environ["TOCSIN_SERVICE"]
