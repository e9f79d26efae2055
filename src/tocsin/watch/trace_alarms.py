"""The alarms of running jobs: each is raised once, updated when it changes, and grouped with those of one cause."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from tocsin.core.stages import Stage
from tocsin.core.verdict import ALARMS, Finding, Verdict
from tocsin.store.database import Store
from tocsin.store.verdicts import at_stage
from tocsin.traces.alarms import NAME, together

__all__ = ["TraceAlarms"]


@dataclass(slots=True)
class _Alarm:
    """The verdicts on a job since its alarm began; without kinds, there is no alarm."""

    until: int = -1
    """The instant of the last verdict on it."""
    groups: dict[str, str] = field(default_factory=dict)
    """The group of each kind of finding."""


class TraceAlarms:
    """Its memory is a cache of the store: verdicts at the stage `running` show which jobs have an alarm, and why."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._jobs: dict[str, _Alarm] = {}

    def load(self, jobs: Iterable[str]) -> None:
        """Load the verdicts on these jobs."""
        unknown = [job for job in jobs if job not in self._jobs]
        if not unknown:
            return
        said = at_stage(self._store, unknown, Stage.RUNNING)
        for job in unknown:
            self._jobs[job] = alarm = _Alarm()
            for verdict in said.get(job, ()):
                _note(alarm, verdict)

    def forget(self, present: set[str]) -> None:
        """Forget all jobs but these."""
        self._jobs = {job: alarm for job, alarm in self._jobs.items() if job in present}

    def alarmed(self) -> list[str]:
        return sorted(job for job, alarm in self._jobs.items() if alarm.groups)

    def was_judged(self, job: str, at: int) -> bool:
        """Whether a verdict of this instant or later was given, for instance by a process that was killed."""
        return self._jobs[job].until >= at

    def news(self, verdicts: Sequence[Verdict], at: int) -> list[Verdict]:
        """The verdicts on windows up to an instant that are new, with the groups of their alarms.

        The widest alarm comes first.
        """
        fresh = [verdict for verdict in verdicts if self._is_new(verdict)]
        fresh.sort(key=lambda each: (-_size(each), each.job))
        groups = self._open_groups()
        members: dict[str, list[str]] = {}
        for job, alarm in sorted(self._jobs.items()):
            for group in alarm.groups.values():
                members.setdefault(group, []).append(job)
        for verdict in fresh:
            for found in _alarms(verdict):
                group = groups.setdefault(found.kind, f"{found.kind}@{at}")
                if verdict.job not in (jobs := members.setdefault(group, [])):
                    jobs.append(verdict.job)

        def grouped(found: Finding) -> Finding:
            group = groups[found.kind]
            others = [] if len(members[group]) < 2 else [together(members[group])]
            return replace(found, group=group, evidence=[*found.evidence, *others])

        return [
            replace(
                verdict,
                findings=[grouped(found) if _is_alarm(found) else found for found in verdict.findings],
            )
            for verdict in fresh
        ]

    def given(self, verdicts: Iterable[Verdict]) -> None:
        """Record that these verdicts are stored."""
        for verdict in verdicts:
            _note(self._jobs.setdefault(verdict.job, _Alarm()), verdict)

    def _is_new(self, verdict: Verdict) -> bool:
        before = self._jobs[verdict.job].groups
        if verdict.level not in ALARMS:
            return bool(before) and not verdict.missing
        return not {found.kind for found in _alarms(verdict)} <= before.keys()

    def _open_groups(self) -> dict[str, str]:
        """For each kind, the group with most of the jobs that have an alarm now."""
        votes: dict[str, Counter[str]] = {}
        for alarm in self._jobs.values():
            for kind, group in alarm.groups.items():
                votes.setdefault(kind, Counter())[group] += 1
        return {kind: max(sorted(found), key=lambda group: found[group]) for kind, found in votes.items()}


def _note(alarm: _Alarm, verdict: Verdict) -> None:
    alarm.until = max(alarm.until, verdict.known_until)
    if verdict.level not in ALARMS:
        alarm.groups = {}
    for found in _alarms(verdict):
        alarm.groups[found.kind] = found.group or found.kind


def _is_alarm(found: Finding) -> bool:
    return found.detector == NAME and found.level in ALARMS


def _alarms(verdict: Verdict) -> list[Finding]:
    return [found for found in verdict.findings if _is_alarm(found)]


def _size(verdict: Verdict) -> int:
    return sum(len(found.evidence) for found in _alarms(verdict))
