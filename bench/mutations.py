"""Mutated scripts, model files and source files: none may end in an exception, a crash or a second of work.

Child processes read them, so that a crash costs one of them; `python -m bench.mutations KIND FIRST COUNT` is a child.
Cases are seeded by their number: a reported one can be repeated alone.
"""

import os
import select
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.mutated_models import models
from bench.mutated_sources import scripts, sources

__all__ = ["KINDS", "run", "survey"]

CASES = 10_000
SECONDS = 1.0
_PATIENCE = 60.0  # wall-clock seconds for one case, on a machine that others use, too
_PREPARATION = 900.0  # the same for what a child does before its first case
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}  # cases are small
KINDS = {"scripts": scripts, "models": models, "sources": sources}


def _child(kind: str, first: int, count: int) -> None:
    """Write a line when all is prepared, and one after each case."""
    from tocsin.core.errors import TocsinError

    warnings.simplefilter("ignore")
    reports = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no report
    read = KINDS[kind]()
    print("ready", file=reports)
    for number in range(first, first + count):
        start, trouble = time.process_time(), ""
        try:
            read(number)
        except TocsinError:
            trouble = "refused"
        except BaseException as error:  # a panic of polars is no Exception
            trouble = f"{type(error).__name__}: {str(error)[:200]!r}"
        print(f"{time.process_time() - start:.4f} {trouble}", file=reports)


def survey(kind: str, first: int, count: int) -> dict[str, Any]:
    """Run the cases in child processes; what went wrong, by case."""
    wrong: dict[int, str] = {}
    slowest, slowest_case, refused, last = 0.0, None, 0, first + count
    while first < last:
        at = first
        for number, line in _lines(kind, first, last - first):
            at = number
            if line is None:
                wrong[number] = "crashed, or took more than a minute"
                continue
            seconds, _, trouble = line.partition(" ")
            if float(seconds) > slowest:
                slowest, slowest_case = float(seconds), number
            if float(seconds) > SECONDS:
                wrong[number] = f"took {float(seconds):.1f} s"
            refused += trouble == "refused"
            if trouble and trouble != "refused":
                wrong[number] = trouble
        first = at + 1
    return {
        "cases": count,
        "refused": refused,
        "exceptions": sum(not text.startswith(("crashed", "took")) for text in wrong.values()),
        "crashes": sum(text.startswith("crashed") for text in wrong.values()),
        "over_a_second": sum(text.startswith("took") for text in wrong.values()),
        "slowest_seconds": round(slowest, 3),
        "slowest_case": slowest_case,
        "wrong": {str(number): text for number, text in sorted(wrong.items())[:20]},
    }


def _lines(kind: str, first: int, count: int) -> Iterator[tuple[int, str | None]]:
    """What one child reports for each case; None for the case in which it died or was killed."""
    command = [sys.executable, "-m", "bench.mutations", kind, str(first), str(count)]
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        bufsize=0,  # a line in a buffer is not seen by select
        cwd=Path(__file__).parents[1],
        env={**os.environ, **_ONE_THREAD},
    )
    assert child.stdout is not None
    try:
        if not _next_line(child, _PREPARATION):
            raise RuntimeError(f"could not prepare mutated {kind}; see the messages above")
        for number in range(first, first + count):
            line = _next_line(child, _PATIENCE)
            yield number, line or None
            if not line:
                return
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def _next_line(child: "subprocess.Popen[bytes]", patience: float) -> str:
    """Empty where the child ended or was silent for too long."""
    assert child.stdout is not None
    ready = select.select([child.stdout], [], [], patience)[0]
    return child.stdout.readline().decode().rstrip("\n") if ready else ""


def run(count: int = CASES) -> dict[str, Any]:
    found = {kind: survey(kind, 0, count) for kind in KINDS}
    total = {
        name: sum(result[name] for result in found.values())
        for name in ("cases", "exceptions", "crashes", "over_a_second")
    }
    return {
        **total,
        "slowest_seconds": max(result["slowest_seconds"] for result in found.values()),
        "kinds": found,
    }


if __name__ == "__main__":
    _child(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
