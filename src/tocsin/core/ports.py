"""Protocols for the outside world: a cluster, a clock, a sink. They are passed in, so tests can pass fakes."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from tocsin.core.ids import JobKey
from tocsin.core.machine import Machine

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Actuator", "Clock", "Cluster", "Message", "QueueState", "Receipt", "Sink", "Subscription"]


class Clock(Protocol):
    def now(self) -> float:
        """UTC epoch seconds."""
        ...


class Cluster(Protocol):
    """A live cluster, real or simulated."""

    name: str

    def queue(self) -> "pl.DataFrame":
        """Jobs that the scheduler knows: pending, running, just ended."""
        ...

    def accounting(self, since: int, until: int) -> Iterator["pl.DataFrame"]:
        """Jobs alive at some time in [since, until), with their outcomes, in bounded frames."""
        ...

    def waited(self) -> float:
        """Seconds that this thread has waited for answers so far: what they cost the cluster, not this host."""
        ...

    def machine(self) -> Machine:
        """Nodes, partitions and limits."""
        ...

    def script(self, key: JobKey) -> str | None:
        """The job's script; None if it has none or it may not be read."""
        ...

    def hold(self, key: JobKey, reason: str) -> None:
        """Keep a pending job from starting."""
        ...

    def release(self, key: JobKey) -> None:
        """Release a held job."""
        ...


@dataclass(frozen=True, slots=True)
class QueueState:
    """The state of a job in the queue."""

    pending: bool
    """Whether it, or any task of an array, has yet to start."""
    held: str = ""
    """By whom: `admin`, `user` (its owner), or empty."""
    begin: int | None = None
    """The earliest start, if set."""


class Actuator(Protocol):
    """What can be done to the jobs of a cluster. Each method is idempotent."""

    name: str

    @property
    def batch_size(self) -> int:
        """About how many jobs one query or change can cover."""
        ...

    def look_up(self, keys: Sequence[JobKey]) -> None:
        """Query all these jobs at once, if possible; the answers are used for the next second."""
        ...

    def queue_state(self, key: JobKey) -> QueueState:
        """Raises NotFound if the job is not in the queue."""
        ...

    def hold(self, key: JobKey, reason: str) -> None:
        """Keep a pending job from starting; its owner cannot release it."""
        ...

    def release(self, key: JobKey, *, to_owner: bool = False) -> None:
        """Release a held job; with `to_owner`, leave it held as if its owner had done so."""
        ...

    def delay(self, key: JobKey, begin: int) -> None:
        """Set the earliest start of a pending job."""
        ...

    def delay_all(self, keys: Sequence[JobKey], begin: int) -> Collection[JobKey]:
        """Set the earliest start of several jobs; returns those for which success is not certain."""
        ...

    def cancel(self, key: JobKey) -> None: ...

    def comment(self, key: JobKey, text: str) -> None:
        """Set our part of the administrator's comment; an empty text removes it. Text by others stays."""
        ...


@dataclass(frozen=True, slots=True)
class Message:
    """A message in the outbox of one sink."""

    id: int
    kind: str
    """verdict, case, action or job."""
    reference: str
    """The same for the same verdict or case, however often it is sent."""
    document: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """Which messages a sink takes, and how many may be queued for it."""

    kinds: Collection[str]
    levels: Collection[str]
    """Levels of verdicts; other messages have none."""
    most: int

    def takes(self, kind: str, document: dict[str, Any]) -> bool:
        return kind in self.kinds and (kind != "verdict" or document.get("level") in self.levels)


@dataclass(frozen=True, slots=True)
class Receipt:
    """Messages that a sink has taken, or will never take."""

    messages: Sequence[Message]
    refused: str = ""
    """Why it will never take them."""


class Sink(Protocol):
    """A destination of messages, used by one thread."""

    @property
    def name(self) -> str: ...

    @property
    def batch(self) -> int:
        """The maximum number of messages per `send`."""
        ...

    def due(self, now: float) -> bool:
        """Whether to send messages now."""
        ...

    def send(self, messages: Sequence[Message]) -> Iterator[Receipt]:
        """Deliver in order, with a receipt for what was delivered; the outbox keeps the rest. May raise SinkError."""
        ...

    def close(self) -> None:
        """Close connections."""
        ...
