"""The components of a heterogeneous job: `#SBATCH hetjob` separates their directives, a colon their command lines."""

from collections.abc import Sequence
from itertools import zip_longest

from tocsin.scripts.options import Directive
from tocsin.scripts.words import Word

__all__ = ["SEPARATORS", "Numbered", "split_at_colons", "with_command_line"]

SEPARATORS = ("hetjob", "packjob")
Numbered = tuple[int, Directive]
"""A directive with its index among all of a submission."""


def _split_components(directives: Sequence[Numbered]) -> list[list[Numbered]]:
    """The directives of each component."""
    parts: list[list[Numbered]] = [[]]
    for at, directive in directives:
        if directive.option in SEPARATORS:
            parts.append([])
        else:
            parts[-1].append((at, directive))
    return parts


def with_command_line(own: Sequence[Directive], added: Sequence[Directive]) -> list[list[Numbered]]:
    """The directives of each component, then the environment, then its options on the command line.

    The environment is for all components, and a command line for one is, too.
    """
    numbered = [(at + len(own), d) for at, d in enumerate(added)]
    environment = [(at, d) for at, d in numbered if d.source]
    given = _split_components([(at, d) for at, d in numbered if not d.source])
    parts = _split_components([*enumerate(own)])
    if len(given) == 1:
        given *= len(parts)
    return [[*part, *environment, *more] for part, more in zip_longest(parts, given, fillvalue=())]


def split_at_colons(words: Sequence[Word]) -> list[list[Word]]:
    """The components of a heterogeneous job on the command line: `-n 8 : -n 1`."""
    parts: list[list[Word]] = [[]]
    for word in words:
        if word.text == ":":
            parts.append([])
        else:
            parts[-1].append(word)
    return parts
