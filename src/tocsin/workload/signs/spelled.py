"""Words of mining that a script spells: in pieces, backwards, with letters between them or changed, or in numbers.

However a program joins the pieces, and in whatever language, they must stand somewhere. So nothing is followed here:
the script's letters are read in several ways, and words that nobody spells by chance are looked for in each.
"""

import base64
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from operator import sub, xor

import numpy as np
from numpy.typing import NDArray

from tocsin.workload.signs.effort import Effort
from tocsin.workload.words import plain_words

__all__ = ["SPELLED", "WORDS", "spelled"]

SPELLED = "spells a word of mining in pieces"
WORDS = (
    "xmrig", "stratum", "monero", "supportxmr", "minexmr", "hashvault", "moneroocean", "nanopool", "2miners", "ethermine", "herominers",
    "unmineable", "zergpool", "woolypooly", "cryptonight", "kawpow", "autolykos", "equihash", "ghostrider",
    "verushash", "cpuminer", "ethminer", "ccminer", "cgminer", "bfgminer", "lolminer", "nbminer", "phoenixminer",
    "srbminer", "c3pool", "f2pool", "antpool", "viabtc", "xmrpool", "monerominer",
)  # fmt: skip
"""No script of jobspec spells one of them in any of these ways."""
_RARE = tuple(word for word in WORDS if not word.endswith(("miner", "pool", "mine", "btc")))
"""Those whose parts are no ordinary words."""
_ORDINARY = frozenset(
    "hash vault crypto night ghost rider hero miners mine able gate support ocean equi un".split()  # noqa: SIM905
)
"""Parts of them that are; one part at least must be none of these."""
_LONGEST = 256 * 1024
_MOST_NUMBERS = 20_000
_LEAST_CHANGED = 6
"""Letters that must be left of a word in which one is another."""

_LETTERS, _DIGITS = b"abcdefghijklmnopqrstuvwxyz", b"0123456789"
_MARKS, _NO_LETTERS = (
    bytes(code for code in range(256) if code not in kept) for kept in (_LETTERS + _DIGITS, _LETTERS)
)
_FILLED_IN = re.compile(rb"\$(?:\{[^{}\n]{0,60}\}|\([^()\n]{0,9}\)|\w{1,40})")
_NAME = _LETTERS + _DIGITS + b"_[]+"
"""What a variable that gets a value is made of."""
_SEARCHED = re.compile(rb"\[(\w)\]")
"""`grep [x]mrig` finds what is written so, and not itself."""
_WORDS_ONLY, _NUMBERS_ONLY = (
    bytes(code if code in kept else 32 for code in range(256)) for kept in (_LETTERS + _DIGITS, _DIGITS)
)
_HEX_BYTE = re.compile(rb"(?:[x%=]|u00|u\+00|u\{)([0-9a-f]{2})(?![0-9a-f])")
_HEX_DIGITS = frozenset(b"0123456789abcdef")
_LEAST_BITS, _MOST_BITS = 7, 8
_LEAST_HEX = 10
_HEX = re.compile(rb"(?:[0-9a-f]{2}){5,200}")
_GRAM = 4


def _changed(word: str) -> Iterator[str]:
    """A word without each of its letters: a script may put that one in later."""
    for letter in dict.fromkeys(word[1:-1]):
        left = word.replace(letter, "")
        if len(left) >= _LEAST_CHANGED and letter.isalpha():
            yield left


def _in_base64(word: str) -> Iterator[bytes]:
    """The letters that a word has in base64 whatever stands around it."""
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + word.encode())
        first, after = (0, 2, 3)[before], (before + len(word)) * 8 // 6
        yield whole[first:after]


_PIECES = frozenset(
    word[first:after]
    for word in _RARE
    for first in range(len(word))
    for after in range(first + 2, len(word) + 1)
    if after - first < len(word)
)


class _Finder:
    """Looks for many words at once: by the four letters in the middle of each, in a table."""

    def __init__(self, needles: Iterable[bytes], *, bits: int = 5) -> None:
        self.bits = bits
        self.table = np.zeros(1 << (bits * _GRAM), dtype=bool)
        self.by_code: dict[int, list[tuple[int, bytes]]] = {}
        for needle in needles:
            at = (len(needle) - _GRAM) // 2
            code = int(self._codes(np.frombuffer(needle, np.uint8)[at : at + _GRAM])[0])
            self.table[code] = True
            self.by_code.setdefault(code, []).append((at, needle))

    def _codes(self, letters: NDArray[np.uint8]) -> NDArray[np.int32]:
        low = letters.astype(np.int32) & ((1 << self.bits) - 1)
        size = len(low) - _GRAM + 1
        codes = low[:size].copy()
        for place in range(1, _GRAM):
            codes <<= self.bits
            codes |= low[place : place + size]
        return codes

    def finds(self, text: bytes) -> bool:
        if len(text) < _GRAM:
            return False
        codes = self._codes(np.frombuffer(text, np.uint8))
        return any(
            text.startswith(needle, place - at)
            for place in np.flatnonzero(self.table[codes]).tolist()
            for at, needle in self.by_code[int(codes[place])]
            if place >= at
        )


def _steps(word: bytes, sign: int) -> bytes:
    """From letter to letter, around the alphabet: the same however far all letters are moved."""
    return bytes(sign * (after - before) % 26 for before, after in pairwise(word))


