"""Words of a shell that are not programs: reserved words, assignments and declarations."""

import re
from collections.abc import Sequence

__all__ = ["ASSIGNS", "DECLARES", "PREFIXES", "RESERVED", "program_of"]

ASSIGNS = re.compile(r"(?P<name>[A-Za-z_]\w*)(?P<key>\[(?:[^\[\]]|\[[^\]]*\])*\])?(?P<more>\+?)=", re.DOTALL)
PREFIXES = frozenset("if then else elif do while until ! { time".split())  # noqa: SIM905  # lists of words read best so
"""Words before a command."""
RESERVED = frozenset(
    "for case select foreach in function done } fi esac ) ]] break continue return exit shift".split()  # noqa: SIM905
)
DECLARES = frozenset("export local readonly typeset declare set setenv env let".split())  # noqa: SIM905


def program_of(words: Sequence[str]) -> int:
    """The index of the program's word: after reserved words and assignments."""
    for place, word in enumerate(words):
        if word not in PREFIXES and not ("=" in word and ASSIGNS.match(word)):
            return place
    return len(words)
