"""The hidden truth of a demo job: its needs and the cause of its end. Never a field of a job."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Cause", "Need"]


class Cause(StrEnum):
    """The cause of a job's end."""

    NONE = "nothing went wrong"
    TOO_LITTLE_MEMORY = "it needed more memory than it asked for"
    TOO_LITTLE_TIME = "it needed more time than it asked for"
    MISSING_FILE = "a path in the script is mistyped"
    BROKEN_PROGRAM = "the program or its input is broken"
    WRONG_INPUT = "its user saw that the results are wrong"
    BAD_NODE = "its node was failing"
    OUTAGE = "the file system was away"
    GAVE_UP_WAITING = "its user would not wait longer"
    CLOSED_BY_HAND = "its user was done with it"
    PREEMPTED = "it had to give way"


@dataclass(frozen=True, slots=True)
class Need:
    """The actual needs of a run: peak bytes per node, and seconds."""

    size: float
    memory: int
    seconds: int
