"""The options and variables of the shell's `read`."""

import re
from collections.abc import Sequence
from itertools import pairwise

__all__ = ["names_read", "reads_all", "reads_letters"]

_ENDS_WITHIN_LINE = re.compile(r"-\w*[nNd]")


def reads_all(words: Sequence[str]) -> bool:
    """Whether it is told to take its whole input."""
    return any(
        option[:1] == "-" and option[-1] == "d" and end in ("''", '""') for option, end in pairwise(words)
    )


def reads_letters(words: Sequence[str]) -> bool:
    """Whether it may end within a line."""
    return any(map(_ENDS_WITHIN_LINE.match, words))


def names_read(words: Sequence[str]) -> list[str]:
    """The variables among the words of `read`."""
    return [
        word
        for option, word in pairwise(("", *words))
        if word[0] != "-" and not (option[:1] == "-" and option[-1] in "tnNdipu")
    ]
