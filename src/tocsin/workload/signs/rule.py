"""The form of a sign: which words and patterns in a command line indicate which operation."""

import re
from functools import cache
from typing import NamedTuple

__all__ = ["COMMAND", "CRYPTOMINING", "CYBER", "Rule", "compiled", "rule"]

CRYPTOMINING = "cryptomining"
CYBER = "cyber"


class Rule(NamedTuple):
    operation: str | None
    why: str
    hooks: tuple[frozenset[str], ...]
    """The patterns can match only in a script that has a word of each group; a look at its words is fast."""
    line: tuple[str, ...]
    """Patterns that all must be found in one line. Each takes time linear in the line, whatever somebody writes in it."""
    near: tuple[str, ...] = ()
    """All must be found in the lines around it, too."""
    unless: tuple[str, ...] = ()
    """None may be found in the lines around it."""
    weak: bool = False
    """Ordinary programs have it, too: it convicts only together with a second trait."""
    but_clients: bool = False
    """Commands of well-known clients have it for other reasons: there it is no sign."""

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


@cache  # when first needed: all rules together take as long as reading fifty scripts
def compiled(patterns: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.IGNORECASE | re.MULTILINE) for pattern in patterns)


# Where a command begins: at the start of a line, after ; | & ( ` or a program that runs another.
COMMAND = (
    r"(?:^(?:[a-z_]\w{0,40}=\S{0,100}\s+){0,4}|[;&|(`{]\s*|\b(?:sudo|exec|nohup|time|nice|srun|mpirun|mpiexec|then|do|else|timeout|xargs|proxychains4?|"
    r"singularity|apptainer|parallel|env|screen|bash -c|sh -c)\s+(?:[-\w=./:]{1,60}\s+){0,4}?)[\"']?(?:[\w./~${}-]{0,200}/)?"
)
