"""Concludes from detectors' answers and stored facts: one verdict per job, its screening, cases and actions. No I/O."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import polars as pl

from tocsin.core.decision import Decision, Facts, FactsRequest, Screened
from tocsin.core.fields import FIELDS
from tocsin.core.frames import key_text
from tocsin.core.ids import JobKey, parse_key
from tocsin.core.stages import Stage, reached_at
from tocsin.core.verdict import SEEN_FROM
from tocsin.judge.actions import planned_actions
from tocsin.judge.allow import AllowList
from tocsin.judge.answers import Answer
from tocsin.judge.cases import Cases
from tocsin.judge.draft import Draft
from tocsin.judge.habits import LATELY, Habits
from tocsin.judge.policy import NO_CASES, Policy

__all__ = ["conclude", "facts_request", "rows_at"]

_WHOSE = ("user", "account", "name")
"""Fields of a job that its verdicts repeat, so that an alarm can be read on its own."""


def facts_request(
    jobs: pl.DataFrame, answers: Sequence[Sequence[Answer]], *, verdicts: bool = False
) -> FactsRequest:
    """The stored facts that `conclude` needs for these answers."""
    numbers = [number for number, each in enumerate(answers) if _has_operation(each)]
    operating = [jobs.row(number, named=True) for number in numbers]
    submits = [job["submit"] for job in operating]
    keys = jobs.select(key_text()).to_series().to_list() if verdicts else []
    arrays = [str(key._replace(task=None)) for key in map(parse_key, keys) if key.task is not None]
    return FactsRequest(
        users=frozenset((job["cluster"], job["user"]) for job in operating if job["user"]),
        first=min(submits, default=0) - LATELY,
        last=max(submits, default=0),
        cases=verdicts
        or any(answer.parts.findings or answer.parts.workload for each in answers for answer in each),
        jobs=(*keys, *arrays),
    )


def _has_operation(answers: Sequence[Answer]) -> bool:
    workloads = [answer.parts.workload for answer in answers if answer.parts.workload]
    return any(p >= SEEN_FROM for workload in workloads for p in workload.operations.values())


def conclude(
    jobs: pl.DataFrame,
    answers: Sequence[Sequence[Answer]],
    *,
    stage: Stage,
    at: int,
    seq: Sequence[int] | None = None,
    late: Sequence[bool] | None = None,
    known_until: Sequence[int] | None = None,
    facts: Facts | None = None,
    allowed: AllowList | None = None,
    policy: Policy = NO_CASES,
    open_cases: bool = True,
) -> Decision:
    """The decision on these jobs from detectors' answers and stored facts alone; this does no I/O.

    Without `open_cases`, it must not be stored, and plans no action.
    """
    facts = facts or Facts()
    rows = rows_at(jobs, stage)
    keys = [str(JobKey(row["cluster"], row["job_id"], row["task"], row["submit"])) for row in rows]
    drafts = [Draft(each) for each in answers]
    screenings = [
        Screened(key, row["cluster"], row["user"] or "", row["submit"], workload.submission.operations)
        for key, row, draft in zip(keys, rows, drafts, strict=True)
        if allowed and (workload := draft.workload) and workload.submission
    ]
    habits = Habits(facts, screenings)
    cases = Cases(policy, dict(facts.cases), at, open_new=open_cases)
    for key, row, draft in zip(keys, rows, drafts, strict=True):
        if allowed and draft.workload:
            draft.check_permission(row, allowed)
            if stage is Stage.SUBMIT:
                draft.findings += habits.findings(row, key, draft.workload, draft.source["workload"])
        draft.findings = cases.consider(
            draft.findings, row, key, operations=draft.wrong, by_sign=draft.by_sign
        )
        draft.apply_case()
    verdicts = [
        draft.verdict(
            job=keys[number],
            stage=stage,
            seq=seq[number] if seq else 0,
            at=at,
            known_until=known_until[number] if known_until else _moment(rows[number], stage, at),
            late=late[number] if late else False,
            **{name: rows[number][name] for name in _WHOSE},
        )
        for number, draft in enumerate(drafts)
    ]
    actions = planned_actions(verdicts, rows, policy.actions, facts.actions) if open_cases else []
    return Decision(
        verdicts=verdicts, screenings=screenings, cases=cases.opened, hints=habits.found, actions=actions
    )


def rows_at(jobs: pl.DataFrame, stage: Stage) -> list[dict[str, Any]]:
    """The jobs as rows, without what becomes known only after the stage."""
    later = _later(stage)
    return [row | later for row in jobs.rows(named=True)]


@cache
def _later(stage: Stage) -> dict[str, None]:
    return {name: None for name, known in FIELDS.items() if not stage.knows(known.stage)}


def _moment(row: dict[str, Any], stage: Stage, at: int) -> int:
    instant = reached_at(stage, row["submit"], row["start"], row["end"])
    return at if instant is None else min(instant, at)
