"""Windows in batches: of a fixed size, or of whole graphs that are padded to the size of the largest."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["PaddedGraphs", "graph_batches", "plain_batches"]

Numbers = NDArray[np.int64]

_MOST_PAIRS = 1 << 18  # pairs of CPUs in a batch: the memory of a message pass grows with them


class PaddedGraphs(NamedTuple):
    """How the windows of a batch are arranged in graphs of the same, padded size."""

    slots: Numbers
    """Graphs × size: the window in each slot; padding is window 0 without neighbours."""
    neighbours: NDArray[np.float32]
    """Graphs × size × size: one over the number of neighbours, or 0 for no neighbour."""
    places: Numbers
    """For each window, its position in the flattened graphs."""

    @classmethod
    def of(cls, graphs: Numbers) -> "PaddedGraphs":
        """From each window's graph number."""
        _, number, sizes = np.unique(graphs, return_inverse=True, return_counts=True)
        order = np.argsort(number, kind="stable")
        size, count = int(sizes.max()), len(sizes)
        first = np.repeat(np.cumsum(sizes) - sizes, sizes)
        places = np.empty(len(graphs), dtype=np.int64)
        places[order] = number[order] * size + np.arange(len(graphs)) - first
        slots = np.zeros(count * size, dtype=np.int64)
        slots[places] = np.arange(len(graphs))
        filled = np.arange(size) < sizes[:, None]
        pairs = filled[:, :, None] & filled[:, None, :] & ~np.eye(size, dtype=bool)
        share = 1 / np.maximum(sizes - 1, 1)
        return cls(slots.reshape(count, size), (pairs * share[:, None, None]).astype(np.float32), places)


def plain_batches(order: Numbers, size: int) -> Iterator[Numbers]:
    """Rows in this order, `size` at a time."""
    for first in range(0, len(order), size):
        yield order[first : first + size]


def graph_batches(order: Numbers, graphs: Numbers, size: int) -> Iterator[Numbers]:
    """Rows of whole graphs, about `size` at a time; graphs come in the order of their first row."""
    _, first, number = np.unique(graphs[order], return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))[number]
    ordered = order[np.argsort(rank, kind="stable")]
    sizes = np.bincount(rank)
    start = stop = widest = held = 0
    for count in sizes:
        most = max(widest, int(count))
        if stop > start and (stop - start + count > size or (held + 1) * most * most > _MOST_PAIRS):
            yield ordered[start:stop]
            start, held, most = stop, 0, int(count)
        stop, held, widest = stop + int(count), held + 1, most
    if stop > start:
        yield ordered[start:stop]
