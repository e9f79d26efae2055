"""Verdicts as lines: one each, and one for all tasks of an array that have the same problem."""

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tocsin.app.words import in_a_line, one_time
from tocsin.core.ids import JobKey, parse_key
from tocsin.core.verdict import Level, Verdict

if TYPE_CHECKING:
    from tocsin.store.database import Store

__all__ = ["VerdictLines"]

_MOST_GROUPS = 10_000
"""Arrays whose printed problems are remembered: older ones may be printed again, and memory stays small."""

_Group = tuple[JobKey, object]
"""Tasks of one array with the same problem."""


class VerdictLines:
    """Prints verdicts as they come, those on an array's tasks together.

    The tasks of an array start and end over many rounds: a problem is printed again when ten times as many tasks have
    it. As JSON, every verdict is a line.
    """

    def __init__(
        self, store: "Store", print_line: Callable[[str], None], *, everything: bool, as_json: bool
    ) -> None:
        self._store = store
        self._print = print_line
        self._everything = everything
        self._as_json = as_json
        self._pending: dict[_Group, tuple[Verdict, int]] = {}
        """The latest array: its first verdict and the number of tasks for each problem; more tasks may follow."""
        self._tasks: dict[_Group, int] = {}
        """Tasks with a problem so far."""
        self._reasons: set[object] = set()

    def add(self, verdicts: Sequence[Verdict]) -> None:
        """Verdicts on the tasks of one array at one stage must follow each other."""
        shown = [verdict for verdict in verdicts if self._everything or verdict.level is not Level.OK]
        if self._as_json:
            for verdict in shown:
                self._print(json.dumps(verdict.to_json()))
            return
        sizes = self._sizes(shown)
        for verdict in shown:
            key = parse_key(verdict.job)
            if self._is_repeated(verdict):
                continue
            if key.task is None:
                self.end()
                self._print(in_a_line(verdict, size=sizes.get(verdict.job)))
                continue
            group = (key._replace(task=None), _problem(verdict))
            if self._pending and next(iter(self._pending))[0] != group[0]:
                self.end()
            if group in self._pending and one_time(verdict):
                group = (group[0], verdict.job)
            first, tasks = self._pending.get(group, (verdict, 0))
            self._pending[group] = first, tasks + 1

    def end(self) -> None:
        """Print the lines of the latest array."""
        for group, (first, tasks) in self._pending.items():
            before = self._tasks.pop(group, 0)
            self._tasks[group] = now = before + tasks
            if not before or len(str(now)) > len(str(before)) or one_time(first):
                self._print(in_a_line(first, tasks=now))
        self._pending = {}
        while len(self._tasks) > _MOST_GROUPS:
            del self._tasks[next(iter(self._tasks))]

    def _is_repeated(self, verdict: Verdict) -> bool:
        """Whether it only repeats why nothing could be checked, such as a detector without a model."""
        if verdict.level is not Level.UNKNOWN or verdict.findings or self._everything:
            return False
        reason = (verdict.stage, *verdict.missing.items())
        known = reason in self._reasons
        self._reasons.add(reason)
        return known

    def _sizes(self, verdicts: Sequence[Verdict]) -> dict[str, int]:
        """The number of tasks of those that are pending arrays."""
        import polars as pl

        from tocsin.core.fields import KEY
        from tocsin.core.frames import SCHEMA, key_text
        from tocsin.store.watching import jobs_named

        keys = [key for key in (parse_key(verdict.job) for verdict in verdicts) if key.task is None]
        wanted = pl.DataFrame(keys, schema={name: SCHEMA[name] for name in KEY}, orient="row")
        arrays = jobs_named(self._store, wanted).filter(pl.col("array_tasks").is_not_null())
        return dict(arrays.select(key_text(), "array_tasks").iter_rows())


def _problem(verdict: Verdict) -> object:
    """What makes the verdicts on two tasks one line: stage, level, and kinds of the worst findings."""
    kinds = {(found.detector, found.kind) for found in verdict.findings if found.level is verdict.level}
    return (verdict.stage, verdict.level, *sorted(kinds))
