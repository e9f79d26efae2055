"""Job events through Kafka while the watch is killed, the line is cut and the store is locked: nothing lost or doubled.

Kafka is librdkafka's mock cluster in a process of its own, behind a proxy that is cut. What is in the store and what
arrived in the topic of verdicts is counted by readers that share no code with tocsin.
"""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

__all__ = ["run", "survey"]

STAGES = ("submit", "start", "early", "end")
POISON = (b"init", b"{", b"[]", b'{"jobid": "x"}', b'{"schema": "tocsin.job/1", "job_id": -1}')
WRONG = (
    *("stored_lost", "stored_twice", "stored_unexpected"),
    *("published_lost", "published_unexpected", "published_differing", "waiting", "dropped"),
)
"""Figures that must be zero. A verdict may be published twice, with the same id and content."""
PATIENCE = 600
TOCSIN = [sys.executable, "-c", "from tocsin.cli.main import run; run()"]


def run() -> dict[str, Any]:
    return survey(jobs=10_000, kills=20, cuts=5)


def survey(*, jobs: int, kills: int, cuts: int) -> dict[str, Any]:
    """What was expected, and what the independent readers found."""
    from tests.services.kafka import CutProxy, MockKafka, read_all

    verdicts: list[Any] = []
    stop = threading.Event()
    with (
        tempfile.TemporaryDirectory(prefix="tocsin-streams-") as folder,
        MockKafka() as kafka,
        CutProxy(kafka.address) as proxy,
    ):
        topic = (kafka.address, "tocsin.verdict", stop, verdicts)
        reader = threading.Thread(target=read_all, args=topic)
        reader.start()
        try:
            began = time.monotonic()
            expected = _publish(kafka.address, jobs)
            watch = _Watch(Path(folder), proxy.address)
            watch.disturb(len(expected), kills, cuts, proxy)
            _await(lambda: {_key(record) for record in verdicts} >= expected, watch)
            watch.end()
            seconds = time.monotonic() - began
        finally:
            stop.set()
            reader.join()
        return {
            **_findings(watch.database, verdicts, expected),
            "jobs": jobs,
            "kills": watch.kills,
            "cuts": proxy.cuts,
            "locks": watch.locks,
            "seconds": round(seconds, 1),
        }


