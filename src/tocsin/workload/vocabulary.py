"""The n-grams that a model knows: maps the lines of scripts to columns."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.workload.lexical import BITS, grams

__all__ = ["Known", "Vocabulary"]

_PLACES = 21
_REST = np.uint64(BITS - _PLACES)
_MARK = np.uint64((1 << (BITS - _PLACES)) - 1)
_CHUNK = 1 << 16
"""Characters at a time: n-grams of more do not fit into a core's cache, and those of a long script not into memory."""


class Known(NamedTuple):
    """Which known n-grams occur in which line, with repetitions."""

    columns: NDArray[np.int64]
    lines: NDArray[np.int64]

    def without(self, lines: NDArray[np.bool_]) -> "Known":
        """The n-grams of the other lines."""
        kept = ~lines[self.lines]
        return Known(self.columns[kept], self.lines[kept])


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """N-grams by their hashes, in ascending order; the index of a hash is its column."""

    keys: NDArray[np.uint64]
    _table: NDArray[np.int32] = field(init=False, repr=False)
    _marks: NDArray[np.uint16] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # of two keys in one slot, the later is found, the same in training and in use
        table = np.full(1 << _PLACES, -1, dtype=np.int32)
        table[(self.keys >> _REST).astype(np.int64)] = np.arange(len(self.keys), dtype=np.int32)
        object.__setattr__(self, "_table", table)
        object.__setattr__(self, "_marks", (self.keys & _MARK).astype(np.uint16))

    def __len__(self) -> int:
        return len(self.keys)

    def find(self, lines: Sequence[str]) -> Known:
        """The known n-grams of each line."""
        columns, numbers = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for first, last in _chunks(lines):
            found = grams(lines[first:last])
            places = self._table.take((found.hashes >> _REST).view(np.int64))
            seen = np.flatnonzero(places >= 0)
            hits = places.take(seen)
            same = self._marks.take(hits) == (found.hashes.take(seen) & _MARK).astype(np.uint16)
            columns.append(hits[same].astype(np.int64))
            numbers.append(found.lines.take(seen[same]).astype(np.int64) + first)
        return Known(np.concatenate(columns), np.concatenate(numbers))


def _chunks(lines: Sequence[str]) -> list[tuple[int, int]]:
    bounds, size = [0], 0
    for number, line in enumerate(lines):
        if size and size + len(line) > _CHUNK:
            bounds.append(number)
            size = 0
        size += len(line) + 1
    return list(zip(bounds, [*bounds[1:], len(lines)], strict=True)) if lines else []
