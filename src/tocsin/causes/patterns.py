"""A pattern: pieces of text that must follow each other in one line. Matching takes linear time for any line."""

import re
from dataclasses import dataclass
from itertools import permutations, product

__all__ = ["SHORTEST", "Pattern", "alternatives", "parse_pattern"]

SHORTEST = 4
"""Minimum length of the longest piece: it is searched for in the whole output."""
_MOST_PIECES = 12
_MOST_ALTERNATIVES = 1000
_LONGEST = 300
_ANY, _WORD, _AND = "*", "{word}", " & "
_MOST_PARTS = 3
_SIGNS = re.compile(r"((?<!\*)\*(?!\*)|\{word\})")
"""A run of asterisks is text: programs print them around what matters."""
_CHOICE = re.compile(r"\(([^()]*\|[^()]*)\)")
_NO_WORD = re.compile(r"[^\w.:-]", re.ASCII)


@dataclass(frozen=True, slots=True)
class Pattern:
    """`*` matches any text (`**` and longer runs are text), `{word}` one word, `^` at the start and `$` at the end the ends of the line.

    Case is ignored, and there are no other special characters (`alternatives` expands choices before), so that no
    pattern can be slow.
    """

    pieces: tuple[str, ...]
    """In lower case."""
    words: tuple[bool, ...]
    """For each piece, whether only one word may come between it and the previous piece (or the start)."""
    at_start: bool
    at_end: bool

    @property
    def key(self) -> str:
        """The longest piece: a line without it cannot match."""
        return max(self.pieces, key=len)

    @property
    def text(self) -> str:
        """Its pieces as they would appear in a line."""
        return " ".join(self.pieces)

    def matches(self, line: str) -> bool:
        """Whether a line, in lower case and stripped, has the pieces in this order."""
        at = 0
        last = len(self.pieces) - 1
        for number, (piece, word) in enumerate(zip(self.pieces, self.words, strict=True)):
            if number == last and self.at_end:
                found = len(line) - len(piece)
                if found < at or not line.endswith(piece):
                    return False
            else:
                found = line.find(piece, at)
            if found < 0 or (number == 0 and self.at_start and found != 0 and not word):
                return False
            # The first position decides: a later one only has more text before it.
            if word and not _one_word(line[at:found], whole=number > 0 or self.at_start):
                return False
            at = found + len(piece)
        return True


def _one_word(text: str, *, whole: bool) -> bool:
    return bool(text) and not (_NO_WORD.search(text) if whole else _NO_WORD.match(text[-1]))


def alternatives(text: str) -> tuple[str, ...]:
    """The texts that a text with `(one|other)`, or with parts in any order, stands for; a ValueError if too many.

    >>> alternatives("(cannot|unable to) open (the |)file")
    ('cannot open the file', 'cannot open file', 'unable to open the file', 'unable to open file')
    >>> alternatives("licence & (expired|denied)")
    ('licence*expired', 'expired*licence', 'licence*denied', 'denied*licence')
    """
    parts = _CHOICE.split(text)
    choices = [part.split("|") if number % 2 else [part] for number, part in enumerate(parts)]
    if text.count(_AND) >= _MOST_PARTS:
        raise ValueError(f"it has more than {_MOST_PARTS} parts that may stand in any order")
    found = tuple(
        _ANY.join(order)
        for chosen in product(*choices)
        for order in permutations("".join(chosen).split(_AND))
    )
    if len(found) > _MOST_ALTERNATIVES:
        raise ValueError(f"it stands for {len(found)} patterns, more than {_MOST_ALTERNATIVES}")
    return found


def parse_pattern(text: str, shortest: int = SHORTEST) -> Pattern:
    """The pattern of a text in a catalogue; a ValueError says why it is invalid.

    >>> parse_pattern("^slurm*: error").matches("slurmstepd: error: x")
    True
    >>> parse_pattern("package * is required").matches("the package is required")
    True
    >>> [parse_pattern("^{word}error: ").matches(line) for line in ("valueerror: x", "an error: x", "error: x")]
    [True, False, False]
    """
    if len(text) > _LONGEST:
        raise ValueError(f"it has {len(text)} characters, more than {_LONGEST}")
    at_start, at_end = text.startswith("^"), text.endswith("$")
    pieces: list[str] = []
    words: list[bool] = []
    sign = ""
    for part in _SIGNS.split(text[at_start : len(text) - at_end].lower()):
        if part in (_ANY, _WORD):
            sign = part
        elif part:
            if sign == _ANY and pieces and pieces[-1].endswith(" "):
                part = part.removeprefix(" ") or part  # `*` between blanks may match nothing
            pieces.append(part)
            words.append(sign == _WORD)
            sign = ""
    if max(map(len, pieces), default=0) < shortest:
        raise ValueError(f"it needs a piece of {shortest} or more characters without * or {_WORD}")
    if len(pieces) > _MOST_PIECES:
        raise ValueError(f"it has {len(pieces)} pieces, more than {_MOST_PIECES}")
    if not all(piece.isprintable() for piece in pieces):
        raise ValueError("it has characters that cannot be printed")
    if sign == _WORD:
        raise ValueError(f"{_WORD} needs text after it")
    begins = at_start and not text.startswith("^*")
    return Pattern(tuple(pieces), tuple(words), begins, at_end and not sign)
