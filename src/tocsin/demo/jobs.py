"""A demo job: what was asked for, what it truly needs, what became of it and why."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tocsin.core.ids import JobKey
from tocsin.demo.truth import Cause, Need

if TYPE_CHECKING:
    from tocsin.demo.applications import Application
    from tocsin.demo.mistakes import Mistake
    from tocsin.demo.people import User

__all__ = ["Ending", "Record", "Request", "Submission", "Truth"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for. Memory is per node, 0 is all of it; `tasks` are the indices of an array."""

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
    """Whether the script says how much memory; else it is the partition's default."""
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
    """A request, the person and the application behind it, and the truth about it."""

    user: "User"
    application: "Application"
    request: Request
    system: str
    needs: tuple[Need, ...]
    """One for each task of an array; one for a plain job."""
    mistake: "Mistake | None"
    garble: int
    """Which of the ways to mistype a word was taken."""
    patience: int
    """Seconds that the user will wait for a start."""
    attempt: int = 1
    script: str | None
    sha: str | None


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ends, if nothing else ends it before."""

    seconds: int
    state: str
    cause: Cause
    exit_code: int = 0
    exit_signal: int = 0
    by_user: bool = False


@dataclass(frozen=True, slots=True)
class Truth:
    """What only the simulation knows. The cause is None while the job lives."""

    cause: Cause | None
    memory: int
    """Bytes on each node that it needs at its peak."""
    seconds: int
    """Run time that it needs."""


@dataclass(slots=True, eq=False, kw_only=True)
class Record:
    """One line of accounting. An array that waits is one record; each task that starts becomes its own."""

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
    """Why somebody holds it."""
    start: int | None = None
    end: int | None = None
    nodes: tuple[str, ...] = ()
    exit_code: int | None = None
    exit_signal: int | None = None
    cancelled_by: int | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    cause: Cause | None = None
    requeued: bool = False
    """A later record has taken its id; the scheduler has forgotten this one."""
    parent: "Record | None" = None
    waiting: list[int] = field(default_factory=list)
    """Tasks of an array that have not started."""
    alive: int = 0
    """Tasks of an array that have started and are not over."""
    failed: list["Record"] = field(default_factory=list)
    """Tasks of an array that did not complete."""

    def key(self, cluster: str) -> JobKey:
        return JobKey(cluster, self.job_id, self.task, self.submit)

    @property
    def need(self) -> Need:
        """Its own need; of an array that waits, the largest of its tasks."""
        needs = self.submission.needs
        if not self.request.tasks:
            return needs[0]
        if self.task is None:
            return max(needs, key=lambda need: need.memory)
        return needs[self.request.tasks.index(self.task)]
