"""Actions on jobs: planned with their verdict, changed step by step, with each step in the audit."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any

import polars as pl
import sqlalchemy as sa

from tocsin.core.actions import PEOPLE, ActionKind, ActionStatus, PlannedAction, RecentAction
from tocsin.core.errors import NotFound
from tocsin.core.fields import KEY
from tocsin.core.ids import JobKey, parse_key
from tocsin.core.units import format_instant
from tocsin.core.verdict import CaseStatus
from tocsin.store import audit, bulk, outbox
from tocsin.store.database import Store
from tocsin.store.outbox import Subscriptions
from tocsin.store.tables import NO_TASK, actions, cases, jobs

__all__ = [
    "BY_POLICY",
    "Action",
    "can_be_undone",
    "find",
    "list_actions",
    "mark_tasks",
    "note",
    "of_job",
    "open_actions",
    "open_clusters",
    "plan",
    "planned_on",
    "planned_since",
    "prepare_all",
    "settle",
    "started",
    "take_over",
]

BY_POLICY = "policy"
"""The audit's `who` for actions that nobody asked for."""
_NOT_COUNTED = [
    str(status)
    for status in (ActionStatus.CONTROL, ActionStatus.LIMITED, ActionStatus.FAILED, ActionStatus.UNDONE)
]
_AT_ONCE = 500
"""Jobs per query."""
_LASTING = [str(kind) for kind in (ActionKind.LEASE, ActionKind.HOLD)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    id: int
    job: JobKey
    kind: ActionKind
    status: ActionStatus
    at: int
    expires: int | None
    done: int | None
    ended: int | None
    stage: str
    seq: int
    detector: str
    finding: str
    reason: str
    user: str | None
    cause: str | None
    note: str
    before: dict[str, Any] = field(default_factory=dict)
    case: int | None = None
    dismissed: bool = False
    """Whether its case was dismissed."""

    def to_json(self) -> dict[str, Any]:
        instants = {
            name: None if (value := getattr(self, name)) is None else format_instant(value)
            for name in ("at", "expires", "done", "ended")
        }
        texts = {name: str(getattr(self, name)) for name in ("job", "kind", "status")}
        plain = ("stage", "detector", "finding", "reason", "user", "case", "note")
        return {"action": self.id, **texts, **instants, **{name: getattr(self, name) for name in plain}}


def plan(
    connection: sa.Connection,
    planned: PlannedAction,
    sinks: Subscriptions | None = None,
    *,
    who: str = BY_POLICY,
) -> bool:
    """Write an action unless the job has one of its kind; sinks get those that are not only recorded."""
    key = parse_key(planned.job)
    row = asdict(planned)
    row |= {name: str(row[name]) for name in ("kind", "status", "stage")}
    done = planned.at if planned.status is ActionStatus.DONE else None
    if not bulk.insert_new(
        connection, actions, {**row, "cluster": key.cluster, "done": done, "note": "", "before": {}}
    ):
        return False
    number = connection.execute(
        sa.select(actions.c.id).where(actions.c.job == planned.job, actions.c.kind == row["kind"])
    ).scalar_one()
    _audit(connection, number, key, f"{planned.kind} {planned.status}", planned.at, who, planned.reason)
    if sinks and planned.status.open:
        document = _one(connection, number).to_json()
        outbox.put(connection, sinks, kind="action", reference=str(number), document=document)
    return True


def take_over(connection: sa.Connection, planned: PlannedAction) -> None:
    """Make an action that policy only planned or recorded a person's own."""
    connection.execute(
        sa.update(actions)
        .where(
            actions.c.job == planned.job,
            actions.c.kind == str(planned.kind),
            actions.c.status != str(ActionStatus.DONE),
        )
        .values(detector=planned.detector, finding=planned.finding, reason=planned.reason, cause=None)
    )


def planned_since(connection: sa.Connection, since: int) -> list[RecentAction]:
    """The actions that count for limits: what policy itself planned or did, and nobody has taken back since."""
    query = (
        sa.select(actions.c.job, actions.c.user, actions.c.at, actions.c.finding, actions.c.status)
        .select_from(actions.outerjoin(cases, cases.c.cause == actions.c.cause))
        .where(
            actions.c.at > since,
            actions.c.kind != str(ActionKind.NOTIFY),
            actions.c.detector != PEOPLE,
            actions.c.status.not_in(_NOT_COUNTED),
            sa.func.coalesce(cases.c.status, "") != str(CaseStatus.DISMISSED),
        )
    )
    return [
        RecentAction(row.job, row.user, row.at, row.finding, row.status == str(ActionStatus.SHADOW))
        for row in connection.execute(query)
    ]


def open_actions(store: Store, cluster: str) -> list[Action]:
    """The actions of a cluster that are to be carried out, or to be released some day, oldest first."""
    return list_actions(store, actions.c.cluster == cluster, _unfinished())


def _unfinished() -> sa.ColumnElement[bool]:
    planned = actions.c.status == str(ActionStatus.PLANNED)
    return sa.or_(planned, sa.and_(actions.c.status == str(ActionStatus.DONE), actions.c.kind.in_(_LASTING)))


def can_be_undone() -> sa.ColumnElement[bool]:
    """Planned, or in force; a message that was sent and a job that was cancelled are neither."""
    over = actions.c.kind.in_([str(ActionKind.NOTIFY), str(ActionKind.CANCEL)])
    planned = actions.c.status == str(ActionStatus.PLANNED)
    return sa.or_(planned, sa.and_(actions.c.status == str(ActionStatus.DONE), sa.not_(over)))


def planned_on(store: Store, jobs: Collection[str]) -> list[Action]:
    """The actions on these jobs that are to be carried out, oldest first."""
    return list_actions(store, actions.c.status == str(ActionStatus.PLANNED), keys=jobs)


def open_clusters(store: Store) -> list[str]:
    """The clusters with such actions."""
    query = sa.select(actions.c.cluster).where(_unfinished()).distinct()
    with store.reading() as connection:
        return sorted(connection.execute(query).scalars())


def list_actions(
    store: Store,
    *conditions: sa.ColumnElement[bool],
    keys: Iterable[str] | None = None,
    limit: int | None = None,
) -> list[Action]:
    """Oldest first; with a limit, only the newest; with `keys`, only those on jobs with these keys, however many."""
    query = _select().where(*conditions).order_by(actions.c.id.desc()).limit(limit)
    with store.reading() as connection:
        if keys is not None:
            wanted = pl.DataFrame({"job": list(keys)}, schema={"job": pl.String})
            query = query.where(actions.c.job.in_(sa.select(bulk.stage(connection, actions, wanted).c.job)))
        return [_action(row) for row in reversed(connection.execute(query).all())]


def of_job(store: Store, key: JobKey) -> list[Action]:
    """The actions on one job."""
    return list_actions(store, actions.c.job == str(key))


def find(store: Store, number: int) -> Action:
    with store.reading() as connection:
        return _one(connection, number)


def started(store: Store, keys: Collection[JobKey]) -> set[JobKey]:
    """Which of these jobs are known to have started or ended; an array only ends, its tasks start."""
    wanted, found = sorted(keys, key=lambda key: (key.cluster, key.job_id)), set()
    with store.reading() as connection:
        for cluster, group in groupby(wanted, key=lambda key: key.cluster):
            numbers = [key.job_id for key in group]
            for ids in (numbers[at : at + _AT_ONCE] for at in range(0, len(numbers), _AT_ONCE)):
                query = sa.select(*(jobs.c[name] for name in KEY)).where(
                    jobs.c.cluster == cluster,
                    jobs.c.job_id.in_(ids),
                    sa.or_(
                        sa.and_(jobs.c.array.is_(None), jobs.c.start.is_not(None)),
                        jobs.c.outcome.is_not(None),
                    ),
                )
                found |= {JobKey(*row) for row in connection.execute(query)}
    return {key for key in keys if key._replace(task=NO_TASK if key.task is None else key.task) in found}


def prepare_all(store: Store, wanted: Sequence[Action]) -> None:
    """Store what these actions will change, as it was `before`, so that it can be restored after a kill."""
    with store.writing() as connection:
        for action in wanted:
            connection.execute(
                sa.update(actions).where(actions.c.id == action.id).values(before=action.before)
            )


def note(store: Store, action: Action, text: str) -> None:
    """Record why it could not be done so far."""
    if text != action.note:
        with store.writing() as connection:
            connection.execute(sa.update(actions).where(actions.c.id == action.id).values(note=text))


def settle(
    store: Store,
    action: Action,
    status: ActionStatus,
    *,
    at: int,
    text: str = "",
    who: str = BY_POLICY,
    intervened: bool = False,
) -> bool:
    """Change the status, unless somebody else has meanwhile; with `intervened`, the job is marked so."""
    times = {"done": at} if status is ActionStatus.DONE else {"ended": at}
    with store.writing() as connection:
        changed = connection.execute(
            sa.update(actions)
            .where(actions.c.id == action.id, actions.c.status == str(action.status))
            .values(status=str(status), note=text, **times),
            execution_options={"preserve_rowcount": True},
        ).rowcount
        if changed:
            what = f"{action.kind} {status}"
            _audit(connection, action.id, action.job, what, at, who, text or action.reason)
            if intervened:
                _mark(connection, action.job, at)
    return bool(changed)


def mark_tasks(store: Store, cluster: str, since: int) -> None:
    """Mark the tasks that an array's action delayed and that have got records of their own since."""
    query = sa.select(actions.c.job, actions.c.done).where(
        actions.c.cluster == cluster, actions.c.done >= since, actions.c.kind.in_([*_LASTING, "cancel"])
    )
    with store.reading() as connection:
        found = [(parse_key(row.job), row.done) for row in connection.execute(query)]
    arrays = [(key, done) for key, done in found if key.task is None]
    if arrays:
        with store.writing() as connection:
            for key, done in arrays:
                _mark(connection, key, done)


def _mark(connection: sa.Connection, key: JobKey, at: int) -> None:
    """Mark a job as delayed or cancelled by us; for an array, the tasks that had not started then."""
    same = [jobs.c.cluster == key.cluster, jobs.c.job_id == key.job_id, jobs.c.intervened.is_not(sa.true())]
    if key.task is not None:
        same += [jobs.c.task == key.task, jobs.c.submit == key.submit]
    else:
        started = sa.and_(jobs.c.task != NO_TASK, jobs.c.start < at)
        same += [jobs.c.submit >= key.submit, sa.not_(sa.func.coalesce(started, False))]
    connection.execute(sa.update(jobs).where(*same).values(intervened=True))


def _audit(
    connection: sa.Connection, number: int, job: JobKey, what: str, at: int, who: str, text: str
) -> None:
    detail = {"action": number, "text": text}
    audit.write(connection, audit.Entry(at=at, who=who, what=what, job=job, detail=detail))


def _select() -> sa.Select[Any]:
    joined = actions.outerjoin(cases, cases.c.cause == actions.c.cause)
    return sa.select(actions, cases.c.id.label("case"), cases.c.status.label("answer")).select_from(joined)


def _one(connection: sa.Connection, number: int) -> Action:
    row = connection.execute(_select().where(actions.c.id == number)).first()
    if row is None:
        raise NotFound(f"no action {number}; list them with: tocsin actions --all")
    return _action(row)


def _action(row: sa.Row[Any]) -> Action:
    values = {name: value for name, value in row._mapping.items() if name not in ("cluster", "answer")}
    kind, status = ActionKind(row.kind), ActionStatus(row.status)
    dismissed = row.answer == str(CaseStatus.DISMISSED)
    return Action(
        **{**values, "job": parse_key(row.job), "kind": kind, "status": status, "dismissed": dismissed}
    )
