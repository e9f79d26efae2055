"""A script checker in a process of its own, kept up to date by the process that follows the cluster.

Python computes in one thread at a time: in the watch's process, checks and rounds would wait for each other.
"""

import gc
import logging
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tocsin.app.app import App
from tocsin.app.check import ScriptQuestion
from tocsin.app.children import Child, start
from tocsin.app.watch import Followed
from tocsin.core.errors import TocsinError, Unavailable
from tocsin.core.verdict import Verdict

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from tocsin.app.script_checker import Prepared
    from tocsin.core.machine import Machine

__all__ = ["CheckerProcess"]

_Written = TypeVar("_Written")

AGAIN = 15.0
"""Seconds until a process that ended early is restarted; one that lived longer is replaced at once."""
_READY = -1
_ANY_SCRIPT = "#!/bin/bash\n#SBATCH --time=1:00:00 --mem=1G\nsrun ./a.out $1\n"
_PREPARING = 8
"""Concurrent requests to Slurm."""


class _Question(NamedTuple):
    number: int
    asked: ScriptQuestion
    at: float
    """The cluster's time."""
    known_until: int
    """The instant up to which its history was counted."""
    write: Callable[[Verdict], Any]


class _Prepared(NamedTuple):
    question: _Question
    prepared: "Prepared | Exception"


class CheckerProcess:
    """Checks scripts one after the other. Callable from any thread; a process that dies is replaced."""

    def __init__(self, app: App, followed: Followed) -> None:
        self.problem: str | None = None
        """Why it cannot be started."""
        self.is_ready = False
        self._app = App(app.config_file, app.folder, dict(app.environ))
        self._followed = followed
        self._numbers = count()
        self._lock = threading.Lock()
        self._open: dict[int, tuple[_Question, Future[Any]]] = {}
        self._closing = threading.Event()
        self._machine: Machine | None = None
        """The last one sent."""
        self._outgoing: SimpleQueue[Any] = SimpleQueue()
        self._child: Child | None = None
        self._began = 0.0
        followed.ledger.followers.append(self._enqueue)
        self._keeper = threading.Thread(
            target=self._keep_running, name=f"checker {followed.name}", daemon=True
        )
        self._keeper.start()

    def check(self, asked: ScriptQuestion, write: Callable[[Verdict], _Written]) -> "Future[_Written]":
        """The verdict, rendered in that process by `write` (module-level, with picklable values). Does not block."""
        followed = self._followed
        found: Future[_Written] = Future()
        with self._lock:
            if self._closing.is_set():
                raise Unavailable("the service ends")
            number = next(self._numbers)
            question = _Question(number, asked, followed.now(), followed.ledger.known_until, write)
            self._open[number] = question, found
            self._ask(question)
        return found

    def close(self) -> None:
        """End the process; open questions fail."""
        self._closing.set()
        with suppress(ValueError):
            self._followed.ledger.followers.remove(self._enqueue)
        if self._child is not None:
            self._child.process.terminate()
        self._keeper.join()

    def _ask(self, question: _Question) -> None:
        if self._machine is not self._followed.ledger.machine:
            self._machine = self._followed.ledger.machine
            self._enqueue(self._machine)
        self._enqueue(question)

    def _enqueue(self, what: Any) -> None:
        self._outgoing.put(what)

    def _keep_running(self) -> None:
        while not self._closing.is_set():
            self._began = time.monotonic()
            self._run()
            if self.problem is None and not self._closing.is_set():
                logging.getLogger("tocsin.service").warning(
                    "the process that checks scripts of %s died; it is started again", self._followed.name
                )
            if time.monotonic() - self._began < AGAIN:
                self._closing.wait(AGAIN)
        self._fail_open()

    def _run(self) -> None:
        """Start the process, and receive its answers until it ends."""
        with self._lock:
            # The process reads its history from the store, which holds everything learned so far.
            self._outgoing, self._machine = SimpleQueue(), None
            for question, _ in self._open.values():  # asked since the last process ended
                self._ask(question)
            child = self._child = start(
                _work, self._app, self._followed.name, self._followed.live, self._followed.ledger.known_until
            )
        if self._closing.is_set():  # by a caller that still had an older process
            child.process.terminate()
        sender = threading.Thread(target=_send, args=(self._outgoing, child.pipe), daemon=True)
        sender.start()
        with suppress(EOFError, OSError):
            while True:
                self._deliver(*child.pipe.recv())
        self.is_ready = False
        self._fail_open()
        self._enqueue(None)
        child.process.terminate()
        child.process.join()
        sender.join()
        child.pipe.close()

    def _fail_open(self) -> None:
        with self._lock:
            left, self._open = self._open, {}
        for _, found in left.values():
            if found.set_running_or_notify_cancel():
                found.set_exception(Unavailable("the process that checks scripts ended; try again"))

    def _deliver(self, number: int, answer: Any, error: Exception | None) -> None:
        if number == _READY:
            self.is_ready, self.problem = error is None, str(error) if error else None
            return
        with self._lock:
            _, found = self._open.pop(number)
        if not found.set_running_or_notify_cancel():  # the caller has given up
            return
        if error is not None:
            found.set_exception(error)
        else:
            found.set_result(answer)


