"""The peak memory of a step on one node, from what Slurm records: the largest task, and the sum over all tasks.

The node of the largest task is assumed to have a full share of the step's tasks, the others being alike. On one node,
that is the sum itself. Steps that run at the same time are not added up.
"""

import polars as pl

__all__ = ["memory_on_node", "memory_on_node_of"]

_MOST = 2**52  # products of larger amounts could overflow


def memory_on_node(
    largest: int | None, total: int | None, tasks: int | None, nodes: int | None
) -> int | None:
    """Bytes; None if nothing was measured (0: the step ended before the first sample)."""
    largest = largest or 0
    if not total:
        share = -(-tasks // max(nodes or 1, 1)) if tasks else 1
        return (largest * share if largest < _MOST and share < 2**10 else largest) or None
    if total >= _MOST or not tasks or tasks < 2:
        return max(largest, -(-total // max(nodes or 1, 1)))
    others = min(-(-tasks // max(nodes or 1, 1)), tasks, 2**10) - 1
    return largest + -(-others * max(total - largest, 0) // (tasks - 1)) or None


def memory_on_node_of(largest: pl.Expr, total: pl.Expr, tasks: pl.Expr, nodes: pl.Expr) -> pl.Expr:
    """`memory_on_node` for columns."""
    largest, on = largest.fill_null(0), pl.max_horizontal(nodes.fill_null(1), 1)
    share = pl.when(tasks > 0).then((tasks + on - 1) // on).otherwise(1)
    small = (largest < _MOST) & (share < 2**10)
    without = pl.when(small).then(largest * share).otherwise(largest)
    rest = pl.max_horizontal(total - largest, 0)
    others = pl.min_horizontal(share, tasks, 2**10) - 1
    spread = largest + (others * rest + tasks - 2) // (tasks - 1)
    even = pl.max_horizontal(largest, (total + on - 1) // on)
    found = (
        pl.when((total > 0).fill_null(False))
        .then(pl.when((total < _MOST) & (tasks > 1).fill_null(False)).then(spread).otherwise(even))
        .otherwise(without)
    )
    return pl.when(found > 0).then(found)
