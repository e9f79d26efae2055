"""A courier: the thread that delivers to one sink, so that a slow sink does not delay others."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from tocsin.core.errors import StoreError, TocsinError
from tocsin.core.ports import Message, Sink
from tocsin.sinks.body import message_id
from tocsin.sinks.deliver import Busy, deliver
from tocsin.store.database import Store
from tocsin.store.outbox import set_problem, states

__all__ = ["LONGEST", "Courier"]

LONGEST = 60.0
"""Longest pause after an error, in seconds."""
IDLE = 5.0
"""Seconds after which a courier looks for messages of other processes, and for what is due at an hour of the day."""
_FIRST = 0.5
_MOST_REPORTED = 5


class Courier:
    """Delivers when woken; after an error it pauses, from half a second up to a minute.

    It reports to `notify`: a problem when it begins and when it is over, and lost messages.
    """

    def __init__(self, store: Store, sink: Sink, notify: Callable[[str], None]) -> None:
        self.sink = sink
        self._store, self._notify = store, notify
        self._wake, self._stop = threading.Event(), threading.Event()
        self._problem = ""
        self._refused = 0
        self._dropped: int | None = None
        # a hanging broker must not keep the process from ending: unacknowledged messages stay in the outbox
        self._thread = threading.Thread(target=self._run, name=f"sink-{sink.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Wake up, because there may be new messages."""
        self._wake.set()

    def stop(self) -> None:
        """Try once more to send queued messages, and end."""
        self._stop.set()
        self._wake.set()

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def _run(self) -> None:
        failures = 0
        with suppress(StoreError):
            self._report_dropped()
        while True:
            self._wake.clear()  # before checking `stop`, which sets both; else it would go unnoticed for a while
            stopping = self._stop.is_set()
            failures = failures + 1 if self._deliver() else 0
            if stopping:
                break
            if failures:
                self._stop.wait(min(_FIRST * 2 ** min(failures - 1, 16), LONGEST))
            else:
                self._wake.wait(IDLE)
        with suppress(Exception):  # it is discarded anyway
            self.sink.close()

    def _deliver(self) -> str | None:
        """One attempt; returns what went wrong."""
        self._refused = 0
        try:
            problem = deliver(self._store, self.sink, refused=self._report_refused)
        except Busy:
            return None
        except TocsinError as error:
            problem = str(error)
        except Exception as error:  # a bug of ours, or of a client library: the next attempt may succeed
            problem = f"internal error: {type(error).__name__}: {error}"
        if self._refused > _MOST_REPORTED:
            self._notify(f"{self._name}: {self._refused - _MOST_REPORTED:,} more messages were refused")
        with suppress(StoreError):  # the watch reports it, too
            self._report_problem(problem or "")
            self._report_dropped()
        return problem

    @property
    def _name(self) -> str:
        return f'sink "{self.sink.name}"'

    def _report_problem(self, problem: str) -> None:
        if problem == self._problem:
            return
        if bool(problem) != bool(self._problem):
            self._notify(
                f"{self._name}: {problem} (trying again)" if problem else f"{self._name} answers again"
            )
        self._problem = problem
        if problem:
            set_problem(self._store, self.sink.name, problem, time.time())

    def _report_refused(self, message: Message, why: str) -> None:
        self._refused += 1
        if self._refused <= _MOST_REPORTED:
            self._notify(
                f"{self._name} refused {message.kind} {message_id(message)}, which is dropped: {why}"
            )

    def _report_dropped(self) -> None:
        dropped = states(self._store, [self.sink.name])[self.sink.name].dropped
        if self._dropped is not None and dropped > self._dropped:
            self._notify(
                f"{self._name}: too many messages waited; the oldest {dropped - self._dropped:,} were dropped"
            )
        self._dropped = dropped
