"""Scripts that could not be read at once: verdicts wait for them, and misuse is found as soon as they are read."""

from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import Any

import pytest

from tests.judge.test_actions import ACT
from tests.judge.test_judge import seat
from tests.judge.test_rogue import of
from tests.kits.watching import (
    NOON,
    FakeCluster,
    KillableStore,
    Killed,
    ended,
    rows,
    running,
    watcher,
)
from tocsin.app.allow_list_reader import AllowListReader
from tocsin.app.app import App
from tocsin.app.followed import _watcher
from tocsin.core.detector import Parts
from tocsin.core.errors import ClusterError
from tocsin.core.ids import JobKey
from tocsin.core.stages import Stage
from tocsin.core.verdict import Level
from tocsin.history.ledger import Ledger
from tocsin.judge.judge import Judge
from tocsin.judge.policy import ROGUE_CASES, Policy
from tocsin.store.allow import entries
from tocsin.store.database import Store
from tocsin.store.decisions import load_facts
from tocsin.store.home import Home
from tocsin.watch.script_reader import RETRY_SECONDS, WAIT_SECONDS, ScriptReader
from tocsin.watch.watcher import Watcher

MINING = "#!/bin/sh\n./xmrig\n"
DIGEST = sha256(MINING.encode()).hexdigest()
LATER = NOON + WAIT_SECONDS


def by_script(row: dict[str, Any]) -> Parts:
    if row["script"] is None:
        return Parts(missing={"workload": "no script is known"})
    return of(cryptomining=0.99 if row["script"] == DIGEST else 0.01)


class Site:
    """Jobs that ran while nobody watched, the last of them a miner; Slurm is asked for five scripts a round."""

    def __init__(self, store: Store, home: Home, most: int = 5) -> None:
        self.store, self.home, self.most = store, home, most
        self.cluster = FakeCluster()

    def submit(self, *jobs: dict[str, Any]) -> None:
        for job in jobs:
            self.cluster.queued.append(job)
            self.cluster.scripts.setdefault(job["job_id"], f"#!/bin/sh\n./step {job['job_id']}\n")

    def submit_burst(self, size: int) -> int:
        """The number of the miner, which is the last one."""
        self.cluster.scripts[size] = MINING
        self.submit(*(running(NOON, job_id=number, submit=NOON - 300) for number in range(1, size + 1)))
        return size

    def watcher(self, store: Store | None = None) -> Watcher:
        store = store or self.store
        seats = {
            "workload": seat(by_script, Stage.SUBMIT),
            "late": seat(lambda row: Parts(missing={"late": "it needs more than the script"}), Stage.SUBMIT),
        }
        allowed = AllowListReader(partial(entries, store)).current
        policy = Policy(ROGUE_CASES.rules, ACT)
        judge = Judge(seats, policy, allowed, partial(load_facts, store))
        reader = ScriptReader(self.cluster, self.home.scripts, most=self.most)
        return watcher(self.cluster, store, judge, scripts=reader, by_script={"workload"})

    def found(self) -> list[tuple[Any, ...]]:
        """Job, seq and level of all verdicts on miners, and the status of actions on them."""
        return rows(
            self.store,
            "SELECT v.job, v.seq, v.level, a.kind FROM verdicts v LEFT JOIN actions a ON a.job = v.job"
            " WHERE v.stage = 'submit' AND v.level = 'critical'",
        )


@pytest.fixture
def site(store: Store, home: Home) -> Site:
    return Site(store, home)


def job(number: int) -> str:
    return f"lab:{number}@{NOON - 300}"


def test_after_an_outage_the_verdicts_on_running_jobs_wait_for_their_scripts(site: Site) -> None:
    miner = site.submit_burst(12)
    watch = site.watcher()
    done = [watch.step(NOON + second) for second in range(4)]
    assert [len(each.verdicts) for each in done] == [10, 10, 4, 0], "on submission and start"
    assert [each.behind for each in done] == [True, True, False, False]
    assert site.found() == [(job(miner), 0, "critical", "hold")]
    assert site.cluster.asked == list(range(1, 13))
    assert rows(site.store, "SELECT count(*) FROM jobs WHERE script IS NULL") == [(0,)]


