"""Nightly runs: each has a row from its start on, so that a killed one is recognised."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from tocsin.core.fields import Instant
from tocsin.core.json_form import to_json
from tocsin.store.database import Store
from tocsin.store.tables import learning_runs

__all__ = ["LearningRun", "RunState", "begin", "end", "interrupt", "last_runs"]

_KEPT = 400


class RunState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    """Its process was killed; the next run continues what it had begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRun:
    id: int
    started: Instant
    ended: Instant | None = None
    who: str
    state: RunState
    outcomes: Sequence[dict[str, Any]] = field(default_factory=list)
    error: str = ""

    def to_json(self) -> dict[str, Any]:
        return {**to_json(self), "outcomes": list(self.outcomes)}


def begin(store: Store, *, who: str, at: int) -> int:
    """The number of a run that starts now; the oldest runs are deleted."""
    with store.writing() as connection:
        row = {"started": at, "who": who, "state": str(RunState.RUNNING), "outcomes": [], "error": ""}
        added = connection.execute(sa.insert(learning_runs).values(row))
        number = int(added.inserted_primary_key[0])  # type: ignore[index]  # one row was inserted
        connection.execute(sa.delete(learning_runs).where(learning_runs.c.id <= number - _KEPT))
    return number


def end(
    store: Store, number: int, state: RunState, *, at: int, outcomes: Sequence[Any] = (), error: str = ""
) -> None:
    changed = {"state": str(state), "ended": at, "outcomes": list(outcomes), "error": error}
    with store.writing() as connection:
        connection.execute(sa.update(learning_runs).where(learning_runs.c.id == number).values(changed))


def interrupt(store: Store) -> None:
    """Mark all running ones as interrupted. Call it only while no run can be active."""
    running = learning_runs.c.state == str(RunState.RUNNING)
    with store.writing() as connection:
        connection.execute(
            sa.update(learning_runs).where(running).values(state=str(RunState.INTERRUPTED), ended=None)
        )


def last_runs(store: Store, limit: int = 10) -> list[LearningRun]:
    """Newest first."""
    query = sa.select(learning_runs).order_by(learning_runs.c.id.desc()).limit(limit)
    with store.reading() as connection:
        rows: list[dict[str, Any]] = [dict(row) for row in connection.execute(query).mappings()]
    return [LearningRun(**{**row, "state": RunState(row["state"])}) for row in rows]
