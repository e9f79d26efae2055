"""Protocols for the outside world: a cluster, a clock, a sink. They are handed in, so tests hand in their own."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from tocsin.core.ids import JobKey
from tocsin.core.machine import Machine

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Clock", "Cluster", "Message", "Sink"]


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
class Message:
    """A message in the outbox of one sink."""

    id: int
    kind: str
    """verdict or case."""
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
