"""The life of a job: its stages, and when it reaches each."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

__all__ = ["CLOCK", "EARLY_SECONDS", "Stage", "reached_at"]

EARLY_SECONDS = 120  # the verdict within two minutes (Proactive Precision, abstract)


class Stage(StrEnum):
    """A moment in a job's life; a later stage knows all that an earlier one knew."""

    SUBMIT = "submit"
    START = "start"
    EARLY = "early"
    RUNNING = "running"
    END = "end"

    @property
    def order(self) -> int:
        return _ORDER[self]

    def knows(self, since: "Stage") -> bool:
        """Whether a value known from stage `since` on may be used."""
        return since.order <= self.order


_ORDER = {stage: place for place, stage in enumerate(Stage)}

CLOCK: Mapping[Stage, tuple[str, int]] = MappingProxyType(
    {
        Stage.SUBMIT: ("submit", 0),
        Stage.START: ("start", 0),
        Stage.EARLY: ("start", EARLY_SECONDS),
        Stage.RUNNING: ("start", 0),
        Stage.END: ("end", 0),
    }
)
"""For each stage, the field and the seconds after it at which the stage is reached."""


def reached_at(stage: Stage, submit: int, start: int | None, end: int | None) -> int | None:
    """When a job reaches a stage; None if it does not. One that ended in that very second reached it.

    A job whose end is unknown counts as still running. `core.frames.reached_at` is the same over a frame.
    """
    field, delay = CLOCK[stage]
    since = {"submit": submit, "start": start, "end": end}[field]
    if since is None or (delay and end is not None and end < since + delay):
        return None
    return since + delay
