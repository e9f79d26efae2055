"""A fake of Slurm's side of actions, for what the real one cannot be made to do: stop in the midst of a change."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.kits.watching import Killed
from tocsin.core.errors import ClusterError, NotFound
from tocsin.core.ids import JobKey
from tocsin.core.ports import QueueState


@dataclass
class FakeJob:
    pending: bool = True
    held: str = ""
    begin: int | None = None
    comment: str = ""
    cancelled: bool = False


@dataclass
class FakeSlurm:
    """An Actuator; before and after each change the process may be killed."""

    name: str = "lab"
    batch_size: int = 20
    jobs: dict[JobKey, FakeJob] = field(default_factory=dict)
    deaths: list[int] = field(default_factory=list)
    """The first number is counted down at each such point; at zero, the process is killed."""
    down: bool = False
    changes: list[str] = field(default_factory=list)
    together: list[int] = field(default_factory=list)
    """How many jobs were put off by one change, each time."""
    changed: Callable[[], None] = lambda: None
    """Called after each change."""

    def job(self, key: JobKey) -> FakeJob:
        if self.down:
            raise ClusterError("slurmctld does not answer")
        if key not in self.jobs:
            raise NotFound(f"no job {key}")
        return self.jobs[key]

    def look_up(self, keys: Sequence[JobKey]) -> None:
        """It has nothing to gain."""

    def queue_state(self, key: JobKey) -> QueueState:
        job = self.job(key)
        return QueueState(job.pending, job.held, job.begin)

    def _changed(self, key: JobKey, what: str, **values: object) -> None:
        job = self.job(key)
        self._chance()
        self.changes.append(what)
        for name, value in values.items():
            setattr(job, name, value)
        self.changed()
        self._chance()

    def _chance(self) -> None:
        if self.deaths:
            self.deaths[0] -= 1
            if self.deaths[0] < 0:
                self.deaths.pop(0)
                raise Killed

    def hold(self, key: JobKey, reason: str) -> None:
        self._changed(key, "hold", held="admin", comment=reason)

    def release(self, key: JobKey, *, to_owner: bool = False) -> None:
        self._changed(key, "release", held="user" if to_owner else "")

    def delay(self, key: JobKey, begin: int) -> None:
        self._changed(key, f"delay {begin}", begin=begin)

    def delay_all(self, keys: Sequence[JobKey], begin: int) -> set[JobKey]:
        self.together.append(len(keys))
        failed = set()
        for key in keys:
            try:
                self.delay(key, begin)
            except (ClusterError, NotFound):
                failed.add(key)
        return failed

    def cancel(self, key: JobKey) -> None:
        self._changed(key, "cancel", cancelled=True, pending=False)

    def comment(self, key: JobKey, text: str) -> None:
        self._changed(key, "comment", comment=text)
