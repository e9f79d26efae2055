"""Splits a directive line into words, with the column of every character for later edits."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

__all__ = ["Place", "Splitter", "Word", "directive_words", "join_words", "sbatch_words"]


class Place(NamedTuple):
    """A range of columns in one physical line."""

    line: int
    start: int
    end: int


class Word(NamedTuple):
    """A word without quotes, and the column of each character in the (joined) line."""

    text: str
    columns: Sequence[int]

    def part(self, start: int, end: int | None = None) -> "Word":
        return Word(self.text[start:end], self.columns[start:end])

    def pieces(self, separator: str) -> list["Word"]:
        """Split at a character outside brackets and braces."""
        found, start, depth = [], 0, 0
        for i, letter in enumerate(self.text):
            if letter in "[{(":
                depth += 1
            elif letter in "]})":
                depth -= 1
            elif letter == separator and depth <= 0:
                found.append(self.part(start, i))
                start = i + 1
        found.append(self.part(start))
        return found

    def trim(self) -> "Word":
        """Without surrounding blanks."""
        lead = len(self.text) - len(self.text.lstrip())
        return self.part(lead, max(lead, len(self.text.rstrip())))

    def partition(self, separator: str) -> tuple["Word", "Word | None"]:
        """The parts before and after the first separator; None without one."""
        at = self.text.find(separator)
        return (self, None) if at < 0 else (self.part(0, at), self.part(at + len(separator)))


Splitter = Callable[[str, int], tuple[list[Word], str | None]]
"""From a line and the column where its options start to its words and an error, if any."""

_PLAIN = re.compile(r"\S+")
_SPECIAL = re.compile(r"[\"'\\#]|(?<!\S):")


def directive_words(line: str, start: int) -> tuple[list[Word], str | None]:
    """Split like a shell: quotes, backslashes, and a comment from a word that starts with `#`."""
    return _split(line, start, sbatch=False)


def sbatch_words(line: str, start: int) -> tuple[list[Word], str | None]:
    """Split like get_argument in Slurm's opt.c.

    Any bare `#` starts a comment, even inside a word; a backslash also escapes in single quotes, but not a blank
    outside quotes. An empty word (`""`) ends the line, and no word may start with a colon.
    """
    return _split(line, start, sbatch=True)


def _split(line: str, start: int, *, sbatch: bool) -> tuple[list[Word], str | None]:
    if not _SPECIAL.search(line, start):
        return [Word(found[0], range(*found.span())) for found in _PLAIN.finditer(line, start)], None
    words: list[Word] = []
    letters: list[str] = []
    columns: list[int] = []
    quote, escaped, begun = "", False, False
    for column in range(start, len(line)):
        letter = line[column]
        blank = letter.isspace() and not quote
        if escaped and not (sbatch and blank):
            escaped = False
        elif letter == "\\" and (sbatch or quote != "'"):
            escaped = True  # at the end of the line it escapes nothing
            continue
        elif quote:
            if letter == quote:
                quote = ""
                continue
        elif letter in "\"'":
            quote, begun = letter, True
            continue
        elif letter == "#" and (sbatch or not begun):
            break
        elif letter == ":" and sbatch and not begun:
            return words, 'a word starts with ":"'
        elif blank:
            escaped = False
            if sbatch and begun and not letters:
                return words, None
            if begun:
                words.append(Word("".join(letters), columns))
                letters, columns, begun = [], [], False
            continue
        begun = True
        letters.append(letter)
        columns.append(column)
    if begun and not (sbatch and not letters and not quote):
        words.append(Word("".join(letters), columns))
    return words, f"the quote {quote} is not closed" if quote else None


def join_words(words: Sequence[Word]) -> Word:
    """Several words as one value, separated by blanks."""
    if len(words) == 1:
        return words[0]
    columns: list[int] = []
    for word in words:
        if columns:
            columns.append(columns[-1] + 1)
        columns.extend(word.columns)
    return Word(" ".join(word.text for word in words), columns)
