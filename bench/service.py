"""The service under load from other processes: checks per second, listeners of events, memory over many verdicts."""

import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

__all__ = ["run"]

PER_SECOND, SECONDS, THREADS = 50, 60, 16
WARM_SECONDS = 5
CLIENTS, LISTEN_SECONDS = 100, 20
SLOW_CLIENTS = 20
VERDICTS, STEPS, AT_ONCE = 100_000, 10, 500
PROGRAM = "from tocsin.cli.main import run; run()"


def run() -> dict[str, Any]:
    """On the demo cluster at 60 times real time, with a failure model, while it is watched.

    A first process makes the home and trains, so that what is measured is a service that was only started.
    """
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        with _service(home):
            pass
        with _service(home) as (path, pid):
            time.sleep(WARM_SECONDS)
            started = _resident(pid)
            spent = _cpu_seconds(pid)
            checks = _in_child(_load, str(path), str(home), PER_SECOND, SECONDS)
            checks["cpu_ms_each"] = round((_cpu_seconds(pid) - spent) / checks["requests"] * 1000, 2)
            listeners = _in_child(_listen, str(path), CLIENTS, LISTEN_SECONDS)
            memory = _memory(path, home, pid)
    return {
        "load_average": [round(each, 2) for each in os.getloadavg()],
        "checks": checks,
        "events": listeners,
        "resident_mib": {
            "after_start": started,
            "after_checks_and_events": memory["steps"][0]["resident_mib"],
        },
        "memory": memory,
    }


@contextmanager
def _service(home: Path) -> Iterator[tuple[Path, int]]:
    command = [sys.executable, "-c", PROGRAM, "--home", str(home), "serve", "--demo", "--speed", "60"]
    environ = os.environ | {"TOCSIN_SERVICE__LISTEN": ""}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environ)
    path = home / "run" / "tocsin.sock"
    try:
        deadline = time.monotonic() + 900
        while _get(path, "/readyz")[0] != 200:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the service did not become ready")
            time.sleep(0.2)
        yield path, process.pid
    finally:
        process.terminate()
        process.wait(120)


