"""Words of mining that a script spells: in pieces, backwards, with letters inserted or changed, or in numbers.

However a program joins the pieces, and in whatever language, they must be somewhere. Therefore nothing is followed here:
the script's letters are read in several ways, and words that nobody spells by chance are searched for in each.
"""

import base64
import re
from collections.abc import Collection, Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tocsin.workload.signs.effort import Effort
from tocsin.workload.signs.many_words import ManyWords
from tocsin.workload.signs.mining_names import OTHER_FORMS, WORDS
from tocsin.workload.words import plain_words

__all__ = ["SPELLED", "may_spell", "spelled"]

SPELLED = "spells a mining term in pieces"
_RARE = tuple(word for word in WORDS if not word.endswith(("miner", "pool", "mine", "btc")))
"""Those whose parts are not ordinary words."""
_ORDINARY = frozenset(
    "hash vault crypto night ghost rider hero miners mine able gate support ocean equi un".split()  # noqa: SIM905
)
"""Parts that are ordinary words; at least one part must not be one of these."""
_OTHER_NAMES = tuple(re.sub(r"\W", "", name) for name in OTHER_FORMS)
"""Without punctuation; names that are searched for only as written."""
_LONGEST = 256 * 1024
_MOST_NUMBERS = 20_000
_LEAST_CHANGED, _LEAST_MOVED = 6, 7
"""Letters that must remain of a word in which one is changed."""

_LETTERS, _DIGITS = b"abcdefghijklmnopqrstuvwxyz", b"0123456789"
_MARKS, _NO_LETTERS = (
    bytes(code for code in range(256) if code not in kept) for kept in (_LETTERS + _DIGITS, _LETTERS)
)
_FILLED_IN = re.compile(rb"\$(?:\{[^{}\n]{0,60}\}|\([^()\n]{0,9}\)|\w{1,40})")
_NAME = _LETTERS + _DIGITS + b"_[]+"
"""The characters of a variable in an assignment."""
_SEARCHED = re.compile(rb"\[(\w)\]")
_SEARCHED_REST = re.compile(r"\[\w\](\w{1,20})")
"""`grep [x]mrig` finds what is written so, and not itself."""
_WORDS_ONLY, _NUMBERS_ONLY = (
    bytes(code if code in kept else 32 for code in range(256)) for kept in (_LETTERS + _DIGITS, _DIGITS)
)
_HEX_BYTE = re.compile(rb"(?:\\x|0x|%|u00|u\{)([0-9a-f]{2})(?![0-9a-f])")
_HEX_MARKS = (b"\\x", b"0x", b"u00", b"u{", b"%7")
_GRAM = 4


def _changed(word: str) -> Iterator[str]:
    """A word without each of its letters in turn: a script may insert that one later."""
    for letter in dict.fromkeys(word[1:-1]):
        left = word.replace(letter, "")
        if len(left) >= _LEAST_CHANGED and letter.isalpha():
            yield left


def _in_base64(word: str) -> Iterator[bytes]:
    """The base64 characters of a word that do not depend on what surrounds it."""
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + word.encode())
        first, after = (0, 2, 3)[before], (before + len(word)) * 8 // 6
        yield whole[first:after]


_ALMOST = (
    frozenset(part for word in _RARE for part in (word[1:], word[:-1]) if len(part) >= _GRAM)
    - _ORDINARY
    - {"onero", "moner"}
)
"""All but one letter of them, which is elsewhere."""
_PIECES = frozenset(
    word[first:after]
    for word in _RARE
    for first in range(len(word))
    for after in range(first + 2, len(word) + 1)
    if after - first < len(word)
)
_BEGINS, _ENDS = (
    {piece: {word for word in _RARE if meets(word, piece)} for piece in _PIECES}
    for meets in (str.startswith, str.endswith)
)


def _steps(word: bytes, sign: int) -> bytes:
    """The steps from letter to letter, modulo the alphabet: invariant under shifting all letters."""
    return bytes(sign * (after - before) % 26 for before, after in pairwise(word))


def _ways(word: str) -> tuple[list[int], ...]:
    """The numbers of a word's letters forwards and backwards, rising and falling."""
    codes = list(word.encode())
    return codes, codes[::-1], [-code for code in codes], [-code for code in codes[::-1]]


def _numbered(numbers: NDArray[np.int64]) -> Iterator[bytes]:
    """The steps from number to number: invariant under adding a constant or, with XOR, under any key."""
    for steps in (numbers[1:] - numbers[:-1], numbers[1:] ^ numbers[:-1]):
        yield (steps & 255).astype(np.uint8).tobytes()


_WRITTEN_OUT = re.compile("|".join(WORDS).encode(), re.IGNORECASE)
_EITHER_WAY = [
    form.encode()
    for word in WORDS
    for form in (word, word[::-1], word.encode().hex(), word[::-1].encode().hex())
    if form != "orenom"  # chance
]
_WITHOUT_ONE = [left.encode() for word in _RARE for left in _changed(word)]
_IN_BASE64 = [letters for word in WORDS for letters in _in_base64(word)]
_MOVED = [
    _steps(word.encode(), sign)
    for word in WORDS
    if word.isalpha() and (len(word) > _LEAST_MOVED or word == "stratum")
    for sign in (1, -1)
]
_CODED = [
    steps for word in WORDS for way in _ways(word) for steps in _numbered(np.array(way, dtype=np.int64))
]
_EXACTLY = tuple(map(ManyWords, (_EITHER_WAY, _WITHOUT_ONE, _IN_BASE64, _MOVED, _CODED)))
_ROUGHLY = ManyWords([*_EITHER_WAY, *_WITHOUT_ONE, *map(str.encode, _OTHER_NAMES)])


