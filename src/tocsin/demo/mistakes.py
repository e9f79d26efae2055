"""Why jobs fail: the causes, and users' mistakes with how they appear in a script."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

__all__ = ["MISTAKES", "Cause", "Mistake", "garbled"]


class Cause(StrEnum):
    """The hidden cause of a job's end."""

    NONE = "nothing went wrong"
    TOO_LITTLE_MEMORY = "it needed more memory than it asked for"
    TOO_LITTLE_TIME = "it needed more time than it asked for"
    MISSING_FILE = "a path in the script is mistyped"
    BROKEN_PROGRAM = "the program or its input is broken"
    WRONG_INPUT = "its user saw that the results are wrong"
    BAD_NODE = "its node was failing"
    OUTAGE = "the file system was unavailable"
    GAVE_UP_WAITING = "its user would not wait longer"
    CLOSED_BY_HAND = "its user was done with it"
    PREEMPTED = "it was preempted"


@dataclass(frozen=True, slots=True)
class Mistake:
    """`word` is the wrong part of the script; the job fails after a number of seconds, or at a share of its run time."""

    name: str
    cause: Cause
    word: Literal["input", "module", "option"] | None
    seconds: tuple[int, int] = (0, 0)
    share: tuple[float, float] = (0.0, 0.0)
    exit_code: int = 1
    by_user: bool = False


MISTAKES = {
    mistake.name: mistake
    for mistake in (
        Mistake("path", Cause.MISSING_FILE, "input", seconds=(2, 25)),
        Mistake("module", Cause.BROKEN_PROGRAM, "module", seconds=(1, 6), exit_code=127),
        Mistake("option", Cause.BROKEN_PROGRAM, "option", seconds=(3, 40), exit_code=1),
        Mistake("crash", Cause.BROKEN_PROGRAM, None, share=(0.02, 0.4), exit_code=139),
        Mistake("rubbish", Cause.WRONG_INPUT, None, seconds=(300, 7200), by_user=True),
    )
}


def garbled(word: str, way: int) -> str:
    """A word mistyped: two neighbouring letters of its second half are swapped.

    >>> garbled("lysozyme.tpr", 0)
    'lysozyem.tpr'
    """
    places = [place for place in range(len(word) // 2, len(word) - 1) if word[place] != word[place + 1]]
    place = places[way % len(places)] if places else 0
    return (
        word[:place] + word[place + 1 : place + 2] + word[place] + word[place + 2 :] if places else word + "_"
    )
