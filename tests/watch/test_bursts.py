"""A burst of submissions: misuse is stopped first, whatever else must be explained or put off."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import polars as pl
import pytest
import sqlalchemy as sa

from tests.judge.test_actions import ACT, ROGUE, WILL_FAIL
from tests.judge.test_judge import Speaker
from tests.kits.watching import (
    NOON,
    FakeCluster,
    KillableStore,
    Killed,
    rows,
    stored_verdicts,
    watcher,
)
from tests.slurm.fake_slurm import FakeJob, FakeSlurm
from tocsin.core.detector import Known, Parts
from tocsin.core.errors import StoreError
from tocsin.core.ids import JobKey
from tocsin.core.stages import Stage
from tocsin.judge.answers import DetectorModels, Model
from tocsin.judge.judge import Judge
from tocsin.judge.policy import Policy
from tocsin.slurm.executor import Executor
from tocsin.store.database import Store
from tocsin.store.decisions import load_facts
from tocsin.watch.watcher import Watcher

BURST = 40
MINER = BURST + 1


class Detector(Speaker):
    """Finds one thing in jobs of one name; its explanations take a second each, and are noted."""

    def __init__(self, name: str, found: Parts, explained: Callable[[int], None]) -> None:
        super().__init__(lambda row: found if row["name"] == name else Parts())
        self._explained = explained

    def explain(self, job: pl.DataFrame, known: Known, *, stage: Stage) -> Parts:
        self._explained(job["job_id"][0])
        return super().explain(job, known, stage=stage)


class Site(FakeSlurm):
    """Slurm's side of actions, with the jobs that are submitted to it, a clock, and what happened in which order."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = FakeCluster()
        self.clock = 0.0
        self.events: list[tuple[str, int]] = []

    def submit(self, number: int, name: str, **more: Any) -> None:
        self.cluster.queued.append({"job_id": number, "name": name, **more})
        self.jobs[JobKey("lab", number, None, NOON)] = FakeJob()

    def submit_burst(self, size: int = BURST) -> None:
        for number in range(1, size + 1):
            self.submit(number, "grow")

    def explained(self, number: int) -> None:
        self.clock += 1
        self.events.append(("explained", number))

    def _changed(self, key: JobKey, what: str, **values: object) -> None:
        super()._changed(key, what, **values)
        self.events.append((what.split()[0], key.job_id))

    def watcher(self, store: Store) -> Watcher:
        """A new process, which acts at once and after each round."""
        found = {
            "failure": ("grow", Parts(findings=[WILL_FAIL])),
            "workload": ("mine", Parts(findings=[ROGUE])),
        }
        seats = {
            detector: DetectorModels(dict.fromkeys(Stage, Model(Detector(name, parts, self.explained), "1")))
            for detector, (name, parts) in found.items()
        }
        judge = Judge(seats, Policy((), ACT), facts=partial(load_facts, store))
        self.executor = Executor(store, self, lease=300, act=True)
        made = watcher(
            self.cluster,
            store,
            judge,
            stored=lambda given, now: self.executor.carry_out_planned([v.job for v in given], now),
        )
        made._seconds = made._due_verdicts._seconds = lambda: self.clock
        return made

    def done(self, what: str) -> list[int]:
        return [number for event, number in self.events if event == what]


@pytest.fixture
def site() -> Site:
    return Site()


def submitted(numbers: range) -> list[tuple[str, str]]:
    return sorted((f"lab:{number}@{NOON}", "submit") for number in numbers)


def test_the_last_job_of_a_burst_is_held_before_any_other_is_explained_or_put_off(
    store: Store, site: Site
) -> None:
    site.submit_burst()
    site.submit(MINER, "mine")
    site.watcher(store).step(NOON + 1)
    assert site.events[:2] == [("explained", MINER), ("hold", MINER)]


def test_alarms_that_can_wait_do_not_keep_the_watch_from_a_miner_that_comes_later(
    store: Store, site: Site
) -> None:
    site.submit_burst()
    watch = site.watcher(store)
    assert watch.step(NOON + 1).behind
    before = len(site.events)
    assert site.done("delay") == list(range(1, 11)), "each few are put off as soon as they are judged"
    site.submit(MINER, "mine")
    site.submit(MINER + 1, "fine")
    again = watch.step(NOON + 2)
    assert site.events[before : before + 2] == [("explained", MINER), ("hold", MINER)]
    assert [verdict.job for verdict in again.verdicts[:2]] == [
        f"lab:{MINER}@{NOON}",
        f"lab:{MINER + 1}@{NOON}",
    ]
    while again.behind:
        again = watch.step(NOON + 3)
    assert stored_verdicts(store) == submitted(range(1, MINER + 2))
    assert site.done("delay") == list(range(1, BURST + 1)), "each once, in the order of their deadlines"
    assert watch.step(NOON + 4).verdicts == []


def test_no_alarm_waits_so_long_that_it_is_late(store: Store, site: Site) -> None:
    site.submit_burst()
    watch = site.watcher(store)
    watch.step(NOON + 1)
    last = watch.step(NOON + 60)
    assert not last.behind
    assert not any(verdict.late for verdict in last.verdicts)
    assert stored_verdicts(store) == submitted(range(1, BURST + 1))


def test_a_job_that_starts_while_its_alarm_waits_gets_its_verdict(store: Store, site: Site) -> None:
    site.submit_burst()
    watch = site.watcher(store)
    watch.step(NOON + 1)
    site.cluster.queued[-1] |= {"state": "RUNNING", "start": NOON + 2, "node_list": "n1"}
    verdicts = watch.step(NOON + 3).verdicts
    own = {v.stage: v.late for v in verdicts if v.job == f"lab:{BURST}@{NOON}"}
    assert own == {"submit": True, "start": False}


@pytest.mark.parametrize("death", range(0, 26, 5))
def test_a_kill_in_the_midst_of_a_burst_repeats_no_verdict_and_no_action(
    store: Store, site: Site, death: int
) -> None:
    deadly = KillableStore(store.engine, store.timeout)
    site.submit_burst(12)
    site.submit(13, "mine")
    deadly.deaths[:] = [death] * 3
    while deadly.deaths:
        with suppress(Killed):
            watch = site.watcher(deadly)
            if not watch.step(NOON + 1).behind:
                site.executor.step(NOON + 1)
                break
    deadly.deaths.clear()
    watch = site.watcher(deadly)
    while watch.step(NOON + 2).behind:
        pass
    site.executor.step(NOON + 2)
    assert stored_verdicts(store) == submitted(range(1, 14))
    assert sorted(rows(store, "SELECT kind, status, count(*) FROM actions GROUP BY kind, status")) == [
        ("hold", "done", 1),
        ("lease", "done", 12),
    ]
    assert site.done("hold") == [13]


class Locked(Store):
    """A store that cannot be written to for a while: `refused` counts down the writes until then."""

    writes = 0

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        Locked.writes -= 1
        if Locked.writes == 0:
            raise StoreError("it is locked")
        with Store.writing(self) as connection:
            yield connection


@pytest.mark.parametrize("free", range(1, 5))
def test_a_verdict_that_could_not_be_stored_is_given_in_the_next_round(
    store: Store, site: Site, free: int
) -> None:
    site.submit(1, "fine")
    watch = site.watcher(Locked(store.engine, store.timeout))
    Locked.writes = free
    with suppress(StoreError):
        watch.step(NOON + 1)
    Locked.writes = 0
    watch.step(NOON + 2)
    assert stored_verdicts(store) == submitted(range(1, 2))
