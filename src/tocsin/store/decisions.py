"""Writes a Decision with its messages in one transaction, and loads the facts that the next one needs."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import sqlalchemy as sa

from tocsin.core.decision import Decision, Facts, FactsRequest, HabitHint, NewCase
from tocsin.core.verdict import CaseReference, Finding, Verdict, verdict_id
from tocsin.store import actions, cases, causes, outbox, screenings, verdicts
from tocsin.store.bulk import insert_new
from tocsin.store.database import Store
from tocsin.store.outbox import Subscriptions
from tocsin.store.tables import habit_hints
from tocsin.store.tables import screenings as screenings_table
from tocsin.store.tables import verdicts as verdicts_table

__all__ = ["load_facts", "record"]


def record(store: Store, decision: Decision, sinks: Subscriptions | None = None) -> list[Verdict]:
    """Store the decision; returns the new verdicts, with the numbers of their cases."""
    sinks = sinks or {}
    fresh = []
    with store.writing() as connection:
        if not store.embedded:
            # One writer at a time: rows become visible in the order of their ids, which readers rely on.
            connection.exec_driver_sql("LOCK TABLE verdicts IN SHARE ROW EXCLUSIVE MODE")
        numbers = {new.cause: _open_case(connection, new, sinks) for new in decision.cases}
        for verdict in decision.verdicts:
            numbered = _with_numbers(verdict, numbers) if numbers else verdict
            if not insert_new(connection, verdicts_table, verdicts.row(numbered)):
                continue
            fresh.append(numbered)
            if verdict.cause:
                causes.keep(connection, verdict.job, verdict.cause, verdict.at)
            if sinks:
                reference = verdict_id(verdict.job, verdict.stage, verdict.seq)
                outbox.put(
                    connection,
                    sinks,
                    kind="verdict",
                    reference=reference,
                    document=numbered.to_json(),
                )
        written = {(verdict.job, verdict.stage, verdict.seq) for verdict in fresh}
        for action in decision.actions:
            if (action.job, action.stage, action.seq) in written:
                actions.plan(connection, action, sinks)
        for screened in decision.screenings:
            insert_new(connection, screenings_table, asdict(screened))
        for hint in decision.hints:
            insert_new(connection, habit_hints, asdict(hint))
        if fresh:
            outbox.drop_oldest(connection, sinks)
    return fresh


def _open_case(connection: sa.Connection, new: NewCase, sinks: Subscriptions) -> int:
    """The number of the case with this cause: a new one, unless another process was faster."""
    announced = new.group is not None and cases.any_open(connection, new.group)
    number, opened = cases.open_case(connection, new)
    if opened and not announced:
        document = {"case": number, "cause": new.cause, "job": new.job, "opened": new.opened, **new.document}
        outbox.put(connection, sinks, kind="case", reference=str(number), document=document)
    return number


def _with_numbers(verdict: Verdict, numbers: Mapping[str, int]) -> Verdict:
    def numbered(case: CaseReference | None) -> CaseReference | None:
        return replace(case, number=numbers[case.cause]) if case and case.number is None else case

    def finding(one: Finding) -> Finding:
        return replace(one, case=numbered(one.case))

    rogue = replace(verdict.rogue, case=numbered(verdict.rogue.case)) if verdict.rogue else None
    return replace(verdict, findings=[finding(one) for one in verdict.findings], rogue=rogue)


def load_facts(store: Store, request: FactsRequest) -> Facts:
    """The stored facts that matter for these jobs."""
    if not (request.users or request.cases or request.jobs or request.actions_since is not None):
        return Facts()
    with store.reading() as connection:
        return Facts(
            cases=cases.known_cases(connection) if request.cases else {},
            screened=[
                one
                for cluster, user in sorted(request.users)
                for one in screenings.submissions(connection, cluster, user, until=request.last)
            ],
            hints=_hints(connection, request),
            verdicts=[one for job in request.jobs for one in verdicts.read(connection, job)],
            actions=[]
            if request.actions_since is None
            else actions.planned_since(connection, request.actions_since),
        )


def _hints(connection: sa.Connection, request: FactsRequest) -> list[HabitHint]:
    if not request.users:
        return []
    users = sorted({user for _, user in request.users})
    query = sa.select(habit_hints).where(habit_hints.c.user.in_(users), habit_hints.c.submit >= request.first)
    rows: list[dict[str, Any]] = [dict(row) for row in connection.execute(query).mappings()]
    return [HabitHint(**row) for row in rows if (row["cluster"], row["user"]) in request.users]