def _publish(address: str, jobs: int) -> set[tuple[str, str]]:
    """Write the events of these jobs, with some that nobody can read; the verdicts that are due."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address, "compression.type": "lz4", "log_level": 0})
    now = int(time.time())
    expected = set()
    for number in range(1, jobs + 1):
        job = {"schema": "tocsin.job/1", "cluster": "lab", "job_id": number, "submit": now - 200}
        job |= {"user": f"user{number % 7}", "partition": "main", "name": f"run{number % 11}", "req_cpus": 4}
        key = f"lab:{number}@{now - 200}"
        started = {**job, "start": now - 130, "node_list": "n1", "state": "RUNNING"}
        ended = {**started, "end": now, "state": "FAILED" if number % 5 == 0 else "COMPLETED"}
        for event in ({**job, "state": "PENDING"}, started, ended):
            _produce(producer, key, json.dumps(event).encode())
        if number % 50 == 0:
            _produce(producer, key, POISON[number // 50 % len(POISON)])
        expected |= {(key, stage) for stage in STAGES}
    assert producer.flush(60) == 0
    return expected


def _produce(producer: Any, key: str, value: bytes) -> None:
    while True:
        try:
            producer.produce("jobs", value, key)
            return
        except BufferError:
            producer.poll(0.1)


class _Watch:
    """`tocsin watch` as a process of its own."""

    def __init__(self, folder: Path, brokers: str) -> None:
        self.home, self.kills, self.locks = folder / "home", 0, 0
        self.database = self.home / "tocsin.db"
        self.errors = folder / "errors"
        self.config = folder / "tocsin.toml"
        self.config.write_text(
            f'[kafka]\nbrokers = "{brokers}"\n[cluster.lab]\nkafka_topic = "jobs"\n'
            '[sinks.kafka]\nkind = "kafka"\n[workload]\nbeta_days = 0\n'
        )
        self.config.chmod(0o600)
        self.start()

    def start(self) -> None:
        command = [*TOCSIN, "--config", str(self.config), "--home", str(self.home), "watch", "-M", "lab"]
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=errors, env={**os.environ, "TZ": "UTC"}
            )

    def verdicts(self) -> int:
        """How many the store has now."""
        try:
            with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=30)) as database:
                return int(database.execute("SELECT count(*) FROM verdicts").fetchone()[0])
        except sqlite3.OperationalError:  # not made yet
            return 0

    def disturb(self, total: int, kills: int, cuts: int, proxy: Any) -> None:
        """Kill, cut and lock at shares of the whole, spread evenly."""
        marks = [("kill", (n + 1) / (kills + 1)) for n in range(kills)]
        marks += [("cut", (n + 0.5) / (cuts + 0.5)) for n in range(cuts)]
        marks += [("lock", (n + 0.7) / (cuts + 0.7)) for n in range(cuts)]
        for what, share in sorted(marks, key=lambda mark: mark[1]):
            _await(lambda share=share: self.verdicts() >= share * 0.95 * total, self)  # type: ignore[misc]
            if what == "kill":
                self.process.send_signal(signal.SIGKILL)
                self.process.wait()
                self.kills += 1
                self.start()
            elif what == "cut":
                proxy.cut()
                time.sleep(2)  # as long as an outage lasts: there is no event to wait for
                proxy.mend()
            else:
                self._lock()

    def _lock(self) -> None:
        with closing(sqlite3.connect(self.database, timeout=30, isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            time.sleep(1)
            database.execute("ROLLBACK")
        self.locks += 1

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def _await(ready: Any, watch: _Watch) -> None:
    deadline = time.monotonic() + PATIENCE
    while not ready():
        if watch.process.poll() is not None or time.monotonic() > deadline:
            tail = watch.errors.read_text()[-2000:]
            raise RuntimeError(f"the watch does not get on, at {watch.verdicts():,} verdicts: {tail}")
        time.sleep(0.05)


def _key(record: Any) -> tuple[str, str]:
    document = json.loads(record.value())
    return document["job"], document["stage"]


def _findings(database: Path, verdicts: list[Any], expected: set[tuple[str, str]]) -> dict[str, Any]:
    with closing(sqlite3.connect(database)) as opened:
        stored = Counter(opened.execute("SELECT job, stage FROM verdicts").fetchall())
        waiting = opened.execute("SELECT count(*) FROM outbox").fetchone()[0]
        dropped = opened.execute("SELECT coalesce(sum(dropped + refused), 0) FROM sink_states").fetchone()[0]
        rejected = json.loads(opened.execute("SELECT rejected FROM imports").fetchone()[0])
    contents: dict[tuple[str, str], set[bytes]] = {}
    for record in verdicts:
        contents.setdefault(_key(record), set()).add(record.value())
    found = {
        "verdicts": len(expected),
        "stored": sum(stored.values()),
        "stored_lost": len(expected - stored.keys()),
        "stored_twice": sum(number > 1 for number in stored.values()),
        "stored_unexpected": len(stored.keys() - expected),
        "published": len(verdicts),
        "published_lost": len(expected - contents.keys()),
        "published_unexpected": len(contents.keys() - expected),
        "published_differing": sum(len(each) > 1 for each in contents.values()),
        "waiting": waiting,
        "dropped": dropped,
        "unreadable": sum(rejected.values()),
    }
    return {**found, "wrong": sum(found[name] for name in WRONG)}


if __name__ == "__main__":
    print(json.dumps(survey(jobs=int(sys.argv[1]), kills=int(sys.argv[2]), cuts=int(sys.argv[3])), indent=1))
