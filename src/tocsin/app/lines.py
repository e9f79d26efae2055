"""Verdicts as lines on a terminal: one each, and one for all tasks of an array that have the same wrong with them."""

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tocsin.app.text import count, plain
from tocsin.core.ids import JobKey, parse_key
from tocsin.core.verdict import Level, Verdict

if TYPE_CHECKING:
    from tocsin.store.database import Store

__all__ = ["Lines", "in_a_line"]

_MOST_REMEMBERED = 10_000
"""Arrays of which it is known what was said: older ones might be told again, and memory stays small."""

_Group = tuple[JobKey, object]


class Lines:
    """Prints verdicts as they come, those on an array's tasks together.

    The tasks of an array start and end over many rounds. What was said of some is said again of others when they have
    become ten times as many. As JSON, every verdict is a line.
    """

    def __init__(
        self, store: "Store", print_line: Callable[[str], None], *, everything: bool, as_json: bool
    ) -> None:
        self._store = store
        self._print = print_line
        self._everything = everything
        self._as_json = as_json
        self._held: dict[_Group, tuple[Verdict, int]] = {}
        """Of the array that came last, what is the same with how many tasks: more of them may come."""
        self._tasks: dict[_Group, int] = {}
        """Of how many tasks something was told."""
        self._reasons: set[object] = set()

    def add(self, verdicts: Sequence[Verdict]) -> None:
        """Those on the tasks of one array at one stage must come one after the other."""
        shown = [verdict for verdict in verdicts if self._everything or verdict.level is not Level.OK]
        if self._as_json:
            for verdict in shown:
                self._print(json.dumps(verdict.to_json()))
            return
        sizes = self._sizes(shown)
        for verdict in shown:
            key = parse_key(verdict.job)
            if self._told_before(verdict):
                continue
            if key.task is None:
                self.end()
                self._print(in_a_line(verdict, size=sizes.get(verdict.job)))
                continue
            group = (key._replace(task=None), _same(verdict))
            if self._held and next(iter(self._held))[0] != group[0]:
                self.end()
            if group in self._held and _hints(verdict):  # said by the verdict on one task alone
                group = (group[0], verdict.job)
            first, tasks = self._held.get(group, (verdict, 0))
            self._held[group] = first, tasks + 1

    def end(self) -> None:
        """Print what was held back."""
        for group, (first, tasks) in self._held.items():
            before = self._tasks.pop(group, 0)
            self._tasks[group] = now = before + tasks
            if not before or len(str(now)) > len(str(before)) or _hints(first):
                self._print(in_a_line(first, tasks=now))
        self._held = {}
        while len(self._tasks) > _MOST_REMEMBERED:
            del self._tasks[next(iter(self._tasks))]

    def _told_before(self, verdict: Verdict) -> bool:
        """Whether it says only that nobody could look, and why, as another one did: a detector without a model."""
        if verdict.level is not Level.UNKNOWN or verdict.findings or self._everything:
            return False
        reason = (verdict.stage, *verdict.missing.items())
        known = reason in self._reasons
        self._reasons.add(reason)
        return known

    def _sizes(self, verdicts: Sequence[Verdict]) -> dict[str, int]:
        """How many tasks those have that are arrays as submitted."""
        import polars as pl

        from tocsin.core.fields import KEY
        from tocsin.core.frames import SCHEMA, key_text
        from tocsin.store.watching import jobs_named

        keys = [key for key in (parse_key(verdict.job) for verdict in verdicts) if key.task is None]
        wanted = pl.DataFrame(keys, schema={name: SCHEMA[name] for name in KEY}, orient="row")
        arrays = jobs_named(self._store, wanted).filter(pl.col("array_tasks").is_not_null())
        return dict(arrays.select(key_text(), "array_tasks").iter_rows())


def _same(verdict: Verdict) -> object:
    """What makes two tasks' verdicts one line: stage, level, and what is wrong."""
    kinds = {
        (finding.detector, finding.kind) for finding in verdict.findings if finding.level is verdict.level
    }
    return (verdict.stage, verdict.level, *sorted(kinds))


def _hints(verdict: Verdict) -> list[str]:
    """Of stolen credentials: nobody would hear of one again, so it is said whatever else is worse."""
    from tocsin.judge.habits import HABIT

    return [finding.text for finding in verdict.findings if finding.kind == HABIT]


def in_a_line(verdict: Verdict, *, tasks: int = 1, size: int | None = None) -> str:
    """The words first: what is wrong, then of which job and stage, and of how many tasks of an array beside it.

    `size`: of an array as submitted, how many tasks it has.
    """
    worst, hints = verdict.level, _hints(verdict)
    said = [f.text for f in verdict.findings if f.level is worst or f.text in hints]
    said = said or [f"{part}: {reason}" for part, reason in verdict.missing.items()] or ["nothing found"]
    where = [verdict.job, str(verdict.stage)]
    if verdict.late:
        where.append("late")
    if size is not None:
        where.append(f"an array of {count(size, 'task')}")
    if tasks > 1:
        where.append(f"and {count(tasks - 1, 'more task')} of the array")
    return plain(f"{worst.upper()}: {'; '.join(said)} ({', '.join(where)})")
