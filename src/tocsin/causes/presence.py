"""Which of many pieces of text may occur in a long text, found in one pass over it."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

__all__ = ["Pieces"]

_LENGTH = 4
"""Bytes of a gram; a shorter piece can never be excluded."""
_BITS = 18
_MIX = np.uint32(0x9E3779B1)


class Pieces:
    """Pieces of text by their grams (every four consecutive bytes): a piece is not in a text that lacks one of them."""

    def __init__(self, pieces: Iterable[str]) -> None:
        known = sorted(pieces, key=lambda piece: len(piece.encode()) < _LENGTH)
        sizes = np.array([len(piece.encode()) for piece in known], dtype=np.int64)
        counts = sizes[sizes >= _LENGTH] - _LENGTH + 1
        self._long, self._short = known[: len(counts)], known[len(counts) :]
        self._starts = np.cumsum(counts) - counts
        # a gram that crosses the end of its piece is left out
        within = np.arange(counts.sum()) - np.repeat(self._starts, counts)
        places = within + np.repeat(np.cumsum(sizes[: len(counts)]) - sizes[: len(counts)], counts)
        self._grams = _grams("".join(self._long))[places] if len(counts) else np.empty(0, np.uint32)

    def possible(self, text: str) -> set[str]:
        """The pieces that may occur in the text, with few false positives."""
        found = set(self._short)
        if self._long:
            present = np.zeros(1 << _BITS, dtype=bool)
            present[_grams(text)] = True
            whole = np.logical_and.reduceat(present[self._grams], self._starts)
            found.update(self._long[place] for place in np.flatnonzero(whole))
        return found


def _grams(text: str) -> NDArray[np.uint32]:
    """The hash of each gram."""
    raw = np.frombuffer(text.encode("utf-8", "replace"), dtype=np.uint8)
    if len(raw) < _LENGTH:
        return np.empty(0, np.uint32)
    grams = raw[: 1 - _LENGTH].astype(np.uint32)
    for place in range(1, _LENGTH):
        grams = grams << np.uint32(8) | raw[place : len(raw) - _LENGTH + 1 + place]
    return (grams * _MIX) >> np.uint32(32 - _BITS)
