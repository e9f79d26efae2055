"""The demo cluster watched with a clock of our own: exactly the verdicts that its own records call for."""

from collections import Counter
from contextlib import closing
from random import Random

import pytest

from tests.kits.outbox import takes
from tests.kits.watching import (
    MORNING,
    FlakyCluster,
    KillableStore,
    Killed,
    expected_verdicts,
    rows,
    stored_verdicts,
    watcher,
)
from tocsin.core.errors import ClusterError, StoreError
from tocsin.demo.cluster import START, DemoCluster
from tocsin.store.database import Store
from tocsin.store.home import Home
from tocsin.watch.watcher import Watcher

MINUTE = 60


def follow(watch: Watcher, cluster: DemoCluster, instants: range) -> None:
    for now in instants:
        cluster.clock.advance_to(now)
        watch.step(now)


def test_every_stage_that_was_reached_has_one_verdict_and_no_other_has(store: Store) -> None:
    cluster = DemoCluster(seed=3)
    watch = watcher(cluster, store)
    watch.step(START)
    last = MORNING + 2 * 3600
    follow(watch, cluster, range(MORNING, last + 1, MINUTE))
    assert stored_verdicts(store) == expected_verdicts(cluster, last)
    stages = Counter(stage for _, stage in stored_verdicts(store))
    assert min(stages[stage] for stage in ("submit", "start", "early", "end")) > 10


def test_a_restart_in_the_middle_changes_nothing(store: Store) -> None:
    cluster = DemoCluster(seed=4)
    watcher(cluster, store).step(START)
    for hour in range(3):
        watch = watcher(cluster, store)
        first = MORNING + hour * 3600
        follow(watch, cluster, range(first, first + 1200, MINUTE))
    last = MORNING + 3 * 3600
    follow(watcher(cluster, store), cluster, range(last, last + 1, MINUTE))
    assert stored_verdicts(store) == expected_verdicts(cluster, last)


@pytest.mark.parametrize("seed", range(6))
def test_a_process_that_is_killed_anywhere_loses_nothing_and_doubles_nothing(store: Store, seed: int) -> None:
    chance, cluster = Random(seed), DemoCluster(seed=seed + 1)
    watcher(cluster, store).step(START)
    mortal = KillableStore(store.engine, store.timeout, deaths=[chance.randrange(12) for _ in range(15)])
    watch, deaths, now = watcher(cluster, mortal, sinks={"log": takes()}), 0, MORNING
    while mortal.deaths or now < MORNING + 3600:
        cluster.clock.advance_to(now)
        try:
            watch.step(now)
        except Killed:
            deaths += 1
            watch = watcher(cluster, mortal, sinks={"log": takes()})
        now += chance.choice((5, 60, 200, 900))
    watch.step(int(cluster.clock.now()))
    assert deaths == 15
    assert stored_verdicts(store) == expected_verdicts(cluster, int(cluster.clock.now()))
    assert rows(store, "SELECT count(*) FROM outbox") == rows(store, "SELECT count(*) FROM verdicts")


def test_what_was_passed_during_an_outage_is_late_and_the_rest_is_not(store: Store) -> None:
    cluster = DemoCluster(seed=5)
    watcher(cluster, store).step(START)
    cluster.clock.advance_to(MORNING)
    watcher(cluster, store).step(MORNING)
    follow(watcher(cluster, store), cluster, range(MORNING + 5, MORNING + 1800, 5))
    away = "SELECT count(*), sum(late) FROM verdicts WHERE at = ?".replace("?", str(MORNING))
    number, late = rows(store, away)[0]
    assert number > 20
    # Some were submitted, started or ended in the last two minutes before.
    assert number * 0.8 < late <= number
    on_time = rows(
        store, f"SELECT stage, count(*), sum(late) FROM verdicts WHERE at > {MORNING} GROUP BY stage"
    )
    shares = {stage: late / number for stage, number, late in on_time}
    assert shares["start"] < 0.2
    assert shares["early"] == shares["end"] == 0


