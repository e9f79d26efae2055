"""A search for many words at once in a text, whatever stands around them."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

__all__ = ["ManyWords"]

_GRAM = 4
_BITS = 5


class ManyWords:
    """Looks for words of four and more bytes by the four in the middle of each, in a table: one pass for all of them."""

    def __init__(self, words: Iterable[bytes]) -> None:
        self._table = np.zeros(1 << (_BITS * _GRAM), dtype=bool)
        self._by_code: dict[int, list[tuple[int, bytes]]] = {}
        for word in words:
            at = (len(word) - _GRAM) // 2
            code = int(_codes(word[at : at + _GRAM])[0])
            self._table[code] = True
            self._by_code.setdefault(code, []).append((at, word))

    def are_in(self, text: bytes) -> bool:
        """Whether one of the words is in the text."""
        if len(text) < _GRAM:
            return False
        codes = _codes(text)
        return any(
            text.startswith(word, place - at)
            for place in np.flatnonzero(self._table[codes]).tolist()
            for at, word in self._by_code[int(codes[place])]
            if place >= at
        )


def _codes(text: bytes) -> NDArray[np.int32]:
    """A number for each four bytes in a row, of the five low bits of each; letters differ in these."""
    low = np.frombuffer(text, np.uint8).astype(np.int32) & ((1 << _BITS) - 1)
    size = len(low) - _GRAM + 1
    pairs = (low[:-1] << _BITS) | low[1:]
    return (pairs[:size] << (2 * _BITS)) | pairs[2 : 2 + size]
