"""A demo job: its request, its actual needs, how it ended and why."""

from dataclasses import dataclass, field
from typing import Any

from tocsin.core.ids import JobKey
from tocsin.demo.applications import Application, Need
from tocsin.demo.mistakes import Cause, Mistake
from tocsin.demo.people import User

__all__ = ["Ending", "Record", "Request", "Submission", "Truth"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request. Memory is per node, 0 means all of it; `tasks` are the indices of an array."""

    name: str
    account: str
    partition: str
    nodes: int
    tasks_per_node: int
    cpus_per_task: int
    memory: int
    time_limit: int
    gpus_per_node: int = 0
    gpu_type: str | None = None
    exclusive: bool = False
    requeue: bool = False
    tasks: tuple[int, ...] = ()
    throttle: int = 0
    memory_given: bool = True
    """Whether the script requests memory; else the partition's default applies."""
    time_given: bool = True
    work_dir: str
    file: str | None
    """Name of the script; None for an interactive job."""

    @property
    def cpus_per_node(self) -> int:
        return self.tasks_per_node * self.cpus_per_task

    @property
    def array(self) -> str | None:
        """The tasks as `sbatch --array` takes them."""
        if not self.tasks:
            return None
        first, last = self.tasks[0], self.tasks[-1]
        whole = len(self.tasks) > 1 and self.tasks == tuple(range(first, last + 1))
        spec = f"{first}-{last}" if whole else ",".join(map(str, self.tasks))
        return f"{spec}%{self.throttle}" if self.throttle else spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A request with its user, its application and its hidden truth."""

    user: User
    application: Application
    request: Request
    system: str
    needs: tuple[Need, ...]
    """One per array task; one for a plain job."""
    mistake: Mistake | None
    garble: int
    """Selects one of the ways to mistype a word."""
    patience: int
    """Seconds after which the user cancels a waiting job."""
    attempt: int = 1
    script: str | None
    sha: str | None


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ends, unless something else ends it first."""

    seconds: int
    state: str
    cause: Cause
    exit_code: int = 0
    exit_signal: int = 0
    by_user: bool = False


@dataclass(frozen=True, slots=True)
class Truth:
    """What only the simulation knows. The cause is None until the job ends."""

    cause: Cause | None
    memory: int
    """Peak memory needed per node, in bytes."""
    seconds: int
    """Run time needed."""


@dataclass(slots=True, eq=False, kw_only=True)
class Record:
    """One accounting record. A pending array is one record; each task gets its own when it starts."""

    job_id: int
    raw_id: int
    task: int | None
    submit: int
    eligible: int
    submission: Submission
    request: Request
    priority: int
    state: str = "PENDING"
    held: str | None = None
    """Reason of a hold."""
    start: int | None = None
    end: int | None = None
    nodes: tuple[str, ...] = ()
    exit_code: int | None = None
    exit_signal: int | None = None
    cancelled_by: int | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    cause: Cause | None = None
    requeued: bool = False
    """A later record has the same id, and the scheduler no longer knows this one."""
    parent: "Record | None" = None
    waiting: list[int] = field(default_factory=list)
    """Tasks of an array that have not started."""
    alive: int = 0
    """Tasks of an array that are running."""
    failed: list["Record"] = field(default_factory=list)
    """Tasks of an array that did not complete."""

    def successor(self, **changes: Any) -> "Record":
        """A record of the same job: one of its tasks, or its next run."""
        kept = (
            "job_id",
            "raw_id",
            "task",
            "submit",
            "eligible",
            "submission",
            "request",
            "priority",
            "parent",
        )
        return Record(**{name: getattr(self, name) for name in kept} | changes)

    def key(self, cluster: str) -> JobKey:
        return JobKey(cluster, self.job_id, self.task, self.submit)

    @property
    def need(self) -> Need:
        """Its own needs; for a pending array, the largest of its tasks."""
        needs = self.submission.needs
        if not self.request.tasks:
            return needs[0]
        if self.task is None:
            return max(needs, key=lambda need: need.memory)
        return needs[self.request.tasks.index(self.task)]
