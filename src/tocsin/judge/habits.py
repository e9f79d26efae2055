"""Hints of stolen credentials: a user who never ran an operation suddenly runs it many times."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tocsin.core.decision import Facts, HabitHint, Screened
from tocsin.core.verdict import SEEN_FROM, Finding, Level, Workload

__all__ = ["HABIT", "LATELY", "Habits"]

HABIT = "habit"
LATELY = 86_400
"""Seconds before a job that count as recent."""
LEAST_BEFORE = 20
"""Screened submissions that a user must have had before: a new user has no habits. Our choice."""
LEAST_LATELY = 5
"""Submissions within a day that count as a change: a single one is an experiment. Our choice, too."""


class Habits:
    """What users submitted before and in this batch. A change is reported once a day, by the job that shows it."""

    def __init__(self, facts: Facts, batch: Iterable[Screened]) -> None:
        self.found: list[HabitHint] = []
        self._given = {(h.cluster, h.user, h.operation, h.submit) for h in facts.hints}
        self._submissions: dict[tuple[str, str], dict[tuple[Any, ...], Screened]] = {}
        for one in (*batch, *facts.screened):  # a job's stored screening takes precedence
            self._submissions.setdefault((one.cluster, one.user), {})[one.submission] = one

    def findings(self, row: Mapping[str, Any], key: str, workload: Workload, detector: str) -> list[Finding]:
        # Allow-list entries make no difference: a thief may do what the user may.
        if not row["user"]:
            return []
        found = []
        for name in (name for name, p in workload.operations.items() if p >= SEEN_FROM):
            text = self._text(row, name)
            if text and not self._was_given(row, name):
                self.found.append(HabitHint(key, row["cluster"], row["user"], name, row["submit"]))
                found.append(
                    Finding(detector=detector, kind=HABIT, level=Level.WARNING, text=text, operation=name)
                )
        return found

    def _was_given(self, row: Mapping[str, Any], operation: str) -> bool:
        whose = (row["cluster"], row["user"], operation)
        if any((h.cluster, h.user, h.operation) == whose for h in self.found):
            return True
        return any(given[:3] == whose and given[3] >= row["submit"] - LATELY for given in self._given)

    def _text(self, row: Mapping[str, Any], operation: str) -> str | None:
        submissions = self._submissions.get((row["cluster"], row["user"]), {}).values()
        jobs = [one.submit for one in submissions if one.operations]
        runs = [one.submit for one in submissions if one.operations.get(operation, 0.0) >= SEEN_FROM]
        return habit_text(row["user"], operation, jobs=jobs, runs=runs, at=row["submit"])


def habit_text(user: str, operation: str, *, jobs: Sequence[int], runs: Sequence[int], at: int) -> str | None:
    """The finding's text if the change is clear at the instant `at` of the job at hand.

    `jobs` are the instants of the user's screened submissions, `runs` those of this operation, both including the job
    at hand. An array is one submission. Later submissions are not counted.
    """
    before = sum(submit < at - LATELY for submit in jobs)
    earlier = sum(submit < at - LATELY for submit in runs)
    lately = sum(at - LATELY <= submit <= at for submit in runs)
    if before < LEAST_BEFORE or earlier or lately < LEAST_LATELY:
        return None
    return (
        f"{user} had never run {operation} in {before:,} screened submissions, then ran it {lately:,} times "
        "within a day; the credentials may be stolen"
    )
