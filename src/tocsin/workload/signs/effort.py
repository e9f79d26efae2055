"""Limits on the work that one script may cause: a deadline, and a number of decoding attempts."""

import time
from collections.abc import Callable

__all__ = ["MOST_TRIES", "SECONDS", "Effort"]

SECONDS = 0.5
"""For the signs of one script, out of the second that it may take in all. No script of jobspec takes a tenth of it."""
MOST_TRIES = 1000
"""Words and blocks decoded per script, over all its layers."""


class Effort:
    """The remaining effort for one script. Attempts are checked first, so that results seldom depend on time."""

    def __init__(
        self,
        *,
        seconds: float = SECONDS,
        tries: int = MOST_TRIES,
        wall: Callable[[], float] = time.monotonic,
        work: Callable[[], float] = time.thread_time,
    ) -> None:
        self._wall, self._work = wall, work
        self._ends, self._done = wall() + seconds, work() + seconds
        self._tries = tries
        self._late = False

    def over(self) -> bool:
        """Whether the CPU time is used up, however busy the machine is. The wall clock comes first, as it is cheaper."""
        if not self._late and self._wall() >= self._ends:
            self._late = self._work() >= self._done
        return self._late

    def may_try(self) -> bool:
        """Count another decoding attempt; False if there were too many, or time is up."""
        self._tries -= 1
        return self._tries >= 0 and not self.over()
