"""Actions on jobs: what policy may do, and the state of each action."""

from dataclasses import dataclass
from enum import StrEnum

from tocsin.core.fields import Instant
from tocsin.core.stages import Stage

__all__ = [
    "INTERVENTIONS",
    "IN_FORCE",
    "PEOPLE",
    "ActionKind",
    "ActionStatus",
    "Mode",
    "PlannedAction",
    "RecentAction",
]

PEOPLE = "people"
"""The detector of an action that a person asked for."""


class Mode(StrEnum):
    """How far policy may go."""

    ADVISE = "advise"
    """Verdicts only."""
    SHADOW = "shadow"
    """Actions are recorded but not carried out."""
    ACT = "act"


class ActionKind(StrEnum):
    """From the mildest to the most severe."""

    NOTIFY = "notify"
    COMMENT = "comment"
    LEASE = "lease"
    """The start of a pending job is delayed by a few minutes, repeatedly; it ends by itself."""
    HOLD = "hold"
    """An administrator's hold with an expiry: for misuse only."""
    CANCEL = "cancel"

    @property
    def severity(self) -> int:
        return list(ActionKind).index(self)


IN_FORCE = (ActionKind.LEASE, ActionKind.HOLD)
"""Actions that last until they are released."""
INTERVENTIONS = (ActionKind.LEASE, ActionKind.HOLD, ActionKind.CANCEL)
"""Actions after which the outcome of a job proves nothing."""


class ActionStatus(StrEnum):
    SHADOW = "shadow"
    """Would have been carried out; policy.mode is shadow."""
    CONTROL = "control"
    """Left alone on purpose, to measure live precision."""
    LIMITED = "limited"
    """Not carried out: a limit was reached."""
    PLANNED = "planned"
    DONE = "done"
    """Carried out; a lease or a hold is in force."""
    FAILED = "failed"
    EXPIRED = "expired"
    UNDONE = "undone"
    """Released by a person, or because its reason no longer holds."""
    OVER = "over"
    """The job started, ended or left the queue by itself."""

    @property
    def open(self) -> bool:
        """Whether there may be something left to do."""
        return self in (ActionStatus.PLANNED, ActionStatus.DONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAction:
    """What policy decides on one verdict; the store writes both together."""

    job: str
    kind: ActionKind
    status: ActionStatus
    at: Instant
    expires: Instant | None = None
    reason: str
    detector: str
    finding: str
    """The kind of the finding."""
    stage: Stage
    seq: int = 0
    user: str | None = None
    cause: str | None = None
    """The cause of the finding's case: dismissing the case ends the action."""


@dataclass(frozen=True, slots=True)
class RecentAction:
    """An action of the last hour that counts for the limits."""

    job: str
    user: str | None
    at: int
    finding: str
    """The kind of the finding."""
    shadow: bool
