"""What a job asks for, as rules need it: how many tasks, how large each is, and whether they may spread over more nodes."""

import re
from collections.abc import Mapping, Sequence

import polars as pl

from tocsin.limits.capacity import gpu_types
from tocsin.scripts.submission import Submission

__all__ = ["asked"]

_ABOVE_NAMES = r"[|()\[\]*,!]"
"""What a constraint has besides names and `&`."""


_FIELDS = (
    *("account", "qos", "group", "partition", "array", "constraints", "req_node_list", "exclude_nodes"),
    *("req_nodes", "req_cpus", "req_tasks", "cpus_per_task", "tasks_per_node", "req_memory", "req_gpus"),
    *("time_limit", "time_min"),
)


def asked(jobs: pl.DataFrame, submissions: Sequence[Submission | None], default: str | None) -> pl.DataFrame:
    """One row for each job and each of its partitions.

    Slurm puts `-n 64` on as many nodes as it takes, and its records then name one node and all the memory on it. So a job
    without a fixed number of nodes is held against the best way to spread it, never against that one node.
    """
    cpus = pl.coalesce(
        pl.col("cpus_per_task"),
        pl.when(pl.col("req_tasks") > 0).then(pl.col("req_cpus") // pl.col("req_tasks")),
    )
    frame = (
        jobs.select(_FIELDS)
        .with_row_index("row")
        .with_columns(
            fixed=pl.Series([None if s is None else s.fixed for s in submissions], dtype=pl.Boolean),
            per=pl.Series([None if s is None else s.memory_per for s in submissions], dtype=pl.String),
            partition=_several(pl.col("partition").fill_null(pl.lit(default, pl.String))),
            asked_nodes=pl.col("req_nodes").fill_null(1).clip(1).cast(pl.Float64),
            cpus=cpus.fill_null(1).clip(1).cast(pl.Float64),
            block=pl.when(pl.col("tasks_per_node") > 0).then(pl.col("tasks_per_node")).cast(pl.Float64),
            memory=pl.when(pl.col("req_memory") > 0).then(pl.col("req_memory")).cast(pl.Float64),
            gpus=pl.col("req_gpus").fill_null(0).clip(0).cast(pl.Float64),
            gpu_types=_read(jobs["req_gres"], {text: gpu_types(text) for text in _texts(jobs["req_gres"])}),
            needs=_read(jobs["constraints"], {text: _names(text) for text in _texts(jobs["constraints"])}),
            time=pl.coalesce("time_min", "time_limit"),
        )
        .with_columns(
            tasks=pl.min_horizontal(
                pl.coalesce(
                    pl.col("req_tasks").cast(pl.Float64), pl.col("req_cpus") // pl.col("cpus"), "asked_nodes"
                ),
                (pl.col("req_cpus") // pl.col("cpus")).clip(1),  # fewer than tasks where they share CPUs (-O)
            ).clip(1)
        )
        .with_columns(
            # one task cannot lie on two nodes, and a number of tasks on each node sets the number of nodes
            exact=(pl.col("per") == "node").fill_null(False)
            | pl.col("fixed").fill_null(False)
            | (pl.col("tasks") <= pl.col("asked_nodes"))
            | (pl.col("tasks") <= pl.col("asked_nodes") * pl.col("block")).fill_null(False),
            task_memory=pl.col("memory") * pl.col("asked_nodes") / pl.col("tasks"),
            block=pl.when(pl.col("block").is_not_null()).then(pl.min_horizontal("block", "tasks")),
        )
        .with_columns(
            nodes=pl.max_horizontal(
                pl.min_horizontal("asked_nodes", "tasks"), (pl.col("tasks") / pl.col("block")).ceil()
            )
        )
    )
    return frame.explode("partition", empty_as_null=True).with_columns(pl.col("partition").str.strip_chars())


def _several(partition: pl.Expr) -> pl.Expr:
    """`a,b` are two; a job waits in all and runs in one."""
    return partition.str.split(",")


def _texts(column: pl.Series) -> list[str]:
    return [text for text in column.unique().to_list() if text is not None]


def _read(column: pl.Series, values: Mapping[str, Sequence[str]]) -> pl.Expr:
    if not values:
        return pl.lit([], pl.List(pl.String))
    known = pl.Series([list(value) for value in values.values()], dtype=pl.List(pl.String))
    places = column.replace_strict(list(values), range(len(values)), default=None, return_dtype=pl.Int64)
    return pl.lit(known.gather(places)).fill_null([])


def _names(constraint: str) -> list[str]:
    """The features that a node must have, of a constraint that is plain: names, and `&` between them."""
    return [] if re.search(_ABOVE_NAMES, constraint) else [name for name in constraint.split("&") if name]