def may_spell(text: str) -> bool:
    """Whether a script may spell such a word or have one written out: one fast search, and few scripts do."""
    letters, values, *others = _readings(text[:_LONGEST].encode("ascii", "replace"))
    rows = (b" ".join([letters, values]), *others)
    return any(known.are_in(row) for known, row in zip((_ROUGHLY, *_EXACTLY[2:]), rows, strict=True))


def spelled(text: str, words: Collection[str], effort: Effort, *, may: bool) -> int | None:
    """The line in which such a word is complete, if any; `words` are the script's words, `may`: it may spell one."""
    text = text[:_LONGEST]
    if "]" in text:
        words = set(words).difference(_SEARCHED_REST.findall(text.lower()))
    if pieces := _cut_into(words):
        rows = enumerate(text.split("\n"), 1)
        return next((number for number, row in rows if not pieces.isdisjoint(plain_words(row))), 1)
    if not may or effort.over() or not _spells(text):
        return None
    lines = text.split("\n")
    low, high = 1, len(lines)
    while low < high and not effort.over():  # what some lines spell, they also spell with those after them
        middle = (low + high) // 2
        if _spells("\n".join(lines[:middle])):
            high = middle
        else:
            low = middle + 1
    return high


def _spells(text: str) -> bool:
    raw = _SEARCHED.sub(rb"\1", text.encode("ascii", "replace"))
    letters, values, *others = _readings(_WRITTEN_OUT.sub(b" ", raw))  # other rules find what is written out
    rows = (b" ".join([letters, values]), values, *others)
    return any(known.are_in(row) for known, row in zip(_EXACTLY, rows, strict=True))


def _readings(raw: bytes) -> tuple[bytes, ...]:
    """The letters, the values of variables, the text itself, the steps of its letters, and those of its numbers."""
    low = raw.lower()
    letters, words = low.translate(None, _MARKS), low.translate(_WORDS_ONLY)
    codes = np.frombuffer(b" %b" % words, np.uint8)
    blank = codes == ord(" ")
    ways = [letters, letters[::2], letters[1::2]]
    ways.append(codes[1:][blank[:-1] & ~blank[1:]].tobytes())  # the first letter of each word
    *settings, last = low.split(b"=")
    values = _FILLED_IN.sub(b"", b"".join([*(part.rstrip(_NAME) for part in settings), last]))
    small = raw.translate(None, _NO_LETTERS)  # without capitals
    places = np.frombuffer(letters.translate(None, _DIGITS), np.uint8).astype(np.int16)
    moved = ((places[1:] - places[:-1]) % 26).astype(np.uint8).tobytes()
    long = (numbers for numbers in _numbers(low) if len(numbers) > _GRAM)
    coded = b"\xff\xff".join(steps for numbers in long for steps in _numbered(numbers))
    return b" ".join(ways), b"%b %b" % (values.translate(None, _NO_LETTERS), small), raw, moved, coded


def _numbers(low: bytes) -> Iterator[NDArray[np.int64]]:
    """The numbers in a text, in each notation."""
    digits = low.translate(_NUMBERS_ONLY)
    every = np.fromstring(digits, dtype=np.int64, sep=" ") if digits.strip() else np.zeros(0, np.int64)
    yield every[every < 1000]
    eights = every[(every < 400) & (every // 10 % 10 < 8) & (every % 10 < 8)]
    yield eights // 100 * 64 + eights // 10 % 10 * 8 + eights % 10
    bits = every[(every >= 1_000_000) & (every <= 11_111_111)]
    found = [[int(each, 2) for each in map(str, bits.tolist()) if not each.strip("01")]]
    if any(mark in low for mark in _HEX_MARKS):
        found.append([int(each, 16) for each in _HEX_BYTE.findall(low)[:_MOST_NUMBERS]])
    yield from (np.array(each, dtype=np.int64) for each in found)


def _cut_into(words: Collection[str]) -> frozenset[str]:
    """The rare words of the script into which such a word can be split, wherever they are."""
    if almost := _ALMOST.intersection(words):
        return almost
    if "xm" in words and "ig" in words:
        return frozenset({"xm"})
    known = _PIECES.intersection(words)
    if len(known) < 2:
        return frozenset()
    may = set[str]().union(*map(_BEGINS.__getitem__, known)) & set[str]().union(
        *map(_ENDS.__getitem__, known)
    )
    cut = next((word for word in sorted(may) if _is_cut(word, known)), None)
    return frozenset(piece for piece in known - _ORDINARY if cut and piece in cut)


def _is_cut(word: str, known: Collection[str]) -> bool:
    reached = {0: False}
    """The positions that pieces lead to, with whether one of them is rare."""
    for after in range(2, len(word) + 1):
        ways = [
            reached[before] or (after - before > 2 and word[before:after] not in _ORDINARY)
            for before in range(after - 1)
            if before in reached and word[before:after] in known
        ]
        if ways:
            reached[after] = any(ways)
    return reached.get(len(word), False)
