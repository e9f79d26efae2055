"""Jobs read from slurmrestd while the service is killed and its store is locked: nothing lost or given twice.

slurmrestd is a fake that replays recorded replies for a timetable (tests/services/replayed_slurmrestd.py): a real Slurm
cannot run so many jobs in minutes. What is in the store and in the log is counted by readers that share no code with tocsin.
"""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

__all__ = ["WRONG", "run", "survey"]

WRONG = (
    *("stored_lost", "stored_twice", "stored_unexpected"),
    *("logged_lost", "logged_twice", "waiting", "outcomes_missing"),
)
"""Figures that must be zero."""
EARLY = 120
"""Seconds after its start at which a job reaches the stage `early`."""
LONG = 20
"""One job in this many runs so long."""
PATIENCE = 900
TOCSIN = [sys.executable, "-c", "from tocsin.cli.main import run; run()"]

Stages = set[tuple[str, str]]


def run() -> dict[str, Any]:
    return survey(jobs=10_000, kills=20, locks=(2, 35, 2, 10, 2), seconds=400, long=LONG)


def survey(*, jobs: int, kills: int, locks: Sequence[float], seconds: int, long: int = 0) -> dict[str, Any]:
    """`seconds` in which the jobs are submitted; `locks`: for how long the store is locked, each time; each `long`-th runs for more than two minutes, 0: none does."""
    from tests.services.replayed_slurmrestd import ReplayedSlurmrestd

    with tempfile.TemporaryDirectory(prefix="tocsin-faults-") as folder, ReplayedSlurmrestd() as slurmrestd:
        service = _Service(Path(folder), slurmrestd.url)
        try:
            service.await_rounds()
            began = time.time()
            slurmrestd.jobs = list(_timetable(jobs, int(began) + 2, seconds, long))
            expected = _expected(slurmrestd.jobs)
            service.disturb(len(expected), kills, locks)
            service.await_verdicts(expected)
            code = service.end()
        finally:
            service.process.kill()
        return {
            **_findings(service, expected),
            "jobs": jobs,
            "kills": service.kills,
            "locks": service.locks,
            "exit_code": code,
            "seconds": round(time.time() - began, 1),
        }


def _timetable(jobs: int, first: int, seconds: int, long: int) -> Any:
    """Each waits and runs for some seconds."""
    from tests.services.replayed_slurmrestd import ReplayedJob

    for number in range(jobs):
        submit = first + number * seconds // jobs
        start = submit + 1 + number % 7
        lasts = EARLY + 10 if long and number % long == 0 else 1 + number % 5
        yield ReplayedJob(number + 1, submit, start, start + lasts, failed=number % 9 == 0)


def _expected(jobs: Any) -> Stages:
    found = set()
    for job in jobs:
        stages = ("submit", "start", "end") + (("early",) if job.end - job.start >= EARLY else ())
        found |= {(f"lab:{job.number}@{job.submit}", stage) for stage in stages}
    return found


class _Service:
    """`tocsin serve` as a process of its own."""

    def __init__(self, folder: Path, url: str) -> None:
        self.home, self.kills, self.locks = folder / "home", 0, 0
        self.database, self.log = self.home / "tocsin.db", folder / "verdicts.log"
        self.errors, self.config = folder / "errors", folder / "tocsin.toml"
        token = folder / "token"
        token.write_text("x.y.z")
        self.config.write_text(
            f'[cluster.lab]\nrest_url = "{url}"\nrest_token_file = "{token}"\n'
            f'[sinks.file]\nkind = "log"\nfile = "{self.log}"\nmegabytes = 0\n'
            '[watch]\ninterval = 1\nscripts = false\n[workload]\nbeta_days = 0\n[service]\nlisten = ""\n'
        )
        for secret in (token, self.config):
            secret.chmod(0o600)
        self.start()

    def start(self) -> None:
        command = [*TOCSIN, "--config", str(self.config), "--home", str(self.home), "serve"]
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=errors, env={**os.environ, "TZ": "UTC"}
            )

    def count(self, question: str) -> int:
        try:
            with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=30)) as database:
                return int(database.execute(question).fetchone()[0])
        except sqlite3.OperationalError:  # not made yet
            return 0

    def await_rounds(self) -> None:
        """Until the watch has begun: what ended before is nothing that it must report."""
        self._await(lambda: self.count("SELECT count(*) FROM imports WHERE identity LIKE 'watch:%'") > 0)

    def await_verdicts(self, expected: Stages) -> None:
        self._await(lambda: self.count("SELECT count(*) FROM verdicts") >= len(expected))
        self._await(lambda: self.count("SELECT count(*) FROM outbox") == 0)

    def disturb(self, total: int, kills: int, locks: Sequence[float]) -> None:
        """Kill and lock at shares of the whole, spread evenly."""
        marks: list[tuple[float, float | None]] = [((n + 1) / (kills + 1), None) for n in range(kills)]
        marks += [((n + 0.7) / (len(locks) + 0.7), seconds) for n, seconds in enumerate(locks)]
        for share, locked_for in sorted(marks, key=lambda mark: mark[0]):
            self._await(
                lambda share=share: self.count("SELECT count(*) FROM verdicts") >= share * 0.95 * total
            )  # type: ignore[misc]
            if locked_for is None:
                self.process.send_signal(signal.SIGKILL)
                self.process.wait()
                self.kills += 1
                self.start()
            else:
                self._lock(locked_for)

    def _lock(self, seconds: float) -> None:
        """As a long import would; the service itself waits for 30 s, and then tries again."""
        with closing(sqlite3.connect(self.database, timeout=60, isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            time.sleep(seconds)  # as long as it is locked: there is no event to wait for
            database.execute("ROLLBACK")
        self.locks += 1

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def _await(self, ready: Any) -> None:
        deadline = time.monotonic() + PATIENCE
        while not ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                given = self.count("SELECT count(*) FROM verdicts")
                tail = self.errors.read_text()[-2000:]
                raise RuntimeError(f"the service does not get on, at {given:,} verdicts: {tail}")
            time.sleep(0.1)


def _findings(service: _Service, expected: Stages) -> dict[str, Any]:
    with closing(sqlite3.connect(service.database)) as database:
        stored = Counter(database.execute("SELECT job, stage FROM verdicts").fetchall())
        waiting = database.execute("SELECT count(*) FROM outbox").fetchone()[0]
        closed = database.execute("SELECT count(*) FROM jobs WHERE outcome IS NOT NULL").fetchone()[0]
        late = database.execute("SELECT count(*) FROM verdicts WHERE late").fetchone()[0]
    documents = [json.loads(line) for line in service.log.read_text().splitlines()]
    logged = Counter((document["job"], document["stage"]) for document in documents)
    jobs = len({job for job, _ in expected})
    found = {
        "verdicts": len(expected),
        "stored": sum(stored.values()),
        "stored_lost": len(expected - stored.keys()),
        "stored_twice": sum(number > 1 for number in stored.values()),
        "stored_unexpected": len(stored.keys() - expected),
        "logged": sum(logged.values()),
        "logged_lost": len(expected - logged.keys()),
        "logged_twice": sum(number > 1 for number in logged.values()),
        "waiting": waiting,
        "outcomes_missing": jobs - closed,
        "late": late,
    }
    return {**found, "wrong": sum(found[name] for name in WRONG)}


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:]]
    print(json.dumps(survey(jobs=words[0], kills=words[1], locks=words[3:], seconds=words[2]), indent=1))