def test_days_away_are_caught_up_with_day_by_day(store: Store) -> None:
    cluster = DemoCluster(seed=6)
    watcher(cluster, store).step(START)
    now = MORNING + 4 * 86400
    cluster.clock.advance_to(now)
    watch = watcher(cluster, store)
    behind = [watch.step(now + number).behind for number in range(6)]
    assert behind == [True, True, True, True, False, False]
    assert stored_verdicts(store) == expected_verdicts(cluster, now)


def test_slurm_is_away_for_a_while(store: Store) -> None:
    cluster = FlakyCluster(seed=7)
    watch = watcher(cluster, store)
    watch.step(START)
    follow(watch, cluster, range(MORNING, MORNING + 1200, MINUTE))
    cluster.controller = False
    for now in range(MORNING + 1200, MORNING + 2400, MINUTE):
        cluster.clock.advance_to(now)
        with pytest.raises(ClusterError):
            watch.step(now)
    cluster.controller = True
    follow(watch, cluster, range(MORNING + 2400, MORNING + 3601, MINUTE))
    assert stored_verdicts(store) == expected_verdicts(cluster, MORNING + 3600)


def test_without_accounting_the_queue_is_followed_and_ends_are_made_good(store: Store) -> None:
    cluster = FlakyCluster(seed=8)
    watch = watcher(cluster, store)
    watch.step(START)
    cluster.accounts = False
    for now in range(MORNING, MORNING + 3600, MINUTE):
        cluster.clock.advance_to(now)
        assert watch.step(now).problems == ["slurmdbd does not answer"]
    assert set(stored_verdicts(store)) < set(expected_verdicts(cluster, now))
    cluster.accounts = True
    follow(watch, cluster, range(MORNING + 3600, MORNING + 3700, MINUTE))
    assert stored_verdicts(store) == expected_verdicts(cluster, MORNING + 3660)


def test_a_store_that_is_locked_for_a_while(store: Store, home: Home) -> None:
    import sqlite3

    cluster = DemoCluster(seed=9)
    watch = watcher(cluster, store)
    watch.step(START)
    follow(watch, cluster, range(MORNING, MORNING + 600, MINUTE))
    with closing(sqlite3.connect(home.database, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        refused = 0
        for now in range(MORNING + 600, MORNING + 1200, 2 * MINUTE):
            cluster.clock.advance_to(now)
            try:
                watch.step(now)
            except StoreError:
                refused += 1
        other.execute("ROLLBACK")
    assert refused
    follow(watch, cluster, range(MORNING + 1200, MORNING + 1801, MINUTE))
    assert stored_verdicts(store) == expected_verdicts(cluster, MORNING + 1800)


def test_tasks_inherit_the_one_verdict_on_the_submission_of_their_array(store: Store) -> None:
    cluster = DemoCluster(seed=3)
    watch = watcher(cluster, store)
    watch.step(START)
    follow(watch, cluster, range(MORNING, MORNING + 5400, 5 * MINUTE))
    tasks = rows(store, "SELECT DISTINCT job_id FROM jobs WHERE task >= 0")
    assert tasks
    assert not rows(store, "SELECT * FROM verdicts WHERE stage = 'submit' AND job LIKE '%\\_%' ESCAPE '\\'")
    for (job_id,) in tasks:
        assert rows(
            store, f"SELECT count(*) FROM verdicts WHERE stage = 'submit' AND job LIKE 'demo:{job_id}@%'"
        ) == [(1,)]


def test_outcomes_are_known_from_when_they_were_seen(store: Store) -> None:
    cluster = DemoCluster(seed=3)
    watch = watcher(cluster, store)
    watch.step(START)
    follow(watch, cluster, range(MORNING, MORNING + 3600, MINUTE))
    seen = rows(store, 'SELECT known_at, "end" FROM jobs WHERE outcome IS NOT NULL AND known_at > 0')
    assert len(seen) > 10
    assert all((known - MORNING) % MINUTE == 0 and known >= end for known, end in seen)
    assert rows(store, "SELECT count(*) FROM jobs WHERE outcome IS NULL AND known_at IS NOT NULL") == [(0,)]
