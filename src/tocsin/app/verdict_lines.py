"""Verdicts as lines: jobs of a user with the same name and problem share one line, and no job repeats an alarm."""

import json
from collections.abc import Callable, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, NamedTuple

from tocsin.app.verdict_text import one_time, verdict_line
from tocsin.core.ids import parse_key
from tocsin.core.stages import Stage
from tocsin.core.verdict import ALARMS, Finding, Level, Verdict, severity

if TYPE_CHECKING:
    from tocsin.store.database import Store

__all__ = ["VerdictLines"]

_MOST_GROUPS = 10_000
"""Groups remembered, to bound memory; older ones may be printed again."""
_QUIET = 3600
"""Seconds after which a group is printed again, however few jobs joined it."""

_Group = tuple[object, ...]
"""Jobs of one user with the same name and problem."""


class _Printed(NamedTuple):
    jobs: int
    at: int


class VerdictLines:
    """Prints verdicts as they come, one line per group.

    The jobs of a group start and end over many rounds: it is printed again when ten times as many jobs belong to it, or
    after an hour. A job that raised an alarm before is printed again only if it got worse or has another problem. In
    JSON, every verdict is a line.
    """

    def __init__(
        self,
        store: "Store",
        print_line: Callable[[str], None],
        zone: Callable[[str], tzinfo],
        *,
        everything: bool,
        as_json: bool,
        unknown: bool = True,
    ) -> None:
        """`zone`: the time zone of a cluster."""
        self._store = store
        self._print = print_line
        self._zone = zone
        self._everything = everything
        self._as_json = as_json
        self._unknown = unknown
        self._pending: dict[_Group, tuple[Verdict, bool, int]] = {}
        """The first verdict of each group, whether it is an update, and the number of jobs; more may follow."""
        self._printed: dict[_Group, _Printed] = {}
        self._reasons: set[object] = set()

    def add(self, verdicts: Sequence[Verdict]) -> None:
        quiet = {Level.OK} if self._unknown else {Level.OK, Level.UNKNOWN}
        shown = [verdict for verdict in verdicts if self._everything or verdict.level not in quiet]
        if self._as_json:
            for verdict in shown:
                self._print(json.dumps(verdict.to_json()))
            return
        alarms = self._alarms_before(shown)
        for verdict in shown:
            if self._is_repeated(verdict):
                continue
            before = alarms.get(verdict.job, [])
            if any(_covers(earlier, verdict) for earlier in before) and not one_time(verdict):
                continue
            group = _group(verdict)
            if group in self._pending and one_time(verdict):
                group = (*group, verdict.job)
            first, update, jobs = self._pending.get(group, (verdict, bool(before), 0))
            self._pending[group] = first, update, jobs + 1
        if len(self._pending) > _MOST_GROUPS:
            self.end()

    def end(self) -> None:
        """Print the lines of all groups."""
        sizes = self._sizes([first for first, _, _ in self._pending.values()])
        for group, (first, update, jobs) in self._pending.items():
            last = self._printed.pop(group, None)
            if last and first.at - last.at >= _QUIET:
                last = None
            now = jobs + (last.jobs if last else 0)
            again = last is None or len(str(now)) > len(str(last.jobs)) or bool(one_time(first))
            self._printed[group] = _Printed(now, last.at if last and not again else first.at)
            if again:
                zone, size = self._zone(parse_key(first.job).cluster), sizes.get(first.job)
                self._print(verdict_line(first, zone, more=now - 1, size=size, update=update))
        self._pending = {}
        while len(self._printed) > _MOST_GROUPS:
            del self._printed[next(iter(self._printed))]

    def _alarms_before(self, verdicts: Sequence[Verdict]) -> dict[str, list[Verdict]]:
        """Earlier alarms of these jobs or their arrays."""
        from tocsin.store.verdicts import alarms

        later = [each for each in verdicts if each.level in ALARMS and _place(each) > (Stage.SUBMIT.order, 0)]
        keys = {each.job: {each.job, str(parse_key(each.job)._replace(task=None))} for each in later}
        found = alarms(self._store, set().union(*keys.values()))
        return {
            each.job: [
                one for key in keys[each.job] for one in found.get(key, ()) if _place(one) < _place(each)
            ]
            for each in later
        }

    def _is_repeated(self, verdict: Verdict) -> bool:
        """Whether it only repeats why nothing could be checked, such as a detector without a model."""
        if verdict.level is not Level.UNKNOWN or self._everything:
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


def _group(verdict: Verdict) -> _Group:
    key = parse_key(verdict.job)
    causes = {found.group for found in verdict.findings if found.level is verdict.level and found.group}
    if causes:
        return key.cluster, verdict.level, *sorted(causes)
    named = verdict.user is not None and verdict.name is not None
    whose = (key.cluster, verdict.user, verdict.name) if named else (key._replace(task=None),)
    kinds = {_kind(found) for found in verdict.findings if found.level is verdict.level}
    unchecked = sorted(verdict.missing.items()) if verdict.level is Level.UNKNOWN else ()
    return (*whose, verdict.level, *sorted(kinds), *unchecked)


def _covers(earlier: Verdict, later: Verdict) -> bool:
    """Whether an earlier alarm covers a later one: it was as severe, and of the same kinds."""
    kinds = {_kind(found) for found in later.findings if found.level is later.level}
    known = {_kind(found) for found in earlier.findings}
    return severity(earlier.level) >= severity(later.level) and kinds <= known


def _place(verdict: Verdict) -> tuple[int, int]:
    """Its place in the life of its job."""
    return verdict.stage.order, verdict.seq


def _kind(finding: Finding) -> tuple[str, str]:
    return finding.detector, finding.kind
