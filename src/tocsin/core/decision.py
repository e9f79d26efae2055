"""A decision on jobs, which the store writes in one transaction, and the facts that it is based on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tocsin.core.actions import PlannedAction, RecentAction
from tocsin.core.ids import parse_key
from tocsin.core.verdict import CaseReference, CaseStatus, Verdict

__all__ = ["Decision", "Facts", "FactsRequest", "HabitHint", "KnownCase", "NewCase", "Screened"]


@dataclass(frozen=True, slots=True)
class Screened:
    """The operations of a job by its script: {operation: probability}, empty if the script could not be read."""

    job: str
    cluster: str
    user: str
    submit: int
    operations: dict[str, float]

    @property
    def submission(self) -> tuple[Any, ...]:
        """The same for all tasks of an array."""
        key = parse_key(self.job)
        return key.cluster, key.job_id, key.task is not None, key.submit


@dataclass(frozen=True, slots=True)
class HabitHint:
    """A finding that a user suddenly runs an operation, made once a day."""

    job: str
    cluster: str
    user: str
    operation: str
    submit: int


@dataclass(frozen=True, slots=True)
class NewCase:
    cause: str
    """The same for all jobs that show the same cause."""
    job: str
    opened: int
    document: dict[str, Any]
    group: str | None = None
    """Shared by the cases of several scripts of one user; sinks get only the first of them that is open."""


@dataclass(frozen=True, slots=True)
class KnownCase:
    """A case with its last answer."""

    reference: CaseReference
    script: str | None = None
    job: str | None = None
    """The job that opened it."""
    operations: tuple[str, ...] = ()

    @property
    def status(self) -> CaseStatus:
        return self.reference.status


@dataclass(frozen=True, slots=True)
class FactsRequest:
    """Which stored facts matter for some jobs."""

    users: frozenset[tuple[str, str]] = frozenset()
    """(cluster, user) of jobs with an operation."""
    first: int = 0
    last: int = 0
    """The first and last submission among them."""
    cases: bool = False
    jobs: tuple[str, ...] = ()
    """Jobs whose earlier verdicts are wanted, to explain one."""
    actions_since: int | None = None
    """The time from which planned actions are wanted, for the limits of the policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the store knew before a decision."""

    cases: Mapping[str, KnownCase] = field(default_factory=dict)
    """By cause."""
    screened: Sequence[Screened] = ()
    """Earlier submissions of the users asked for."""
    hints: Sequence[HabitHint] = ()
    verdicts: Sequence[Verdict] = ()
    actions: Sequence[RecentAction] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Must be written as a whole, or not at all."""

    verdicts: list[Verdict] = field(default_factory=list)
    screenings: list[Screened] = field(default_factory=list)
    cases: list[NewCase] = field(default_factory=list)
    hints: list[HabitHint] = field(default_factory=list)
    actions: list[PlannedAction] = field(default_factory=list)
