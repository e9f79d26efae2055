"""Small pieces of text for people: counts, clock times and notes on what was read."""

from collections.abc import Iterator, Sequence
from datetime import datetime, tzinfo

from tocsin.core.intake import Rejects

__all__ = ["clock", "count", "intake_notes"]


def count(number: int, noun: str) -> str:
    """
    >>> count(1, "job"), count(243306, "job")
    ('1 job', '243,306 jobs')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def clock(at: int | None, zone: tzinfo) -> str:
    """An instant as sacct prints it; empty where there is none."""
    return "" if at is None else datetime.fromtimestamp(at, zone).strftime("%Y-%m-%dT%H:%M:%S")


def intake_notes(notes: Sequence[str], rejects: Rejects, name: str = "") -> Iterator[str]:
    """A line for each note and each reason for rejection; `name` tells several sources apart."""
    for note in notes:
        yield f"note: {name}{note}"
    for reason, bad in rejects.counts.items():
        lines = rejects.lines.get(reason, [])
        shown = f"first at {', '.join(map(str, lines))}" if lines else ""
        if example := rejects.examples.get(reason):
            shown += f"; line {lines[0]}: {example}" if lines else f"the first is {example}"
        yield f"rejected: {name}{count(bad, 'record')}: {reason}" + (f" ({shown})" if shown else "")
