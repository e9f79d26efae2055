"""How jobs end, according to people who were asked: rows of the audit trail; the last one for a job counts."""

import sqlalchemy as sa

from tocsin.core.ids import JobKey
from tocsin.core.outcomes import Outcome
from tocsin.store import audit
from tocsin.store.database import Store
from tocsin.store.tables import audit as trail

__all__ = ["answers", "record"]

_WHAT = "outcome answered"


def record(store: Store, job: JobKey, outcome: Outcome, *, who: str, at: int, note: str = "") -> None:
    detail = {"outcome": str(outcome), "note": note}
    audit.append(store, audit.Entry(at=at, who=who, what=_WHAT, job=job, detail=detail))


def answers(store: Store) -> dict[str, tuple[Outcome, int]]:
    """For each job's key, the answer and its instant."""
    query = sa.select(trail.c.job, trail.c.detail, trail.c.at).where(trail.c.what == _WHAT)
    with store.reading() as connection:
        rows = connection.execute(query.order_by(trail.c.id)).all()
    return {job: (Outcome(detail["outcome"]), at) for job, detail, at in rows}
