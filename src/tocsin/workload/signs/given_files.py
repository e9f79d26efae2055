"""Finds the names of files among the words that a program gets."""

from collections.abc import Iterator, Sequence

from tocsin.workload.signs.values import base

__all__ = ["given_files"]


def given_files(words: Sequence[str]) -> Iterator[str]:
    """Words that may be names of files: alone, after an equals sign or a list's comma, or attached to an option."""
    for word in words:
        yield base(word)
        if "=" in word:
            yield base(word.rpartition("=")[2])
        if word[:1] == "@":
            yield base(word[1:])
        if word[:1] == "-" and len(word) > 3:
            yield base(word[2:])
