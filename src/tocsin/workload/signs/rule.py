"""The form of a sign: which words and patterns in a command line indicate which operation."""

import re
from functools import cache
from typing import NamedTuple

__all__ = ["COMMAND", "CRYPTOMINING", "CYBER", "TARGET", "Rule", "compiled", "rule"]

CRYPTOMINING = "cryptomining"
CYBER = "cyber"


class Rule(NamedTuple):
    operation: str | None
    why: str
    hooks: tuple[frozenset[str], ...]
    """The patterns match only in a script that has a word of each group; checking its words is fast."""
    line: tuple[str, ...]
    """Patterns that must all be found in one line. Each takes time linear in the line, whatever it contains."""
    near: tuple[str, ...] = ()
    """All of these must be found in the lines around it."""
    unless: tuple[str, ...] = ()
    """None may be found in the lines around it."""
    weak: bool = False
    """Ordinary programs have it, too: it counts only together with a second trait."""
    but_clients: bool = False
    """Commands of well-known clients have it for other reasons, so there it is not a sign."""

    @property
    def patterns(self) -> tuple[re.Pattern[str], ...]:
        return compiled(self.line)


def rule(
    operation: str | None,
    why: str,
    *hooks: str,
    line: str | tuple[str, ...],
    near: tuple[str, ...] = (),
    unless: tuple[str, ...] = (),
    weak: bool = False,
    but_clients: bool = False,
) -> Rule:
    return Rule(
        operation,
        why,
        tuple(frozenset(group.split()) for group in hooks),
        (line,) if isinstance(line, str) else line,
        near,
        unless,
        weak,
        but_clients,
    )


@cache  # compiled lazily: all rules together take as long as reading fifty scripts
def compiled(patterns: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.IGNORECASE | re.MULTILINE) for pattern in patterns)


# Where a command begins: at the start of a line, after ; | & ( ` or a program that runs another.
COMMAND = (
    r"(?:^(?:[a-z_]\w{0,40}=\S{0,100}\s+){0,4}|[;&|(`{]\s*|\b(?:sudo|exec|nohup|time|nice|srun|mpirun|mpiexec|then|do|else|timeout|xargs|proxychains4?|"
    r"singularity|apptainer|parallel|env|screen|bash -c|sh -c)\s+(?:[-\w=./:]{1,60}\s+){0,4}?)[\"']?(?:[\w./~${}-]{0,200}/)?"
)
TARGET = r"://|(?:\d{1,3}\.){3}\d|[\w-]\.(?:com|org|net|io|local|lan)\b|\$\{?\w{0,20}(?:ip|host|target|url|domain|net|range|cidr|server)\w{0,20}"
"""A machine or a network; a scientific program that happens to have a tool's name has none."""
