"""A fake slurmrestd that replays recorded replies of Slurm 22.05 for a timetable of jobs, and fails when it is told to.

No real one can be made to fail in each of these ways, or to run ten thousand jobs in minutes.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qs, urlsplit

from tests.kits.recordings import reply

__all__ = ["FAULTS", "Fault", "ReplayedJob", "ReplayedSlurmrestd"]

VERSION = "v0.0.38"
MIN_JOB_AGE = 30
"""Seconds for which slurmctld keeps an ended job."""
ACCOUNTED_AFTER = 3
"""Seconds after which slurmdbd knows of an end."""


class Fault(NamedTuple):
    """How it misbehaves. `version`: the only one that it serves; `slow`: it never answers."""

    status: int = 200
    body: bytes | None = None
    everywhere: bool = False
    """The specification is answered in the same way."""
    slow: bool = False
    version: str = VERSION


FAULTS: Mapping[str, Fault] = {
    "500": Fault(500, b"", everywhere=True),
    "511": Fault(511, b"Authentication failure", everywhere=True),
    "errors": Fault(
        200, b'{"meta": {}, "errors": [{"error_number": 2, "error": "slurmctld is tired"}], "jobs": []}'
    ),
    "garbage": Fault(200, b"<html>a proxy's page</html>"),
    "slow": Fault(everywhere=True, slow=True),
    "newer": Fault(version="v0.0.99"),
}


@dataclass(frozen=True)
class ReplayedJob:
    number: int
    submit: int
    start: int
    end: int
    failed: bool = False

    @cached_property
    def records(self) -> dict[str, bytes]:
        """As slurmctld has it in each state, and as slurmdbd has it after its end."""
        ending = "FAILED" if self.failed else "COMPLETED"
        times = {"submit_time": self.submit, "eligible_time": self.submit, "accrue_time": self.submit}
        job = {**_QUEUED, **times, "job_id": self.number, "name": f"run{self.number % 11}"}
        waits = {**job, "job_state": "PENDING", "start_time": 0, "end_time": 0, "nodes": "", "batch_host": ""}
        runs = {**job, "job_state": "RUNNING", "start_time": self.start, "end_time": self.start + 600}
        over = {**runs, "job_state": ending, "end_time": self.end, "exit_code": 256 * self.failed}
        kept = deepcopy(_ENDED)
        kept |= {"job_id": self.number, "name": job["name"]}
        kept["state"] = {"current": ending, "reason": "None"}
        kept["time"] |= {"submission": self.submit, "eligible": self.submit, "start": self.start}
        kept["time"] |= {"end": self.end, "elapsed": self.end - self.start}
        found = {"waits": waits, "runs": {**runs, "exit_code": 0}, "over": over, "kept": kept}
        return {name: json.dumps(record).encode() for name, record in found.items()}

    def queued(self, now: float) -> bytes | None:
        if now < self.submit or now >= self.end + MIN_JOB_AGE:
            return None
        return self.records["waits" if now < self.start else "runs" if now < self.end else "over"]


def _template(family: str, is_one: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    return next(job for job in reply(family, VERSION, "jobs")["jobs"] if is_one(job))


_QUEUED = _template("slurm", lambda job: job["job_state"] == "COMPLETED" and not job["array_job_id"])
_ENDED = _template(
    "slurmdb", lambda job: job["state"]["current"] == "COMPLETED" and not job["array"]["job_id"]
)


class ReplayedSlurmrestd:
    """On a port of this host, by a thread, at `url`; `fault` is what is wrong with it now."""

    def __init__(self, jobs: Iterable[ReplayedJob] = (), fault: Fault | None = None) -> None:
        self.jobs, self.fault = list(jobs), fault
        self.ended = Event()
        self.machine = {name: reply("slurm", VERSION, name) for name in ("nodes", "partitions")}

    def __enter__(self) -> Self:
        replayed = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, body = replayed.answer(self.path)
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:  # whoever asked was killed
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                """Nothing is printed."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, address: str) -> tuple[int, bytes]:
        fault = self.fault or Fault()
        if fault.slow:
            self.ended.wait(30)
        path = urlsplit(address).path.strip("/")
        specification = path == "openapi/v3"
        broken = fault.status != 200 or fault.body is not None
        if broken and (fault.everywhere or not specification):
            return fault.status, fault.body or b""
        if specification:
            paths = {f"/{family}/{fault.version}/jobs": {} for family in ("slurm", "slurmdb")}
            return 200, json.dumps({"openapi": "3.0.2", "paths": paths}).encode()
        family, _, what = path.replace(f"/{fault.version}/", "|").partition("|")
        if what == "jobs":
            return 200, self._accounting(address) if family == "slurmdb" else self._queue()
        if family == "slurm" and what in self.machine:
            return 200, json.dumps(self.machine[what]).encode()
        return 404, b"{}"

    def _queue(self) -> bytes:
        now = time.time()
        return _jobs(record for job in self.jobs if (record := job.queued(now)))

    def _accounting(self, address: str) -> bytes:
        """The jobs that were alive in the span, of those whose end has arrived."""
        asked = {
            name: int(text[0].removeprefix("uts"))
            for name, text in parse_qs(urlsplit(address).query).items()
            if text[0].startswith("uts")
        }
        since, until = asked.get("start_time", 0), asked.get("end_time", 2**40)
        now = time.time()
        return _jobs(
            job.records["kept"]
            for job in self.jobs
            if job.end >= since and job.submit < until and job.end + ACCOUNTED_AFTER <= now
        )


def _jobs(records: Iterable[bytes]) -> bytes:
    return (
        b'{"meta": {"plugin": {"type": "openapi/v0.0.38"}}, "errors": [], "jobs": ['
        + b",".join(records)
        + b"]}"
    )