def _send(outgoing: "SimpleQueue[Any]", pipe: "Connection[Any, Any]") -> None:
    """In a thread, so that a busy process blocks no caller."""
    with suppress(OSError):
        while (what := outgoing.get()) is not None:
            pipe.send(what)


# --- in the process --------------------------------------------------------------------------------


def _work(app: App, cluster: str, live: bool, known_until: int, pipe: "Connection[Any, Any]") -> None:
    inbox: SimpleQueue[Any] = SimpleQueue()
    try:
        worker = _Worker(app, cluster, live, known_until, inbox, pipe)
        worker.warm_up()
    except Exception as error:
        with suppress(OSError):
            pipe.send((_READY, None, _portable(error)))
        return
    # Models and history stay, so the garbage collector need not scan them again.
    gc.collect()
    gc.freeze()
    with suppress(OSError):
        pipe.send((_READY, None, None))
        threading.Thread(target=_receive, args=(pipe, inbox), daemon=True).start()
        worker.run()


def _receive(pipe: "Connection[Any, Any]", inbox: "SimpleQueue[Any]") -> None:
    with suppress(EOFError, OSError):
        while True:
            inbox.put(pipe.recv())
    inbox.put(None)


class _Worker:
    """Receives jobs to learn, the current machine, and questions."""

    def __init__(
        self,
        app: App,
        cluster: str,
        live: bool,
        known_until: int,
        inbox: "SimpleQueue[Any]",
        pipe: "Connection[Any, Any]",
    ) -> None:
        from tocsin.app.ledger import read_history
        from tocsin.app.script_checker import ScriptChecker

        self._ledger = read_history(app, cluster)
        self._ledger.advance(known_until)  # else the first check would wait for all that is not in the cache
        self._now = 0.0
        self._checker = ScriptChecker(app, Followed(cluster, self._ledger, lambda: self._now, live=live))
        self._inbox, self._pipe = inbox, pipe
        self._preparing = ThreadPoolExecutor(_PREPARING, "prepare")

    def warm_up(self) -> None:
        """Load what the first check needs, which took half a second."""
        self._now = time.time()
        self._checker.check(ScriptQuestion(text=_ANY_SCRIPT, user="root"), (None, {}))

    def run(self) -> None:
        """Run until the other side closes the pipe."""
        import polars as pl

        while (what := self._inbox.get()) is not None:
            if isinstance(what, _Question):
                if prepared := self._checker.prepared(what.asked.user):
                    self._answer(what, prepared)
                else:
                    self._preparing.submit(self._prepare, what)
            elif isinstance(what, _Prepared):
                self._answer(*what)
            elif isinstance(what, pl.DataFrame):
                self._ledger.learn(what)
            else:
                self._ledger.machine = what
        self._preparing.shutdown(wait=False, cancel_futures=True)

    def _prepare(self, question: _Question) -> None:
        """Ask Slurm what this user may request; meanwhile, others are answered."""
        try:
            self._inbox.put(_Prepared(question, self._checker.prepare(question.asked.user)))
        except Exception as error:  # every question must be answered, whatever the error
            self._inbox.put(_Prepared(question, error))

    def _answer(self, question: _Question, prepared: "Prepared | Exception") -> None:
        self._now = question.at
        self._ledger.advance(question.known_until)
        try:
            if isinstance(prepared, Exception):
                raise prepared
            answer, error = question.write(self._checker.check(question.asked, prepared)), None
        except Exception as failure:
            answer, error = None, _portable(failure)
        self._pipe.send((question.number, answer, error))


def _portable(error: Exception) -> Exception:
    """An error that can be pickled: ours unchanged, any other with where it happened."""
    if isinstance(error, TocsinError):
        return error
    return RuntimeError("".join(traceback.format_exception(error)))