class _Unix(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(60)
        self.sock.connect(self._path)


def _get(path: Path, url: str) -> tuple[int, bytes]:
    connection = _Unix(str(path))
    try:
        connection.request("GET", url)
        reply = connection.getresponse()
        return reply.status, reply.read()
    except OSError:
        return 0, b""
    finally:
        connection.close()


def _in_child(work: Any, *given: Any) -> dict[str, Any]:
    """Load comes from a second process, as in service."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=work, args=(*given, theirs))
    child.start()
    found: dict[str, Any] = ours.recv()
    child.join()
    return found


def _load(path: str, home: str, per_second: int, seconds: int, pipe: "Connection[Any, Any]") -> None:
    """Requests begin on time, whether earlier ones have ended or not; waiting for a free thread counts."""
    texts = [file.read_text("utf-8") for file in sorted(Path(home, "scripts").iterdir())[:200]]
    users = ("ada", "emmy", "linus", "mary", "vera", "kurt", "ida", "max")
    total = per_second * seconds
    begun = time.perf_counter() + 0.5
    taken: list[float] = []
    errors: list[str] = []
    lock = threading.Lock()
    numbers = iter(range(total))

    def work() -> None:
        connection = _Unix(path)
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            due = begun + number / per_second
            time.sleep(max(0.0, due - time.perf_counter()))
            # Every second script is one that nobody has seen: what was read of an earlier one does not help.
            text = texts[number % len(texts)] + (f"# {number}\n" if number % 2 else "")
            document = {"script": text, "user": users[number % len(users)]}
            try:
                connection.request(
                    "POST", "/api/v1/check", json.dumps(document), {"Content-Type": "application/json"}
                )
                reply = connection.getresponse()
                reply.read()
                status = str(reply.status)
            except OSError as error:
                status = type(error).__name__
                connection.close()
            with lock:
                taken.append(time.perf_counter() - due)
                if status != "200":
                    errors.append(status)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cuts = statistics.quantiles(taken, n=100)
    pipe.send(
        {
            "requests": len(taken),
            "new_scripts": total // 2,
            "per_second": per_second,
            "seconds": seconds,
            "errors": len(errors),
            "p50_ms": round(cuts[49] * 1000, 2),
            "p90_ms": round(cuts[89] * 1000, 2),
            "p99_ms": round(cuts[98] * 1000, 2),
            "most_ms": round(max(taken) * 1000, 2),
        }
    )


def _cpu_seconds(pid: int) -> float:
    """What the service has computed so far, with its watch and the process that checks scripts."""
    fields = [
        Path(f"/proc/{each}/stat").read_text("utf-8").rpartition(")")[2].split() for each in _processes(pid)
    ]
    return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")


def _processes(pid: int) -> list[int]:
    """A process and its children."""
    by_thread = Path(f"/proc/{pid}/task").glob("*/children")
    return [pid, *(int(child) for path in by_thread for child in path.read_text("utf-8").split())]


def _listen(path: str, clients: int, seconds: float, pipe: "Connection[Any, Any]") -> None:
    """Each client notes the ids of its events; all must have the same between the first and last common one."""
    found: list[list[str]] = [[] for _ in range(clients)]
    stop = time.monotonic() + seconds

    def listen(mine: list[str]) -> None:
        connection = _Unix(path)
        with suppress(OSError):
            connection.request("GET", "/api/v1/events")
            reply = connection.getresponse()
            assert connection.sock, "it is open"
            while (left := stop - time.monotonic()) > 0:
                connection.sock.settimeout(left)  # a lull of the demo must not end it
                line = reply.readline()
                if line.startswith(b"id: "):
                    mine.append(line.decode().strip())
        connection.close()

    threads = [threading.Thread(target=listen, args=(mine,)) for mine in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    common = set.intersection(*map(set, found)) if all(found) else set()
    pipe.send(
        {
            "clients": clients,
            "seconds": seconds,
            "events_of_the_first": len(found[0]),
            "events_common_to_all": len(common),
            "clients_with_doubles": sum(len(each) != len(set(each)) for each in found),
            "clients_without_events": sum(not each for each in found),
        }
    )


def _memory(path: Path, home: Path, pid: int) -> dict[str, Any]:
    """Resident memory while another process stores verdicts, faster than any cluster: through the store, the feed and the
    events, with clients that read all of them and clients that read none.

    The verdicts are copies of real ones with new jobs. History is not in it: it grows with the jobs that it knows.
    """
    idle = [_stalled(path) for _ in range(SLOW_CLIENTS)]
    stop = threading.Event()
    counted = [0]
    reader = threading.Thread(target=_count_events, args=(path, counted, stop))
    reader.start()
    steps = [{"verdicts": 0, "resident_mib": _resident(pid)}]
    begun = time.perf_counter()
    for step in range(STEPS):
        _in_child(_store_verdicts, str(home), step * (VERDICTS // STEPS), VERDICTS // STEPS)
        steps.append({"verdicts": (step + 1) * (VERDICTS // STEPS), "resident_mib": _resident(pid)})
    seconds = time.perf_counter() - begun
    deadline = time.monotonic() + 120
    while counted[0] < VERDICTS and time.monotonic() < deadline:
        time.sleep(0.1)
    stop.set()
    reader.join()
    for each in idle:
        each.close()
    middle = steps[STEPS // 2]["resident_mib"]
    return {
        "how": "copies of real verdicts with new jobs, stored by another process",
        "verdicts_per_second": round(VERDICTS / seconds),
        "clients_that_read": 1,
        "clients_that_do_not_read": SLOW_CLIENTS,
        "events_read": counted[0],
        "steps": steps,
        "growth_mib_second_half": round(steps[-1]["resident_mib"] - middle, 1),
    }


def _stalled(path: Path) -> socket.socket:
    """A client that asks for all events from the first one on, and reads nothing."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.connect(str(path))
    client.sendall(b"GET /api/v1/events?since=0-0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return client


def _count_events(path: Path, counted: list[int], stop: threading.Event) -> None:
    """Reads events and resumes after the last one wherever it was cut off, as a browser does."""
    last = ""
    while not stop.is_set():
        connection = _Unix(str(path))
        with suppress(OSError):
            connection.request("GET", "/api/v1/events", headers={"Last-Event-ID": last} if last else {})
            reply = connection.getresponse()
            assert connection.sock, "it is open"
            connection.sock.settimeout(2)
            while not stop.is_set() and (line := reply.readline()):
                if line.startswith(b"id: "):
                    last = line[4:].decode().strip()
                counted[0] += line.startswith(b"data: ") and b'"job":"copies:' in line
        connection.close()


def _store_verdicts(home: str, first: int, number: int, pipe: "Connection[Any, Any]") -> None:
    from dataclasses import replace

    from tocsin.app.app import App
    from tocsin.app.feed import list_verdicts
    from tocsin.core.decision import Decision
    from tocsin.core.verdict import Verdict
    from tocsin.store.decisions import record

    with App(folder=home) as app:
        real = [Verdict.from_json(document) for _, document in list_verdicts(app, size=200)]
        for begin in range(first, first + number, AT_ONCE):
            copies = [
                replace(real[n % len(real)], job=f"copies:{n + 1}@1767600000")
                for n in range(begin, min(begin + AT_ONCE, first + number))
            ]
            record(app.store, Decision(verdicts=copies))
    pipe.send({})


def _resident(pid: int) -> float:
    """Of the service and the process that checks scripts."""
    pages = sum(int(Path(f"/proc/{each}/statm").read_text("utf-8").split()[1]) for each in _processes(pid))
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)
