"""The form of a sign: which words and shapes in a command line speak for which operation."""

import re
from typing import NamedTuple

__all__ = ["COMMAND", "CRYPTOMINING", "CYBER", "Rule", "rule"]

CRYPTOMINING = "cryptomining"
CYBER = "cyber"


class Rule(NamedTuple):
    operation: str | None
    why: str
    hooks: tuple[frozenset[str], ...]
    """The patterns can match only in a script that has a word of each group; a look at its words is fast."""
    patterns: tuple[re.Pattern[str], ...]
    """All must be found in one line. Each takes time linear in the line, whatever somebody writes in it."""


def rule(operation: str | None, why: str, *hooks: str, line: str | tuple[str, ...]) -> Rule:
    patterns = (line,) if isinstance(line, str) else line
    return Rule(
        operation,
        why,
        tuple(frozenset(group.split()) for group in hooks),
        tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns),
    )


# Where a command begins: at the start of a line, after ; | & ( ` or a program that runs another.
COMMAND = (
    r"(?:^|[;&|(`{]\s*|\b(?:sudo|exec|nohup|time|nice|srun|mpirun|mpiexec|then|do|else|timeout|xargs|proxychains4?|"
    r"singularity|apptainer|parallel|env|screen|bash -c|sh -c)\s+(?:[-\w=./:]{1,60}\s+){0,4}?)[\"']?(?:[\w./~${}-]{0,200}/)?"
)
