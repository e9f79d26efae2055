"""Checks scripts against the live history of a followed cluster, with models that stay loaded."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tocsin.app.app import App
from tocsin.app.causes import past_causes_advice
from tocsin.app.check import Evidence, ScriptQuestion, judged, read_machine
from tocsin.app.judge import LiveJudge
from tocsin.app.watch import Followed
from tocsin.core.decision import Facts, FactsRequest
from tocsin.core.machine import PER_USER
from tocsin.core.stages import Stage
from tocsin.core.verdict import Verdict

if TYPE_CHECKING:
    from tocsin.core.detector import Known
    from tocsin.core.machine import Machine

    Prepared = tuple[Machine | None, dict[str, str]]
    """The cluster's machine, and the errors in reading it."""

__all__ = ["ScriptChecker", "TimedCache", "cached_facts"]

MACHINE_SECONDS = 300
"""Seconds for which a user's limits are cached: reading them takes several requests to Slurm."""
FAILED_SECONDS = 10
"""Seconds for which it is cached that they could not be read: a check may wait as long for a Slurm that hangs."""
EARLIER_SECONDS = 30
"""Seconds for which a user's usual requests and programs are cached."""
RULES_SECONDS = 0.5
"""Seconds for which the allow-list and cases are cached: a check is advice, and reading took a tenth of its time."""
_MOST_USERS = 1000
_MOST_HABITS = 50
_LATEST = 40

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class TimedCache(Generic[_Key, _Value]):
    """Values that are computed again after some seconds; at most `most` are kept."""

    def __init__(self, seconds: float, most: int, now: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._most, self._now = seconds, most, now
        self._cached: OrderedDict[_Key, tuple[float, _Value]] = OrderedDict()

    def find(self, key: _Key) -> _Value | None:
        """The value, if it has not expired."""
        found = self._cached.get(key)
        return found[1] if found is not None and self._now() < found[0] else None

    def get(
        self, key: _Key, compute: Callable[[], _Value], seconds: Callable[[_Value], float] | None = None
    ) -> _Value:
        """The value; `seconds` gives the lifetime of a new one."""
        found = self._cached.get(key)
        if found is not None and self._now() < found[0]:
            return found[1]
        value = compute()
        self._cached[key] = self._now() + (seconds(value) if seconds else self._seconds), value
        self._cached.move_to_end(key)
        while len(self._cached) > self._most:
            self._cached.popitem(last=False)
        return value


def _cached(read: Callable[[], _Value], now: Callable[[], float] = time.monotonic) -> Callable[[], _Value]:
    found: TimedCache[None, _Value] = TimedCache(RULES_SECONDS, 1, now)
    return lambda: found.get(None, read)


def cached_facts(
    read: Callable[[FactsRequest], Facts], now: Callable[[], float] = time.monotonic
) -> Callable[[FactsRequest], Facts]:
    """What is known of all cases and of a user's recent programs: thousands of rows for one check."""
    cases = _cached(lambda: read(FactsRequest(cases=True)), now)
    recent: TimedCache[frozenset[tuple[str, str]], Facts] = TimedCache(EARLIER_SECONDS, _MOST_HABITS, now)

    def facts(asked: FactsRequest) -> Facts:
        if asked.jobs or asked.actions_since is not None:
            return read(asked)
        found = cases() if asked.cases else Facts()
        if not asked.users:
            return found
        habits = recent.get(asked.users, lambda: read(replace(asked, cases=False)))
        return replace(found, screened=habits.screened, hints=habits.hints)

    return facts


def _lifetime(read: "Prepared") -> float:
    machine, missing = read
    failed = missing or machine is None or not PER_USER.isdisjoint(machine.missing)
    return FAILED_SECONDS if failed else MACHINE_SECONDS


class ScriptChecker:
    """Checks scripts. `prepare` may run in any thread, `check` in one at a time."""

    def __init__(self, app: App, followed: Followed, *, now: Callable[[], float] = time.monotonic) -> None:
        self._app, self._followed = app, followed
        self._live = LiveJudge(app, followed.ledger, cluster=followed.name, stages=[Stage.SUBMIT])
        judge = self._live.judge
        judge.facts = cached_facts(judge.facts)
        if allow_list := judge.allow_list:
            judge.allow_list = _cached(allow_list)
        self._machines: TimedCache[str, Prepared] = TimedCache(MACHINE_SECONDS, _MOST_USERS, now)
        self._usual: TimedCache[str, dict[str, Any]] = TimedCache(EARLIER_SECONDS, _MOST_USERS, now)

    def prepare(self, user: str) -> "Prepared":
        """The cluster's machine and what this user may request; the first time, Slurm is asked."""
        return self.prepared(user) or self._joined(
            self._machines.get(user, lambda: self._read_machine(user), _lifetime)
        )

    def prepared(self, user: str) -> "Prepared | None":
        """The same, if Slurm need not be asked."""
        followed = self._followed
        if not followed.live and followed.ledger.machine is not None:
            return followed.ledger.machine, {}
        found = self._machines.find(user)
        return found and self._joined(found)

    def _joined(self, read: "Prepared") -> "Prepared":
        machine, missing = read
        watched = self._followed.ledger.machine
        if watched is None:
            return machine, missing
        if machine is None:
            return watched, missing
        return replace(machine, nodes=watched.nodes, partitions=watched.partitions), missing

    def _read_machine(self, user: str) -> "Prepared":
        """As Slurm reports it to this user. Nodes and partitions are those of the watch, shared by all users: they are
        fresher, and thousands of them for each of a thousand users would fill the memory."""
        _, machine, missing = read_machine(self._app, self._followed.name, user)
        if machine is not None and self._followed.ledger.machine is not None:
            machine = replace(machine, nodes=(), partitions=())
        return machine, missing

    def check(self, asked: ScriptQuestion, prepared: "Prepared") -> Verdict:
        self._live.reload()
        machine, missing = prepared
        return judged(
            asked,
            Evidence(
                self._followed.name,
                int(self._followed.now()),
                machine,
                missing,
                known=lambda texts: self._known(asked.user, machine, texts),
                judge=lambda _: self._live.judge,
                past_causes=lambda job: past_causes_advice(self._app, job, yours=False),
            ),
        )

    def _known(
        self, user: str, machine: "Machine | None", texts: dict[str, str]
    ) -> "tuple[Known, dict[str, Any]]":
        from tocsin.history.present import Present

        present = Present(self._followed.ledger, machine=machine, scripts=texts.get)
        return present, self._usual.get(user, lambda: self._usual_values(user))

    def _usual_values(self, user: str) -> dict[str, Any]:
        from tocsin.app import script_job
        from tocsin.store.jobs import Filter, load

        wanted = Filter(
            clusters=[self._followed.name], users=[user], arrays=True, order="-submit", limit=_LATEST
        )
        return script_job.usual_values(load(self._app.store, wanted, list(script_job.READS)), user)
