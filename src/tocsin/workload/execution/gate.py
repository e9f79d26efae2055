"""The gate between a trained execution model and its use: is there enough evidence for an operation?

The labels come from the script classifier, so a model can repeat its mistakes or learn a coincidence (fifteen jobs
that died at once). The limits are our choice: a false accusation costs more than a missed one, which the script still
shows.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "LEAST_AGREEMENT",
    "LEAST_CONFIRMED",
    "LEAST_POSITIVE",
    "LEAST_PRECISION",
    "LEAST_SECONDS",
    "LEAST_USERS",
    "Gate",
    "gate",
    "lower_bound",
]

LEAST_SECONDS = 60
"""A job that ran for less has done nothing that shows what it is."""
LEAST_POSITIVE = 20
LEAST_USERS = 3
LEAST_OF_EACH_USER = 5
LEAST_PRECISION = 0.8
"""Lower end of the 95 % interval on the later jobs: 16 correct alarms of 16 reach it."""
LEAST_CONFIRMED = 5
LEAST_AGREEMENT = 0.9
_Z = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The figures behind the decision, for the card."""

    positive: int
    users: int
    """Users with at least 5 positive jobs."""
    alarms: int
    right: int
    precision_low: float
    answered: int
    """Later jobs with a label from a person, and how many of them the model agrees with."""
    confirmed: int
    agreed: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def refused(self) -> str | None:
        """Why the model may not be used for the operation, with the figure that is too low."""
        if self.positive < LEAST_POSITIVE:
            return f"{self.positive:,} positive jobs; at least {LEAST_POSITIVE} are needed"
        if self.users < LEAST_USERS:
            return (
                f"{self.users:,} users have {LEAST_OF_EACH_USER} or more positive jobs; "
                f"at least {LEAST_USERS} are needed"
            )
        if self.precision_low < LEAST_PRECISION:
            return (
                f"{self.right:,} of {self.alarms:,} alarms on later jobs were right (precision at least "
                f"{self.precision_low:.2f} with 95 % confidence); {LEAST_PRECISION} is needed"
            )
        if self.confirmed < LEAST_CONFIRMED:
            return (
                f"people confirmed {self.confirmed:,} of the later jobs; at least {LEAST_CONFIRMED} are needed, "
                "because the script classifier's labels are not proof (see: tocsin cases)"
            )
        if self.agreed < LEAST_AGREEMENT * self.answered:
            return (
                f"it agrees with people on {self.agreed:,} of {self.answered:,} later jobs; "
                f"{LEAST_AGREEMENT:.0%} is needed"
            )
        return None


def gate(
    label: NDArray[np.float64],
    users: Sequence[str | None],
    *,
    later: NDArray[np.int64],
    alarm: NDArray[np.bool_],
    answers: Sequence[bool | None],
) -> Gate:
    """The figures for one operation: labels, users and people's answers of all jobs, alarms on the later ones."""
    positive = label > 0
    count: dict[str, int] = {}
    for user, one in zip(users, positive.tolist(), strict=True):
        if one and user:
            count[user] = count.get(user, 0) + 1
    right = int((alarm & positive[later]).sum())
    asked = [
        (answer, rings)
        for row, rings in zip(later.tolist(), alarm.tolist(), strict=True)
        if (answer := answers[row]) is not None
    ]
    return Gate(
        positive=int(positive.sum()),
        users=sum(jobs >= LEAST_OF_EACH_USER for jobs in count.values()),
        alarms=int(alarm.sum()),
        right=right,
        precision_low=round(lower_bound(right, int(alarm.sum())), 4),
        answered=len(asked),
        confirmed=sum(answer for answer, _ in asked),
        agreed=sum(answer == rings for answer, rings in asked),
    )


def lower_bound(right: int, of: int) -> float:
    """Lower end of Wilson's 95 % interval of a share; 0 if nothing was counted."""
    if not of:
        return 0.0
    share, z2 = right / of, _Z * _Z
    middle = share + z2 / (2 * of)
    margin = _Z * sqrt(share * (1 - share) / of + z2 / (4 * of * of))
    return (middle - margin) / (1 + z2 / of)
