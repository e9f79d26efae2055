"""Jobs whose traces people confirmed as bad, by name: rows of the audit trail, each with its windows in a file.

The windows are kept beyond the retention of traces: where a region lies depends on the model, so a new version needs
them to compute it again.
"""

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import sqlalchemy as sa

from tocsin.core.errors import NotFound, StoreError
from tocsin.core.ids import JobKey
from tocsin.core.units import format_instant
from tocsin.core.verdict import CaseStatus
from tocsin.store.database import Store
from tocsin.store.scriptfiles import save_file
from tocsin.store.tables import audit as trail
from tocsin.store.tables import cases, feedback

__all__ = [
    "Confirmed",
    "confirm",
    "confirmed_anomalies",
    "dismiss",
    "examples",
    "last_answer",
    "list_confirmed",
]

_CONFIRMED, _DISMISSED = "trace region confirmed", "trace region dismissed"
_DETECTOR = "traces"


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """A person's answer that the windows of a job were bad, and of which kind."""

    number: int
    name: str
    job: str
    at: int
    who: str
    note: str
    model: str
    """The version in whose embeddings `centroid` and `radius` are given."""
    centroid: tuple[float, ...]
    radius: float
    quantile: float
    windows: int
    examples: str
    """SHA-256 of the file of its windows."""

    def to_json(self) -> dict[str, Any]:
        names = ("number", "name", "job", "who", "note", "model", "radius", "quantile", "windows")
        return {**{name: getattr(self, name) for name in names}, "at": format_instant(self.at)}


def confirm(
    store: Store,
    folder: Path,
    *,
    job: JobKey,
    name: str,
    windows: pl.DataFrame,
    detail: dict[str, Any],
    who: str,
    at: int,
    note: str = "",
) -> Confirmed:
    """Store the answer and its windows; `detail` has model, centroid, radius, quantile and windows (their number)."""
    content = io.BytesIO()
    windows.write_parquet(content, compression="zstd")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest = save_file(folder, content.getvalue())
    row = {"name": name, "note": note, **detail, "examples": digest}
    with store.writing() as connection:
        new = sa.insert(trail).values(at=at, who=who, what=_CONFIRMED, job=str(job), detail=row)
        number = connection.execute(new.returning(trail.c.id)).scalar_one()
    return _confirmed(number, at, who, str(job), row)


def dismiss(store: Store, number: int, *, who: str, at: int, note: str = "") -> Confirmed:
    """Dismiss a confirmed region; both answers stay in the audit trail."""
    with store.writing() as connection:
        in_force = {each.number: each for each in _in_force(connection)}
        if number not in in_force:
            known = ", ".join(map(str, in_force)) or "there are none"
            raise NotFound(f"no confirmed region {number} (regions: {known}); see: tocsin traces regions")
        detail = {"region": number, "name": in_force[number].name, "note": note}
        row = {"at": at, "who": who, "what": _DISMISSED, "job": in_force[number].job, "detail": detail}
        connection.execute(sa.insert(trail).values(**row))
    return in_force[number]


def list_confirmed(store: Store) -> list[Confirmed]:
    """The regions that were not dismissed, oldest first."""
    with store.reading() as connection:
        return _in_force(connection)


def last_answer(store: Store) -> int:
    """A number that grows whenever a region is confirmed or dismissed."""
    query = sa.select(sa.func.max(trail.c.id)).where(trail.c.what.in_((_CONFIRMED, _DISMISSED)))
    with store.reading() as connection:
        return connection.execute(query).scalar() or 0


def examples(folder: Path, digest: str) -> pl.DataFrame:
    """The windows of a confirmed job, as they were when it was confirmed."""
    path = folder / digest
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StoreError(
            f"the windows of a confirmed job cannot be read: {path} ({error.strerror})"
        ) from None
    if hashlib.sha256(content).hexdigest() != digest:
        raise StoreError(f"{path} was changed after it was written; restore it from a backup")
    return pl.read_parquet(io.BytesIO(content))


def confirmed_anomalies(store: Store, since: int, until: int) -> list[str]:
    """The jobs whose traces were confirmed as anomalous at `since` or later but before `until`, and still are.

    Confirmed by `traces diagnose --confirm`, or by the answer to a case that a trace opened.
    """
    answered = (
        sa.select(cases.c.job)
        .join_from(cases, feedback, feedback.c.case == cases.c.id)
        .where(
            cases.c.cause.startswith(f"{_DETECTOR}:"),
            cases.c.status == str(CaseStatus.CONFIRMED),
            feedback.c.answer == str(CaseStatus.CONFIRMED),
            feedback.c.at >= since,
            feedback.c.at < until,
        )
    )
    with store.reading() as connection:
        jobs = {each.job for each in _in_force(connection) if since <= each.at < until}
        jobs.update(connection.execute(answered).scalars())
    return sorted(jobs)


def _in_force(connection: sa.Connection) -> list[Confirmed]:
    query = sa.select(trail).where(trail.c.what.in_((_CONFIRMED, _DISMISSED))).order_by(trail.c.id)
    found: dict[int, Confirmed] = {}
    for row in connection.execute(query):
        if row.what == _DISMISSED:
            found.pop(row.detail["region"], None)
        else:
            found[row.id] = _confirmed(row.id, row.at, row.who, row.job, row.detail)
    return list(found.values())


def _confirmed(number: int, at: int, who: str, job: str, detail: dict[str, Any]) -> Confirmed:
    values = {**detail, "centroid": tuple(detail["centroid"])}
    return Confirmed(number=number, at=at, who=who, job=job, **values)
