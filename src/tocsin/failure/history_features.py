"""What was known of jobs at a stage: statistics of history and, from `start` on, how jobs ended lately on their nodes."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import polars as pl

from tocsin.core.detector import Known
from tocsin.core.frames import reached_at
from tocsin.core.stages import Stage
from tocsin.history import recipe
from tocsin.history.nodes import nodes_of
from tocsin.history.numbers import Numbers, numbers_of

__all__ = ["NODE_FEATURES", "history_features", "history_numbers", "nodes_by_job"]

NODE_FEATURES: Mapping[str, str] = MappingProxyType(
    {
        "nodes.failed_week": "share failed of the jobs that ended on its nodes in the last 7 days",
        "nodes.beyond": "failures beyond the expected number in the last 7 days on the worst of its nodes",
        "nodes.crashes": "crashes of its nodes in the last 7 days",
    }
)
"""Columns about the nodes that a job got, in words."""
_ALL = tuple(recipe.columns())


def history_features(
    jobs: pl.DataFrame, known: Known, *, stage: Stage, names: Sequence[str] | None = None
) -> pl.DataFrame:
    """One row per job, in order; by default, all columns that exist at the stage."""
    if stage is Stage.SUBMIT:
        return known.features(jobs, stage=stage, names=names)
    if names is None:
        return known.features(jobs, stage=stage).hstack(_nodes(jobs, known, stage))
    found = known.features(jobs, stage=stage, names=[name for name in names if name not in NODE_FEATURES])
    if found.width < len(names):
        found = found.hstack(_nodes(jobs, known, stage)).select(names)
    return found


def history_numbers(
    jobs: pl.DataFrame, known: Known, *, stage: Stage, names: Sequence[str] | None = None
) -> Numbers:
    """The same as an array."""
    if stage is Stage.SUBMIT:
        return numbers_of(known, jobs, stage=stage, names=_ALL if names is None else names)
    return Numbers.of(history_features(jobs, known, stage=stage, names=names))


def nodes_by_job(jobs: pl.DataFrame, stage: Stage) -> pl.DataFrame:
    """One row for each job that has reached the stage and each of its nodes: `row`, `at`, `node`."""
    texts = jobs["node_list"].drop_nulls().unique().to_list()
    lists = pl.DataFrame(
        {"node_list": texts, "node": [list(nodes_of(text)) for text in texts]},
        schema={"node_list": pl.String, "node": pl.List(pl.String)},
    )
    return (
        jobs.select("node_list", at=reached_at(stage))
        .with_row_index("row")
        .filter(pl.col("at").is_not_null())
        .join(lists, on="node_list", how="inner", maintain_order="left")
        .select("row", "at", "node")
        .explode("node", empty_as_null=True)
        .filter(pl.col("node").is_not_null())
    )


def _nodes(jobs: pl.DataFrame, known: Known, stage: Stage) -> pl.DataFrame:
    asked = nodes_by_job(jobs, stage)
    if not asked.height:
        return pl.DataFrame(schema=dict.fromkeys(NODE_FEATURES, pl.Float32)).clear(jobs.height)
    outcomes = asked.hstack(known.node_outcomes(asked)).group_by("row").agg(
        (pl.col("failed").sum() / pl.col("ended").sum()).fill_nan(None).alias("nodes.failed_week"),
        (pl.col("failed") - pl.col("expected")).max().alias("nodes.beyond"),
        pl.col("crashes").sum().alias("nodes.crashes"),
    )  # fmt: skip
    rows = pl.DataFrame({"row": pl.int_range(jobs.height, dtype=pl.UInt32, eager=True)})
    return rows.join(outcomes, on="row", how="left", maintain_order="left").select(
        pl.col(name).cast(pl.Float32) for name in NODE_FEATURES
    )