def test_a_script_read_after_the_verdict_adds_its_finding_with_case_and_action(site: Site) -> None:
    miner = site.submit_burst(12)
    watch = site.watcher()
    watch.step(NOON)
    assert len(watch.step(LATER).verdicts) == 14, "none waits longer"
    assert site.found() == []
    [verdict] = watch.step(LATER + 1).verdicts
    assert (verdict.job, verdict.seq, verdict.level) == (job(miner), 1, Level.CRITICAL)
    assert verdict.missing == {"late": "it needs more than the script"}
    assert site.found() == [(job(miner), 1, "critical", "hold")]
    assert rows(site.store, "SELECT job FROM cases") == [(job(miner),)]
    assert watch.step(LATER + 2).verdicts == []
    assert site.cluster.asked == list(range(1, 13)), "each once"


def test_after_a_restart_the_scripts_still_unread_are_read(site: Site) -> None:
    miner = site.submit_burst(25)
    watch = site.watcher()
    watch.step(NOON)
    watch.step(LATER)
    watch = site.watcher()
    for second in range(4):
        watch.step(LATER + second)
    assert site.found() == [(job(miner), 1, "critical", "hold")]
    assert sorted(site.cluster.asked) == list(range(1, 26))


def test_the_watch_asks_detectors_again_that_need_nothing_but_the_script(site: Site) -> None:
    with App(folder=str(site.home.root)) as app:
        arguments: Any = (app, site.cluster, None, Judge({}), Ledger(), {}, None, None)
        watch = _watcher(*arguments)
    assert isinstance(watch, Watcher)
    assert watch._due_verdicts.by_script == {"workload"}


def test_scripts_of_running_jobs_are_read_before_those_of_ended_ones(site: Site) -> None:
    site.watcher().step(NOON - 400)
    site.submit(*({"job_id": number, "submit": NOON - 300} for number in range(90, 95)))
    site.submit_burst(6)
    over = [ended(NOON - 290, NOON - 200, job_id=number, submit=NOON - 300) for number in range(20, 26)]
    site.cluster.accounted = over
    site.cluster.scripts |= dict.fromkeys(range(20, 26), MINING)
    watch = site.watcher()
    for second in range(4):
        watch.step(NOON + second)
    assert site.cluster.asked == [*range(90, 95), *range(1, 7), *range(20, 26)]
    assert len(site.found()) == 7


def test_scripts_that_slurm_refused_for_a_while_are_read_afterwards(store: Store, home: Home) -> None:
    class Moody(FakeCluster):
        down = True

        def script(self, key: JobKey) -> str | None:
            text = super().script(key)
            if self.down or key.job_id == 1:
                raise ClusterError("slurmdbd does not answer")
            return text

    site = Site(store, home)
    site.cluster = cluster = Moody()
    miner = site.submit_burst(3)
    watch = site.watcher()
    assert len(watch.step(NOON).verdicts) == 6, "verdicts do not wait"
    cluster.down = False
    watch.step(NOON + 1)
    assert cluster.asked == [1], "and Slurm is left alone for a while"
    done = watch.step(NOON + RETRY_SECONDS)
    assert site.found() == [(job(miner), 1, "critical", "hold")]
    assert cluster.asked == [1, 2, 3, 1], "the one that failed comes last"
    assert done.problems == ["slurmdbd does not answer"]


def test_jobs_without_a_script_do_not_take_more_than_their_share_of_a_round(site: Site) -> None:
    site.submit_burst(12)
    site.cluster.scripts.clear()
    watch = site.watcher()
    watch.step(NOON)
    assert site.cluster.asked == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("death", range(12))
def test_a_kill_repeats_no_verdict_and_loses_no_script(site: Site, death: int) -> None:
    miner = site.submit_burst(12)
    deadly = KillableStore(site.store.engine, site.store.timeout)
    deadly.deaths[:] = [death] * 3
    for start in (NOON, LATER, LATER + 1, LATER + 2):
        with suppress(Killed):
            watch = site.watcher(deadly)
            watch.step(start)
            watch.step(start + WAIT_SECONDS)
            watch.step(start + WAIT_SECONDS + 1)
    deadly.deaths.clear()
    watch = site.watcher(deadly)
    for second in range(4):
        watch.step(LATER + 100 + second)
    [(name, _, level, kind)] = site.found()
    assert (name, level, kind) == (job(miner), "critical", "hold")
    first = "SELECT count(*) FROM verdicts WHERE seq = 0 AND stage IN ('submit', 'start')"
    assert rows(site.store, first) == [(24,)]
