"""Searches for many words at once in a text, whatever surrounds them."""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

__all__ = ["ManyWords"]

_FREQUENT = b"etaoinsrhldcumfpgwybvkxjqz"
"""Letters, the most frequent ones first."""
_RARITY = bytes(_FREQUENT.find(code) % (len(_FREQUENT) + 1) for code in range(256))
"""A number for each byte: the less frequent the letter, the higher; what is no letter is the rarest."""


class ManyWords:
    """Finds words of four and more bytes by their rarest four or five consecutive bytes, in one pass for all."""

    def __init__(self, words: Collection[bytes]) -> None:
        self._row = min(5, *map(len, words))
        self._table = np.zeros(1 << 16, dtype=bool)
        self._by_code: dict[int, list[tuple[int, bytes]]] = {}
        rarest = [_rarest(word, self._row) for word in words]
        rows = b"".join(word[at : at + self._row] for at, word in zip(rarest, words, strict=True))
        codes = _codes(rows, self._row)[:: self._row]
        self._table[codes] = True
        for at, word, code in zip(rarest, words, codes.tolist(), strict=True):
            self._by_code.setdefault(code, []).append((at, word))

    def are_in(self, text: bytes) -> bool:
        """Whether one of the words is in the text."""
        if len(text) < self._row:
            return False
        codes = _codes(text, self._row)
        places = self._table.take(codes).nonzero()[0]
        return any(
            text.startswith(word, place - at)
            for place, code in zip(places.tolist(), codes[places].tolist(), strict=True)
            for at, word in self._by_code[code]
            if place >= at
        )


def _rarest(word: bytes, row: int) -> int:
    """Where the rarest consecutive bytes of a word begin."""
    rarity = word.translate(_RARITY)
    return max(range(len(word) - row + 1), key=lambda at: sum(rarity[at : at + row]))


def _codes(text: bytes, row: int) -> NDArray[np.uint16]:
    """A number for each four or five consecutive bytes, from the low bits of each; those of letters differ."""
    low = (np.frombuffer(text, np.uint8) & np.uint8(31)).astype(np.uint16)
    pairs = low[:-1] << np.uint16(5)
    pairs |= low[1:]
    codes = pairs[:-2] << np.uint16(6)
    codes ^= pairs[2:]
    return codes if row == 4 else codes[:-1] ^ (low[4:] * np.uint16(2531))
