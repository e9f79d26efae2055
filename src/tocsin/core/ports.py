"""Protocols for what lies outside: a cluster, a clock, a sink. Handed in, so that a test can hand in its own."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from tocsin.core.ids import JobKey
from tocsin.core.machine import Machine

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Clock", "Cluster", "Sink"]


class Clock(Protocol):
    def now(self) -> float:
        """UTC epoch seconds."""
        ...


class Cluster(Protocol):
    """A live cluster, real or of the demo."""

    name: str

    def queue(self) -> "pl.DataFrame":
        """The jobs that the scheduler still knows: pending, running, just ended."""
        ...

    def accounting(self, since: int, until: int) -> Iterator["pl.DataFrame"]:
        """The jobs that were alive at some time in [since, until), with their outcomes, in bounded frames."""
        ...

    def machine(self) -> Machine:
        """Nodes, partitions and limits."""
        ...

    def script(self, key: JobKey) -> str | None:
        """The job's script where the site lets us read it; None where it has none."""
        ...

    def hold(self, key: JobKey, reason: str) -> None:
        """Keep a pending job from starting."""
        ...

    def release(self, key: JobKey) -> None:
        """Let a held job go."""
        ...


class Sink(Protocol):
    """Where verdicts are sent to."""

    name: str

    def send(self, messages: Sequence[bytes]) -> None:
        """Deliver all, or raise; the outbox keeps them until then."""
        ...
