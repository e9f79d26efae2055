"""What each job needs from nodes: tasks and their size, whether they may spread, and what every node must have."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl

from tocsin.core.errors import InputError
from tocsin.core.nodelist import count_nodes
from tocsin.limits.capacity import gpu_types
from tocsin.scripts.scheduler import Scheduler
from tocsin.scripts.slurm_values import gpu_count, gres_gpus, megabytes
from tocsin.scripts.submission import Submission

__all__ = ["demands"]

_OPERATORS = r"[|()\[\]*,!]"
"""Operators of a constraint besides `&`."""

_FIELDS = [
    *("job_id", "account", "qos", "group", "user", "partition", "array", "licenses", "reservation"),
    *("constraints", "req_node_list", "exclude_nodes", "time_limit", "time_min"),
    *("req_nodes", "req_cpus", "req_tasks", "cpus_per_task", "tasks_per_node", "req_memory", "req_gpus"),
]

_SHARED = pl.col("shared") > 0
# Built once: for one job, building these expressions took as long as computing them.
_STEPS: tuple[list[pl.Expr], ...] = (
    [
        pl.max_horizontal(
            pl.min_horizontal(
                pl.coalesce(
                    pl.col("req_tasks").cast(pl.Float64),
                    pl.col("req_cpus") // pl.col("cpus"),
                    "asked_nodes",
                ),
                # fewer than tasks if they share CPUs (-O)
                (pl.col("req_cpus") // pl.col("cpus")).clip(1),
            ).clip(1),
            pl.when(pl.col("req_tasks").is_null()).then(pl.col("asked_nodes")),
        ).alias("tasks")
    ],
    [
        pl.when(_SHARED).then(pl.col("asked_nodes")).otherwise(pl.col("tasks")).alias("tasks"),
        pl.when(~_SHARED).then(pl.col("block")).alias("block"),
    ],
    [
        # one task cannot span two nodes, and a number of tasks per node sets the number of nodes
        (
            (pl.col("per") == "node").fill_null(False)
            | pl.col("fixed").fill_null(False)
            | (pl.col("tasks") <= pl.col("asked_nodes"))
            | (pl.col("tasks") <= pl.col("asked_nodes") * pl.col("block")).fill_null(False)
        ).alias("exact"),
        (pl.col("memory") * pl.col("req_nodes").fill_null(1).clip(1) / pl.col("tasks")).alias("task_memory"),
    ],
    [
        pl.max_horizontal(
            pl.min_horizontal("asked_nodes", "tasks"), (pl.col("tasks") / pl.col("block")).ceil()
        ).alias("nodes")
    ],
)
_CPUS = (
    pl.coalesce(
        pl.col("cpus_per_task"),
        pl.when(pl.col("req_tasks") > 0).then(pl.col("req_cpus") // pl.col("req_tasks")),
    )
    .fill_null(1)
    .clip(1)
    .cast(pl.Float64)
)
_BLOCK = pl.when(pl.col("tasks_per_node") > 0).then(pl.col("tasks_per_node")).cast(pl.Float64)
_GPUS = pl.col("req_gpus").fill_null(0).clip(0).cast(pl.Float64)
_TIME = pl.coalesce("time_min", "time_limit")
_NODES = pl.col("req_nodes").fill_null(1).clip(1)


class _EachNode(NamedTuple):
    """What every node of the job must have; no field of a job record holds these."""

    each_cpus: int = 0
    each_gpus: int = 0
    tmp: int = 0
    sockets: int = 0
    cores: int = 0
    threads: int = 0
    socket_tasks: int = 0
    shared: int = 0
    """1 with -O: all tasks of a node share its CPUs, so any number of them fits."""


def demands(
    jobs: pl.DataFrame, submissions: Sequence[Submission | None], default: str | None
) -> pl.DataFrame:
    """One row for each job and each of its partitions.

    Slurm puts `-n 64` on as many nodes as needed, but its records name one node and all the memory on it. So a job
    without a fixed number of nodes is compared with the best way to spread it, never with that one node.
    """
    steps = _requested(
        jobs, submissions, default
    )  # lazy: for one job, each eager step would cost more than its work
    for columns in _STEPS:
        steps = steps.with_columns(columns)
    return (
        steps.explode("partition", empty_as_null=True)
        .with_columns(pl.col("partition").str.strip_chars())
        .collect()
    )


def _requested(
    jobs: pl.DataFrame, submissions: Sequence[Submission | None], default: str | None
) -> pl.LazyFrame:
    """One row for each job: its request in numbers, with defaults filled in and its partitions as a list."""
    each = {id(s): _each_node(s) for s in {id(s): s for s in submissions}.values()}  # most scripts come again
    needs = pl.DataFrame(
        [each[id(submission)] for submission in submissions],
        schema=dict.fromkeys(_EachNode._fields, pl.Float64),
        orient="row",
        strict=False,
    )
    per = pl.Series([None if s is None else s.memory_per for s in submissions], dtype=pl.String)
    return (
        pl.concat([jobs[_FIELDS], needs], how="horizontal")
        .lazy()
        .with_row_index("row")
        .with_columns(
            fixed=pl.Series([None if s is None else s.fixed for s in submissions], dtype=pl.Boolean),
            per=per,
            partition=pl.col("partition").fill_null(pl.lit(default, pl.String)).str.split(","),
            asked_nodes=pl.max_horizontal(_NODES, _listed(jobs, submissions)).cast(pl.Float64),
            cpus=_CPUS,
            block=_BLOCK,
            memory=pl.when((pl.col("req_memory") > 0) & (~_SHARED | (pl.lit(per) == "node")))
            .then(pl.col("req_memory"))
            .cast(pl.Float64),
            gpus=_GPUS,
            gpu_types=_mapped(jobs["req_gres"], {text: gpu_types(text) for text in _texts(jobs["req_gres"])}),
            needs=_mapped(jobs["constraints"], {text: _names(text) for text in _texts(jobs["constraints"])}),
            time=_TIME,
        )
    )


def _each_node(submission: Submission | None) -> _EachNode:
    if submission is None or submission.script.scheduler is not Scheduler.SLURM:
        return _EachNode()

    def number(option: str) -> int:
        given = submission.value(option)
        return int(given) if given.isdigit() else 0

    shape = [int(n) if n.isdigit() else 0 for n in submission.value("--extra-node-info").split(":")]
    sockets, cores, threads = (
        max(number(option), given)
        for option, given in zip(
            ("--sockets-per-node", "--cores-per-socket", "--threads-per-core"),
            [*shape, 0, 0, 0],
            strict=False,
        )
    )
    shared = submission.last("--overcommit") is not None
    # Slurm wants a CPU for each of a node's tasks, even if they may share them.
    cpus = max(number("--mincpus"), number("--ntasks-per-node") if shared else 0)
    found = _EachNode(cpus, 0, 0, sockets, cores, threads, number("--ntasks-per-socket"), int(shared))
    try:
        gpus = [
            reader(given) * factor
            for option, reader, factor in (
                ("--gres", gres_gpus, 1),
                ("--gpus-per-node", gpu_count, 1),
                ("--gpus-per-task", gpu_count, 1),
                ("--gpus-per-socket", gpu_count, max(sockets, 1)),
            )
            if (given := submission.value(option))
        ]
        tmp = megabytes(submission.value("--tmp") or "0")
        return found._replace(each_gpus=max(gpus, default=0), tmp=tmp)
    except InputError:
        return found  # reported as a refused option


def _listed(jobs: pl.DataFrame, submissions: Sequence[Submission | None]) -> pl.Expr:
    """How many nodes a job must have because it names them; known only before it is submitted."""
    counts = [0] * jobs.height
    for row, (names, submission) in enumerate(zip(jobs["req_node_list"], submissions, strict=True)):
        if names and submission is not None and not submission.fixed:
            try:
                counts[row] = count_nodes(names)
            except InputError:
                continue  # reported as a refused option
    return pl.lit(pl.Series(counts, dtype=pl.Int64))


def _texts(column: pl.Series) -> list[str]:
    return [text for text in column.unique().to_list() if text is not None]


def _mapped(column: pl.Series, values: Mapping[str, Sequence[str]]) -> pl.Expr:
    if not values:
        return pl.lit([], pl.List(pl.String))
    known = pl.Series([list(value) for value in values.values()], dtype=pl.List(pl.String))
    places = column.replace_strict(list(values), range(len(values)), default=None, return_dtype=pl.Int64)
    return pl.lit(known.gather(places)).fill_null([])


def _names(constraint: str) -> list[str]:
    """The features that every node must have, if the constraint is only names joined by `&`."""
    return [] if re.search(_OPERATORS, constraint) else [name for name in constraint.split("&") if name]
