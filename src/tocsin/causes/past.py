"""Advice for the next run of a program, from what ended its last runs. No model reads it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

from tocsin.causes.catalogue import Catalogue
from tocsin.causes.job_cause import FAILURES, by_outcome
from tocsin.core.outcomes import Outcome
from tocsin.core.verdict import UNKNOWN_CAUSE, Advice, Cause

__all__ = ["PastRun", "advice_of_runs"]

_AT_LEAST = 2
"""One failure may be chance."""
_COUNTED = FAILURES | {str(Outcome.COMPLETED)}
_FIELDS = {"memory": "req_memory", "walltime": "time_limit"}
"""The field of which a run requested too little, by the kind of cause."""


class PastRun(NamedTuple):
    """An ended run: how it ended, the cause if it was looked for, and what it had requested."""

    outcome: str
    cause: Cause | None
    req_memory: int | None = None
    time_limit: int | None = None


def advice_of_runs(
    job: Mapping[str, Any], runs: Sequence[PastRun], *, yours: bool, catalogue: Catalogue
) -> list[Advice]:
    """Advice if one cause ended at least half of these runs, and at least two.

    A run that had too little memory or time says nothing about a job that requests more.
    """
    counted = [run for run in runs if run.outcome in _COUNTED]
    kinds = Counter(kind for run in counted if (kind := _kind(run)) and not _requests_more(job, run, kind))
    if not kinds:
        return []
    kind, number = kinds.most_common(1)[0]
    if number < _AT_LEAST or 2 * number < len(counted) or kind not in catalogue.kinds:
        return []
    known = catalogue.kinds[kind]
    whose = "your" if yours else f"{job['user']}'s"
    why = f'{number} of {whose} last {len(counted)} runs of "{job["name"]}" ended by: {known.title}'
    return [Advice(change=known.advice, why=why, field=_FIELDS.get(kind))]


def _kind(run: PastRun) -> str | None:
    if run.cause and run.cause.kind != UNKNOWN_CAUSE:
        return run.cause.kind
    return by_outcome(run.outcome)


def _requests_more(job: Mapping[str, Any], run: PastRun, kind: str) -> bool:
    field = _FIELDS.get(kind)
    if field is None or job[field] is None or getattr(run, field) is None:
        return False
    return _amount(job[field]) > _amount(getattr(run, field))


def _amount(requested: int) -> float:
    """0 requests everything available."""
    return requested or inf
