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
VERDICTS, FAST = 100_000, 10_000.0
PROGRAM = "from tocsin.cli.main import run; run()"


def run() -> dict[str, Any]:
    """On the demo cluster at 60 times real time, with a failure model, while it is watched."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        with _service(home, "--speed", "60") as (path, pid):
            time.sleep(WARM_SECONDS)
            checks = _in_child(_load, str(path), str(home), PER_SECOND, SECONDS)
            listeners = _in_child(_listen, str(path), CLIENTS, LISTEN_SECONDS)
            both = {"checks": checks, "events": listeners, "resident_mib": _resident(pid)}
        with _service(home, "--speed", str(FAST)) as (path, pid):
            return {**both, "memory": _memory(path, pid)}


@contextmanager
def _service(home: Path, *arguments: str) -> Iterator[tuple[Path, int]]:
    command = [sys.executable, "-c", PROGRAM, "--home", str(home), "serve", "--demo", *arguments]
    environ = os.environ | {"TOCSIN_SERVICE__LISTEN": ""}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environ)
    path = home / "run" / "tocsin.sock"
    try:
        deadline = time.monotonic() + 600
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
            document = {"script": texts[number % len(texts)], "user": users[number % len(users)]}
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
            "per_second": per_second,
            "seconds": seconds,
            "errors": len(errors),
            "p50_ms": round(cuts[49] * 1000, 2),
            "p90_ms": round(cuts[89] * 1000, 2),
            "p99_ms": round(cuts[98] * 1000, 2),
            "most_ms": round(max(taken) * 1000, 2),
        }
    )


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
            connection.sock.settimeout(2)
            while time.monotonic() < stop:
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
    first = max((each.index(min(common, key=each.index)) for each in found), default=0) if common else 0
    doubled = sum(len(each) != len(set(each)) for each in found)
    pipe.send(
        {
            "clients": clients,
            "seconds": seconds,
            "events_of_the_first": len(found[0]),
            "events_common_to_all": len(common),
            "clients_with_doubles": doubled,
            "clients_without_events": sum(not each for each in found),
            "latest_start": first,
        }
    )


def _memory(path: Path, pid: int) -> dict[str, Any]:
    """Resident memory each 10,000 verdicts of this process."""
    seen: list[dict[str, Any]] = []
    deadline = time.monotonic() + 1800
    while time.monotonic() < deadline:
        text = _get(path, "/metrics")[1].decode()
        lines = [line for line in text.splitlines() if line.startswith("tocsin_verdicts_total")]
        given = int(sum(float(line.rsplit(" ", 1)[1]) for line in lines))
        if not seen or given >= seen[-1]["verdicts"] + VERDICTS // 10:
            seen.append({"verdicts": given, "resident_mib": _resident(pid)})
        if given >= VERDICTS:
            break
        time.sleep(0.5)
    return {
        "steps": seen,
        "growth_mib_second_half": round(seen[-1]["resident_mib"] - seen[len(seen) // 2]["resident_mib"], 1),
    }


def _resident(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)
