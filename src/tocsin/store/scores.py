"""Scores of live jobs: by models in use, from their verdicts, and by challengers, from a table of scores."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

import polars as pl
import sqlalchemy as sa

from tocsin.core.stages import Stage
from tocsin.store.database import Store
from tocsin.store.tables import challenger_scores, verdicts

__all__ = ["SCORES", "Score", "forget", "keep", "last_verdict", "of_challengers", "of_verdicts"]

SCORES = pl.Schema(
    {
        "job": pl.String(),
        "stage": pl.String(),
        "version": pl.String(),
        "at": pl.Int64(),
        "target": pl.String(),
        "probability": pl.Float64(),
        "threshold": pl.Float64(),
    }
)


@dataclass(frozen=True, slots=True)
class Score:
    """The probability that a challenger gave to a job at a stage."""

    job: str
    stage: Stage
    detector: str
    version: str
    at: int
    probability: float
    threshold: float


def keep(store: Store, scores: Sequence[Score]) -> None:
    """Store them; a job that was scored before keeps its first score."""
    if not scores:
        return
    into = import_module(f"sqlalchemy.dialects.{store.engine.dialect.name}").insert
    rows = [{**asdict(score), "stage": str(score.stage)} for score in scores]
    with store.writing() as connection:
        connection.execute(into(challenger_scores).on_conflict_do_nothing(), rows)


def forget(store: Store, *, before: int) -> None:
    """Delete the scores of challengers from before an instant."""
    with store.writing() as connection:
        connection.execute(sa.delete(challenger_scores).where(challenger_scores.c.at < before))


def of_challengers(store: Store, cluster: str, *, detector: str, since: int) -> pl.DataFrame:
    """Columns as in SCORES; a challenger has the target of the model in use."""
    table = challenger_scores
    columns: list[sa.ColumnElement[Any]] = [
        sa.null().label(name) if name == "target" else table.c[name] for name in SCORES.names()
    ]
    query = sa.select(*columns).where(
        table.c.detector == detector,
        table.c.at >= since,
        table.c.job.startswith(f"{cluster}:", autoescape=True),
    )
    return _frame(store, query)


def of_verdicts(store: Store, cluster: str, *, detector: str, since: int) -> pl.DataFrame:
    """The probability of failure in each verdict of the detector's models; columns as in SCORES."""
    document = verdicts.c.document
    probability = document[("failure", "probability")].as_float()
    query = sa.select(
        verdicts.c.job,
        verdicts.c.stage,
        document[("models", detector)].as_string().label("version"),
        verdicts.c.at,
        document[("failure", "target")].as_string().label("target"),
        probability.label("probability"),
        document[("failure", "threshold")].as_float().label("threshold"),
    ).where(
        verdicts.c.at >= since,
        verdicts.c.job.startswith(f"{cluster}:", autoescape=True),
        probability.is_not(None),
    )
    return _frame(store, query)


def last_verdict(store: Store, cluster: str) -> int | None:
    """When the last verdict on a job of this cluster was given."""
    query = (
        sa.select(verdicts.c.at)
        .where(verdicts.c.job.startswith(f"{cluster}:", autoescape=True))
        .order_by(verdicts.c.at.desc())
        .limit(1)
    )
    with store.reading() as connection:
        return connection.execute(query).scalar()


def _frame(store: Store, query: sa.Select[Any]) -> pl.DataFrame:
    with store.reading() as connection:
        return pl.DataFrame([tuple(row) for row in connection.execute(query)], schema=SCORES, orient="row")
