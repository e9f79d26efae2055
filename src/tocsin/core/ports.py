"""Protocols for the outside world: a cluster, a clock, a sink. They are handed in, so tests hand in their own."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from tocsin.core.ids import JobKey
from tocsin.core.machine import Machine

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Actuator", "Clock", "Cluster", "Message", "Sink", "Standing"]


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
class Standing:
    """How a job in the queue stands."""

    pending: bool
    """Whether it, or any task of an array, has yet to start."""
    held: str = ""
    """By whom: `admin`, `user` (its owner), or empty."""
    begin: int | None = None
    """The earliest start that is set."""


class Actuator(Protocol):
    """What can be done to the jobs of a cluster. Each method may be repeated: the second time changes nothing."""

    name: str

    def standing(self, key: JobKey) -> Standing:
        """NotFound if the job is not in the queue."""
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

    def cancel(self, key: JobKey) -> None: ...

    def comment(self, key: JobKey, text: str) -> None:
        """Set our part of the administrator's comment; an empty text removes it. The text of others stays."""
        ...


@dataclass(frozen=True, slots=True)
class Message:
    """A message in the outbox of one sink."""

    id: int
    kind: str
    """verdict, case or action."""
    reference: str
    """The same for the same verdict or case, however often it is sent."""
    document: dict[str, Any]


class Sink(Protocol):
    """A destination of messages."""

    @property
    def name(self) -> str: ...

    @property
    def kinds(self) -> Collection[str]:
        """The kinds of messages that it takes."""
        ...

    def send(self, messages: Sequence[Message]) -> None:
        """Deliver all, or raise SinkError; until then the outbox keeps them."""
        ...
