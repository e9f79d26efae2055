"""Child processes: one that reports through a pipe, and many that share work and return results in order."""

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, NamedTuple, TypeVar

from tocsin.core.errors import TocsinError

__all__ = ["BACKGROUND", "Child", "cores", "map_in_children", "start"]

_Given = TypeVar("_Given")
_Found = TypeVar("_Found")
BACKGROUND = 10
"""Niceness of background work, so that the watch, answers and other processes go first."""
_AHEAD = 3
"""Chunks per child, running or queued: a slow child does not delay the others, and memory is bounded."""


class Child(NamedTuple):
    process: SpawnProcess
    pipe: "Connection[Any, Any]"
    """Closed when the child ends."""


def start(target: Callable[..., None], *given: Any, nice: int = 0) -> Child:
    """Call `target(*given, pipe)` in a child; `target` must be a module-level function with picklable arguments.

    It is `nice` from the start: loading its modules takes a second of CPU.
    """
    context = get_context("spawn")  # a fork would copy the locks of other threads in any state
    ours, theirs = context.Pipe()
    process = context.Process(target=_run, args=(target, given, theirs), daemon=True)
    process.start()
    if nice:
        assert process.pid, "it was started"
        os.setpriority(os.PRIO_PROCESS, process.pid, os.getpriority(os.PRIO_PROCESS, 0) + nice)
    theirs.close()
    return Child(process, ours)


def _run(target: Callable[..., None], given: tuple[Any, ...], pipe: "Connection[Any, Any]") -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles interrupts
    target(*given, pipe)


def cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0))


def map_in_children(
    work: Callable[[_Given], _Found], chunks: Iterable[_Given], children: int
) -> Iterator[_Found]:
    """Results of `work` in order. It runs in children, so it must be a module-level function with picklable values."""
    team: list[Child] = []
    try:
        team += [start(_serve, work) for _ in range(children)]
        yield from _in_order([child.pipe for child in team], chunks)
    except (EOFError, ConnectionError):
        raise TocsinError(
            f"one of {children} child processes died (out of memory?); the results so far are right, the rest is missing"
        ) from None
    finally:
        for child in team:
            child.process.terminate()  # its results are no longer needed
            child.pipe.close()
        for child in team:
            child.process.join()


def _in_order(pipes: "list[Connection[Any, Any]]", chunks: Iterable[Any]) -> Iterator[Any]:
    numbered = enumerate(chunks)
    most = _AHEAD * len(pipes)
    idle, busy = list(pipes), dict["Connection[Any, Any]", int]()
    found: dict[int, tuple[bool, Any]] = {}
    turn = 0
    while True:
        while idle and len(busy) + len(found) < most and (chunk := next(numbered, None)):
            pipe = idle.pop()
            pipe.send(chunk[1])
            busy[pipe] = chunk[0]
        if not busy:
            return
        ready = wait(busy)
        for pipe in [pipe for pipe in busy if pipe in ready]:
            found[busy.pop(pipe)] = pipe.recv()
            idle.append(pipe)
        while turn in found:
            good, answer = found.pop(turn)
            if not good:
                raise answer
            yield answer
            turn += 1


def _serve(work: Callable[[Any], Any], pipe: "Connection[Any, Any]") -> None:
    """In the child: work until the pipe closes."""
    with suppress(EOFError, ConnectionError):
        while True:
            chunk = pipe.recv()
            try:
                pipe.send((True, work(chunk)))
            except TocsinError as error:
                pipe.send((False, error))