def _ways(word: str) -> tuple[list[int], ...]:
    """The numbers of a word's letters forwards and backwards, rising and falling."""
    codes = list(word.encode())
    return codes, codes[::-1], [-code for code in codes], [-code for code in codes[::-1]]


_WRITTEN_OUT = re.compile("|".join(WORDS).encode(), re.IGNORECASE)
_WRITTEN = _Finder(word.encode() for word in WORDS)
_EITHER_WAY = _Finder(way.encode() for word in WORDS for way in (word, word[::-1]))
_IN_BASE64 = _Finder(letters for word in WORDS for letters in _in_base64(word))
_WITHOUT_ONE = _Finder(left.encode() for word in _RARE for left in _changed(word))
_MOVED = _Finder(
    _steps(word.encode(), sign)
    for word in WORDS
    if word.isalpha() and len(word) > _LEAST_CHANGED
    for sign in (1, -1)
)


def _numbered(numbers: Sequence[int], change: Callable[[int, int], int]) -> bytes:
    """The steps from number to number: the same whatever was added to all, or with XOR, whatever the key."""
    return bytes(change(after, before) & 255 for before, after in pairwise(numbers))


_CODED = {
    change: re.compile(
        b"|".join(sorted({re.escape(_numbered(way, change)) for word in WORDS for way in _ways(word)})),
        re.DOTALL,
    )
    for change in (sub, xor)
}


def spelled(text: str, words: Collection[str], effort: Effort) -> int | None:
    """The line in which such a word is complete, if any; `words` are the words of the script."""
    if effort.over():
        return None
    text = text[:_LONGEST]
    if pieces := _cut_into(words):
        rows = enumerate(text.split("\n"), 1)
        return next((number for number, row in rows if not pieces.isdisjoint(plain_words(row))), 1)
    if not _spells(text):
        return None
    lines = text.split("\n")
    low, high = 1, len(lines)
    while low < high and not effort.over():  # what some lines spell, they spell with those after them, too
        middle = (low + high) // 2
        if _spells("\n".join(lines[:middle])):
            high = middle
        else:
            low = middle + 1
    return high


def _spells(text: str) -> bool:
    raw = text.encode("ascii", "replace")
    if b"[" in raw:
        raw = _SEARCHED.sub(rb"\1", raw)
    if _WRITTEN.finds(raw.lower()):  # what is written out is seen by others
        raw = _WRITTEN_OUT.sub(b" ", raw)
    low = raw.lower()
    *settings, last = low.split(b"=")
    values = _FILLED_IN.sub(b"", b"".join([*(part.rstrip(_NAME) for part in settings), last]))
    small = raw.translate(None, _NO_LETTERS)  # without capitals
    letters, values = low.translate(None, _MARKS), values.translate(None, _NO_LETTERS)
    return (
        _EITHER_WAY.finds(b" ".join([*_readings(low, letters), values, small]))
        or _WITHOUT_ONE.finds(b" ".join([values, small]))
        or _is_moved(letters.translate(None, _DIGITS))
        or _IN_BASE64.finds(raw)
        or _is_in_numbers(low)
    )


def _readings(low: bytes, letters: bytes) -> Iterator[bytes]:
    yield letters
    for step in (2, 3):
        yield from (letters[first::step] for first in range(step))
    words = low.translate(_WORDS_ONLY).split()
    yield bytes([word[0] for word in words])
    yield bytes([word[-1] for word in words])
    for word in words:
        if len(word) >= _LEAST_HEX and not word.isalpha() and _HEX.fullmatch(word):
            yield bytes.fromhex(word.decode())


def _is_moved(letters: bytes) -> bool:
    codes = np.frombuffer(letters, np.uint8).astype(np.int16)
    return _MOVED.finds(((codes[1:] - codes[:-1]) % 26).astype(np.uint8).tobytes())


def _is_in_numbers(low: bytes) -> bool:
    found = [each for each in low.translate(_NUMBERS_ONLY).split() if len(each) <= _MOST_BITS]
    rows = [([each for each in found if len(each) <= _GRAM], 10)]
    rows += [([each for each in found if 2 < len(each) <= _GRAM and not each.strip(b"01234567")], 8)]
    rows += [([each for each in found if len(each) >= _LEAST_BITS and not each.strip(b"01")], 2)]
    rows += [(_HEX_BYTE.findall(low), 16)]
    pairs = [each for each in low.translate(_WORDS_ONLY).split() if len(each) == 2]
    rows += [([each for each in pairs if _HEX_DIGITS.issuperset(each)], 16)]
    for each, base in rows:
        if len(each) > _GRAM:
            numbers = [int(one, base) for one in each[:_MOST_NUMBERS]]
            if any(known.search(_numbered(numbers, change)) for change, known in _CODED.items()):
                return True
    return False


def _cut_into(words: Collection[str]) -> frozenset[str]:
    """The rare words of the script that such a word can be cut into, wherever these stand."""
    known = _PIECES.intersection(words)
    if len(known) > 1 and (cut := next((word for word in _RARE if _is_cut(word, known)), None)):
        return frozenset(piece for piece in known - _ORDINARY if piece in cut)
    return frozenset()


def _is_cut(word: str, known: Collection[str]) -> bool:
    reached = {0: False}
    """The places that pieces lead to, with whether one of them is rare."""
    for after in range(2, len(word) + 1):
        ways = [
            reached[before] or word[before:after] not in _ORDINARY
            for before in range(after - 1)
            if before in reached and word[before:after] in known
        ]
        if ways:
            reached[after] = any(ways)
    return reached.get(len(word), False)
