"""The demo cluster behind the ports of a real one, and its clock."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from itertools import chain
from random import Random
from typing import TYPE_CHECKING

from tocsin.core.errors import InputError, NotFound
from tocsin.core.frames import from_jobs
from tocsin.core.ids import JobKey
from tocsin.core.machine import Machine
from tocsin.demo.applications import APPLICATIONS
from tocsin.demo.behaviour import compose
from tocsin.demo.jobs import Record, Truth
from tocsin.demo.machine import CLUSTER, describe
from tocsin.demo.mistakes import MISTAKES
from tocsin.demo.people import USERS
from tocsin.demo.simulation import Simulation
from tocsin.demo.source import DemoSource
from tocsin.demo.view import as_job

if TYPE_CHECKING:
    import polars as pl

__all__ = ["START", "DemoClock", "DemoCluster"]

START = 1767571200  # Monday, 5 January 2026, 00:00 UTC
DAY = 86400
MIN_JOB_AGE = 300  # seconds for which slurmctld remembers an ended job (slurm.conf)
FRAME_ROWS = 5000


class DemoClock:
    """A clock that advances only when it is set."""

    def __init__(self, now: float) -> None:
        self._now = now

    def now(self) -> float:
        return self._now

    def advance_to(self, instant: float) -> None:
        if instant < self._now:
            raise InputError(f"the demo's clock is at {self._now:.0f} and cannot go back to {instant:.0f}")
        self._now = instant


class DemoCluster:
    """Shows exactly what is known at `clock.now()`; the first `days` days are already simulated."""

    name = CLUSTER

    def __init__(self, *, seed: int = 1, start: int = START, days: float = 0) -> None:
        self.clock = DemoClock(start + days * DAY)
        self._simulation = Simulation(seed, start)

    def waited(self) -> float:
        """It answers at once: computing is this process's own work."""
        return 0.0

    def queue(self) -> "pl.DataFrame":
        """Pending, running, and ended in the last five minutes."""
        simulation = self._present()
        ended = simulation.ended[self._ended_since(simulation.now - MIN_JOB_AGE) :]
        recent = (record for record in ended if not record.requeued)
        return from_jobs(map(as_job, chain(simulation.alive(), recent)))

    def accounting(self, since: int, until: int) -> Iterator["pl.DataFrame"]:
        """The jobs that were alive at some time in [since, until), in their current state."""
        simulation = self._present()
        ended = simulation.ended[self._ended_since(since) :]
        alive = [record for record in chain(ended, simulation.alive()) if record.submit < until]
        for first in range(0, len(alive), FRAME_ROWS):
            yield from_jobs(map(as_job, alive[first : first + FRAME_ROWS]))

    def machine(self) -> Machine:
        simulation = self._present()
        return describe(simulation.hosts, open_=simulation.scheduler.open)

    def script(self, key: JobKey) -> str | None:
        return self._find(key).submission.script

    def hold(self, key: JobKey, reason: str) -> None:
        self._simulation.hold(self._find(key), reason)

    def release(self, key: JobKey) -> None:
        self._simulation.release(self._find(key))

    def submit(
        self,
        application: str,
        *,
        user: str,
        size: float = 1.0,
        memory: int | None = None,
        time_limit: int | None = None,
        mistake: str | None = None,
        script: str | None = None,
    ) -> JobKey:
        """Submit a job of one of the demo's applications now; memory and time default to the user's habits.

        With `script`, that text replaces the application's own script; the job runs the same.
        """
        simulation = self._present()
        for what, name, known in (
            ("application", application, APPLICATIONS),
            ("user", user, USERS),
            ("mistake", mistake, MISTAKES),
        ):
            if name is not None and name not in known:
                raise InputError(f'the demo has no {what} "{name}"; it has {", ".join(known)}')
        submission = compose(
            USERS[user],
            APPLICATIONS[application],
            Random(f"{simulation.seed}/{len(simulation.records)}"),  # noqa: S311  # a simulation, not a secret
            size=size,
            mistake=MISTAKES[mistake] if mistake else None,
            memory=memory,
            time_limit=time_limit,
        )
        if script is not None:
            submission = replace(submission, script=script, sha=sha256(script.encode()).hexdigest())
        return simulation.submit(submission).key(self.name)

    def scripts(self) -> Iterator[tuple[str, str]]:
        """Every script submitted so far, with its SHA-256."""
        yield from self._present().scripts.items()

    def truth(self, key: JobKey) -> Truth:
        """What a job needs and why it ended as it did: for tests, never for a frame."""
        record = self._find(key)
        return Truth(record.cause, record.need.memory, record.need.seconds)

    def history(self, days: int | None = None) -> DemoSource:
        """The accounting of the last days, or of all, as a source to import from."""
        until = int(self.clock.now())
        since = self._simulation.start if days is None else until - days * DAY
        return DemoSource(self._simulation, max(since, self._simulation.start), until)

    def _present(self) -> Simulation:
        self._simulation.advance(int(self.clock.now()))
        return self._simulation

    def _ended_since(self, instant: int) -> int:
        """The index of the first job that ended at this instant or later."""
        return bisect_left(self._simulation.ended, instant, key=lambda record: record.end or 0)

    def _find(self, key: JobKey) -> Record:
        record = self._present().records.get(key[1:])
        if record is None or key.cluster != self.name:
            raise NotFound(f'no job {key} in cluster "{self.name}"; its queue lists the keys of its jobs')
        return record
