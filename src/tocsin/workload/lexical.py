"""The lexical encoder: the byte and word n-grams in the commands of a script, hashed, with numpy alone."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["BITS", "Grams", "grams"]

BITS = 36
"""Bits of a hash: enough that n-grams of random text almost never collide with known ones."""
LENGTHS = (4, 5, 6)
"""Lengths of byte n-grams; none crosses the end of its line."""

_P = np.uint64(0x9E3779B97F4A7C15)  # odd, so it has an inverse modulo 2^64
_MIX = np.uint64(0xD6E8FEB86659FD93)
_SHIFT = np.uint64(64 - BITS)
_NEWLINE = 10


def _table() -> NDArray[np.uint8]:
    """Normalised bytes: lower case, every digit a 0."""
    table = np.arange(256, dtype=np.uint8)
    table[65:91] += 32
    table[48:58] = 48
    table[9] = 32
    return table


def _word_bytes() -> NDArray[np.bool_]:
    """Letters, digits, _ and everything beyond ASCII make words."""
    found = np.zeros(256, dtype=bool)
    for first, last in ((48, 58), (65, 91), (97, 123), (128, 256)):
        found[first:last] = True
    found[95] = True
    return found


_SPELLING = _table()
_VALUES = (np.arange(1, 257, dtype=np.uint64) * _MIX) ^ (
    np.arange(1, 257, dtype=np.uint64) * _P >> np.uint64(17)
)
_KINDS = np.arange(103, dtype=np.uint64) * _P
_POWERS = np.cumprod(np.full(64, _P, dtype=np.uint64))
_IN_WORD = _word_bytes()


class Grams(NamedTuple):
    """The n-grams of some scripts: the hash of each, and its line, counted across all scripts."""

    hashes: NDArray[np.uint64]
    lines: NDArray[np.int32]


def grams(lines: Sequence[str]) -> Grams:
    """All n-grams of these lines, including repetitions."""
    raw = np.frombuffer(("\n".join(lines) + "\n").encode("utf-8", "replace"), dtype=np.uint8)
    text = _SPELLING[raw]
    ends = np.flatnonzero(text == _NEWLINE)
    lengths = ends + 1
    lengths[1:] -= lengths[:-1].copy()
    line_of = np.repeat(np.arange(len(ends), dtype=np.int32), lengths)
    # bytes up to the end of the line, whose newline counts as one
    left = np.repeat(ends, lengths) - np.arange(len(text))
    values = _VALUES[text]
    found, where = [], []
    rolling = values
    for length in range(2, max(LENGTHS) + 1):
        rolling = rolling[:-1] * _P + values[length - 1 :]
        if length in LENGTHS:
            keep = np.flatnonzero(left[: len(rolling)] >= length - 1)
            found.append(_bucket(rolling[keep], length))
            where.append(line_of[keep])
    for hashes, places in _words(text, values, line_of):
        found.append(hashes)
        where.append(line_of[places])
    return Grams(np.concatenate(found), np.concatenate(where))


def _words(
    text: NDArray[np.uint8], values: NDArray[np.uint64], line_of: NDArray[np.int32]
) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64]]]:
    """Words, and pairs of words in one line, with the position where each begins."""
    inside = _IN_WORD[text]
    at = np.flatnonzero(inside)
    if not len(at):
        return
    bounds = np.concatenate(([0], np.flatnonzero(at[1:] - at[:-1] > 1) + 1, [len(at)]))  # in `at`
    starts = bounds[:-1]
    begins = at[starts]
    offset = at - np.repeat(begins, bounds[1:] - starts)
    words = np.add.reduceat(values[at] * _POWERS[np.minimum(offset, len(_POWERS) - 1)], starts)
    yield _bucket(words, 101), begins
    pairs = np.flatnonzero(line_of[begins[1:]] == line_of[begins[:-1]])
    yield (
        _bucket((words[pairs] ^ (words[pairs] >> np.uint64(29))) * _P + words[pairs + 1], 102),
        begins[pairs],
    )


def _bucket(hashes: NDArray[np.uint64], kind: int) -> NDArray[np.uint64]:
    """The final mixing of splitmix64, then its highest bits."""
    mixed: NDArray[np.uint64] = (hashes + _KINDS[kind]) * _MIX
    mixed ^= mixed >> np.uint64(32)
    mixed *= _MIX
    return mixed >> _SHIFT
