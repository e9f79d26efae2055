"""Habits of users: who never ran an operation, and suddenly does many times."""

from collections.abc import Sequence

__all__ = ["LATELY", "LEAST_BEFORE", "LEAST_LATELY", "habit", "opening"]

LATELY = 86_400
"""Seconds before a job that count as now."""
LEAST_BEFORE = 20
"""Screened submissions that a user must have had before: of somebody new nothing is a change. Our choice; no paper has
one."""
LEAST_LATELY = 5
"""One submission of another kind is an experiment; so many within a day are a change. Our choice, too."""


def opening(user: str, operation: str) -> str:
    """How the sentence begins, whatever it counts."""
    return f"{user} never ran {operation} in "


def habit(user: str, operation: str, *, jobs: Sequence[int], runs: Sequence[int], at: int) -> str | None:
    """The sentence, from the job on that makes the change plain; to say it once is the caller's business.

    `jobs` are the instants of the user's screened submissions, `runs` of those that were this operation; that of the
    job at hand, `at`, is among both. An array is one submission, however many tasks it has: who submits one has done
    one thing. What came after it is not looked at.
    """
    before = sum(submit < at - LATELY for submit in jobs)
    earlier = sum(submit < at - LATELY for submit in runs)
    lately = sum(at - LATELY <= submit <= at for submit in runs)
    if before < LEAST_BEFORE or earlier or lately < LEAST_LATELY:
        return None
    return (
        f"{opening(user, operation)}{before:,} screened submissions, and did {lately:,} times within a day: "
        "are these credentials in other hands?"
    )
