"""A job's usage in its first two minutes, from the samples of its nodes: known when it reaches the stage `early`."""

import polars as pl

from tocsin.core.fields import KEY, Part, fields_of
from tocsin.core.frames import SCHEMA, reached_at
from tocsin.core.stages import EARLY_SECONDS, Stage

__all__ = ["FIRST_METRICS", "first_metrics"]

FIRST_METRICS = fields_of(Part.FIRST_METRICS)
LEAST = 4
"""Minimum number of samples per node: a scrape every 30 s yields as many."""
_TOTALS = {
    "io_read": "first_read_bytes",
    "io_written": "first_written_bytes",
    "page_faults": "first_page_faults",
}
_SHARES = {"cpu_user": "first_cpu_user", "cpu_system": "first_cpu_system"}


def first_metrics(jobs: pl.DataFrame, samples: pl.DataFrame) -> pl.DataFrame:
    """The key and the first metrics of each of these jobs that reached `early` and has samples (`JOB_SAMPLES`).

    Samples carry Slurm's raw job id, and cover the second that ends at `at`: those after start + 120 s are not read.
    If some nodes of a job have no samples, the others represent them.
    """
    asked = jobs.select(
        *KEY, "start", "alloc_nodes",
        cpus=pl.coalesce("alloc_cpus", "req_cpus"),
        job=pl.coalesce("raw_id", "job_id").cast(pl.String),
        early=reached_at(Stage.EARLY),
    ).filter(pl.col("early").is_not_null())  # fmt: skip
    rates = [pl.col(name).mean() for name in (*_TOTALS, *_SHARES)]
    by_node = (
        asked.join(samples, on="job")
        .filter(pl.col("at") > pl.col("start"), pl.col("at") <= pl.col("early"))
        .sort("at")
        .group_by(*KEY, "node", "cpus", "alloc_nodes")
        .agg(
            *rates,
            first_memory=pl.col("memory").drop_nulls().last(),
            first_memory_peak=pl.col("memory").max(),
            count=pl.len(),
        )
        .filter(pl.col("count") >= LEAST)
    )
    nodes = pl.coalesce("alloc_nodes", pl.len()).first().clip(pl.len())

    def over_nodes(name: str) -> pl.Expr:
        """The mean of the nodes with samples, for all nodes."""
        return pl.col(name).mean() * nodes

    totals = [(over_nodes(name) * EARLY_SECONDS).alias(field) for name, field in _TOTALS.items()]
    shares = [(over_nodes(name) / pl.col("cpus").first()).alias(field) for name, field in _SHARES.items()]
    memory = [pl.col(name).max() for name in ("first_memory", "first_memory_peak")]
    found = by_node.group_by(KEY).agg(*totals, *shares, *memory)
    return found.select(*KEY, *(_typed(name) for name in FIRST_METRICS))


def _typed(name: str) -> pl.Expr:
    value = pl.when(pl.col(name).is_finite()).then(name)
    return (value.round() if SCHEMA[name] == pl.Int64 else value).cast(SCHEMA[name]).alias(name)
