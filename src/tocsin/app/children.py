"""Work shared out among child processes: chunks go out, results come back in the same order."""

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, NamedTuple, TypeVar

from tocsin.core.errors import TocsinError

__all__ = ["cores", "shared_out"]

_Given = TypeVar("_Given")
_Found = TypeVar("_Found")
_AHEAD = 3
"""Chunks for each child that are out or not told yet: a slow one holds up none of the others, and memory is bounded."""


class _Child(NamedTuple):
    process: SpawnProcess
    line: "Connection[Any, Any]"


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0))


def shared_out(work: Callable[[_Given], _Found], chunks: Iterable[_Given], children: int) -> Iterator[_Found]:
    """`work` is called in the children, so it must be a function of a module, and all values must be picklable."""
    team: list[_Child] = []
    try:
        team += [_start(work) for _ in range(children)]
        yield from _in_order([child.line for child in team], chunks)
    except (EOFError, ConnectionError):
        raise TocsinError(
            f"one of {children} child processes died before it was done (was memory short?); what was told so far is "
            "right, the rest is missing"
        ) from None
    finally:
        for child in team:
            child.process.terminate()  # at whatever it is: nobody waits for it any more
            child.line.close()
        for child in team:
            child.process.join()


def _start(work: Callable[[Any], Any]) -> _Child:
    context = get_context("spawn")  # a fork would copy the locks of threads in whatever state they are
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(work, theirs), daemon=True)
    process.start()
    theirs.close()  # so that the end of a child is the end of its line
    return _Child(process, ours)


def _in_order(lines: "list[Connection[Any, Any]]", chunks: Iterable[Any]) -> Iterator[Any]:
    numbered = enumerate(chunks)
    most = _AHEAD * len(lines)
    idle, busy = list(lines), dict["Connection[Any, Any]", int]()
    found: dict[int, tuple[bool, Any]] = {}
    told = 0
    while True:
        while idle and len(busy) + len(found) < most and (chunk := next(numbered, None)):
            line = idle.pop()
            line.send(chunk[1])
            busy[line] = chunk[0]
        if not busy:
            return
        ready = wait(busy)
        for line in [line for line in busy if line in ready]:
            found[busy.pop(line)] = line.recv()
            idle.append(line)
        while told in found:
            good, answer = found.pop(told)
            if not good:
                raise answer
            yield answer
            told += 1


def _serve(work: Callable[[Any], Any], line: "Connection[Any, Any]") -> None:
    """A child's life; it ends with its line. An interrupt is the parent's to answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, ConnectionError):
        while True:
            chunk = line.recv()
            try:
                line.send((True, work(chunk)))
            except TocsinError as error:
                line.send((False, error))
