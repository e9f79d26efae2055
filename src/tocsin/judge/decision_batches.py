"""The order in which jobs are decided: first those to be held, last those whose alarms must be explained."""

from collections.abc import Sequence

import polars as pl

from tocsin.core.actions import ActionKind
from tocsin.core.decision import Decision
from tocsin.core.detector import Known
from tocsin.core.stages import Stage
from tocsin.core.verdict import ALARMS
from tocsin.judge.actions import most_severe_action
from tocsin.judge.answers import Answer, assess, explain_alarms
from tocsin.judge.judge import Judge

__all__ = ["DecisionBatches"]

FEW = 10
"""Alarms decided together: each costs an explanation, and some an action."""
_URGENT = (ActionKind.HOLD, ActionKind.CANCEL)


class DecisionBatches:
    """Jobs that all detectors have assessed, to be decided in small batches.

    Store each decision before asking for the next, which depends on it.
    """

    first: list[list[int]]
    """Batches of row numbers: jobs to be held or cancelled, then all that need no explanation."""
    slow: list[list[int]]
    """Batches of the other jobs' row numbers. Their alarms are explained, and their starts may be delayed."""

    def __init__(
        self,
        judge: Judge,
        jobs: pl.DataFrame,
        stage: Stage,
        *,
        known: Known,
        at: int,
        late: Sequence[bool],
        known_until: Sequence[int],
    ) -> None:
        self._judge, self._jobs, self._stage, self._known, self._at = judge, jobs, stage, known, at
        self._late, self._known_until = late, known_until
        self._answers = assess(judge.detectors, jobs, known, stage)
        expected = judge.conclude(jobs, self._answers, stage, at=at, open_cases=False)
        self._screenings = expected.screenings
        called_for = [most_severe_action(verdict, judge.policy.actions) for verdict in expected.verdicts]
        urgent = [row for row, found in enumerate(called_for) if found and found[0] in _URGENT]
        others = sorted(set(range(jobs.height)).difference(urgent))
        slow = [row for row in others if called_for[row] or _has_alarm(self._answers[row])]
        plain = sorted(set(others).difference(slow))
        self.first = [*_batches(urgent), *([plain] if plain else [])]
        self.slow = _batches(slow)

    @property
    def has_alarms(self) -> bool:
        return any(map(_has_alarm, self._answers))

    def decide(self, rows: Sequence[int]) -> Decision:
        """The decision on the jobs with these row numbers; their alarms are explained."""
        jobs = self._jobs[rows]
        answers = [self._answers[row] for row in rows]
        return self._judge.conclude(
            jobs,
            explain_alarms(self._judge.detectors, jobs, answers, self._known, self._stage),
            self._stage,
            at=self._at,
            late=[self._late[row] for row in rows],
            known_until=[self._known_until[row] for row in rows],
            other_screenings=self._screenings,
        )


def _batches(rows: list[int]) -> list[list[int]]:
    return [rows[first : first + FEW] for first in range(0, len(rows), FEW)]


def _has_alarm(answers: Sequence[Answer]) -> bool:
    """Whether a detector raises an alarm, which must then be explained."""
    return any(finding.level in ALARMS for answer in answers for finding in answer.parts.findings)
