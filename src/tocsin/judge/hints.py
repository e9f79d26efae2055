"""Hints of stolen credentials: the sudden change of a user, said once, by the verdict on the job that showed it."""

from collections.abc import Mapping, Sequence
from typing import Any

from tocsin.core.verdict import SEEN_FROM, Finding, Level, Workload
from tocsin.store import screenings
from tocsin.store.database import Store
from tocsin.store.screenings import Past
from tocsin.store.verdicts import findings_of
from tocsin.workload.habits import LATELY, habit, opening

__all__ = ["HABIT", "Hints", "said_of"]

HABIT = "habit"
_DETECTOR = "workload"


class Hints:
    """For jobs that are judged together, all of them screened. What was said before is read off the stored verdicts."""

    def __init__(self, store: Store, rows: Sequence[Mapping[str, Any]]) -> None:
        self._store = store
        self._until = max((row["submit"] for row in rows), default=0)
        self._pasts: dict[tuple[str, str], Past] = {}
        self._said: set[tuple[str, str, str]] = set()

    def on(self, row: Mapping[str, Any], workload: Workload) -> list[Finding]:
        """The findings on a job; a change that was said of another job of the last day is not said again."""
        seen = [name for name, p in workload.operations.items() if p >= SEEN_FROM]
        if not seen or not row["user"]:
            return []
        past, found = self._past(row["cluster"], row["user"]), []
        for name in seen:
            runs = past.runs.get(name, [])
            sentence = habit(row["user"], name, jobs=past.jobs, runs=runs, at=row["submit"])
            if sentence and not self._was_said(row, name):
                # Who has a user's key may also do what the user may: a permission does not make it harmless.
                found.append(Finding(detector=_DETECTOR, kind=HABIT, level=Level.WARNING, text=sentence))
        return found

    def _past(self, cluster: str, user: str) -> Past:
        if (cluster, user) not in self._pasts:
            past = screenings.past_of(self._store, cluster, user, until=self._until)
            self._pasts[cluster, user] = past
        return self._pasts[cluster, user]

    def _was_said(self, row: Mapping[str, Any], operation: str) -> bool:
        """Whether it was; from now on it is."""
        whose = (row["cluster"], row["user"])
        if (*whose, operation) in self._said:
            return True
        self._said.add((*whose, operation))
        begins = opening(row["user"], operation)
        before = findings_of(self._store, HABIT, user=whose, since=row["submit"] - LATELY)
        return any(str(finding["text"]).startswith(begins) for finding in before)


def said_of(store: Store, key: str) -> list[Finding]:
    """The hints that the verdicts on a job gave."""
    kept = {finding["text"]: finding for finding in findings_of(store, HABIT, job=key)}
    return [Finding(**{**finding, "level": Level(finding["level"])}) for finding in kept.values()]
