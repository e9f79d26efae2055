"""The demo's simulation: the same again by its seed, within the machine's bounds, and every failure by its cause."""

import time
from collections import Counter

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tocsin.core.frames import key_text
from tocsin.core.ids import JobKey, parse_key
from tocsin.core.nodelist import expand_nodes
from tocsin.core.outcomes import Outcome
from tocsin.demo.applications import APPLICATIONS
from tocsin.demo.cluster import START, DemoCluster
from tocsin.demo.mistakes import Cause
from tocsin.demo.people import USERS

DAY = 86400

OUTCOMES = {
    Cause.NONE: {Outcome.COMPLETED},
    Cause.TOO_LITTLE_MEMORY: {Outcome.OUT_OF_MEMORY},
    Cause.TOO_LITTLE_TIME: {Outcome.TIMEOUT},
    Cause.MISSING_FILE: {Outcome.FAILED},
    Cause.BROKEN_PROGRAM: {Outcome.FAILED},
    Cause.WRONG_INPUT: {Outcome.CANCELLED},
    Cause.BAD_NODE: {Outcome.FAILED, Outcome.NODE_FAIL},
    Cause.OUTAGE: {Outcome.FAILED, Outcome.REQUEUED},
    Cause.GAVE_UP_WAITING: {Outcome.CANCELLED},
    Cause.CLOSED_BY_HAND: {Outcome.CANCELLED},
    Cause.PREEMPTED: {Outcome.PREEMPTED},
}


def accounting(cluster: DemoCluster) -> pl.DataFrame:
    return pl.concat(cluster.accounting(START, int(cluster.clock.now())))


def keys(frame: pl.DataFrame) -> list[JobKey]:
    return [parse_key(text) for text in frame.select(key_text()).to_series()]


def test_the_same_seed_gives_the_same_jobs_and_scripts() -> None:
    one, two, other = (DemoCluster(seed=seed, days=4) for seed in (3, 3, 4))
    assert_frame_equal(accounting(one), accounting(two))
    assert list(one.scripts()) == list(two.scripts())
    assert not accounting(one).equals(accounting(other))


def test_many_small_steps_lead_where_one_leap_leads() -> None:
    walker = DemoCluster(seed=3)
    for hour in range(0, 4 * 24 + 1):
        walker.clock.advance_to(START + hour * 3600)
        walker.queue()
    assert_frame_equal(accounting(walker), accounting(DemoCluster(seed=3, days=4)))


def test_a_month_has_its_jobs_in_bounded_time() -> None:
    began = time.process_time()
    jobs = accounting(DemoCluster(seed=2, days=30))
    assert time.process_time() - began < 60  # some 4 s on one core of 2024
    assert 8_000 < jobs.height < 20_000


def test_no_node_is_given_away_twice(cluster: DemoCluster, jobs: pl.DataFrame) -> None:
    nodes = {node.name: node for node in cluster.machine().nodes}
    now = int(cluster.clock.now())
    placed = (
        jobs.filter(pl.col("start").is_not_null())
        .with_columns(
            node=pl.col("node_list").map_elements(expand_nodes, return_dtype=pl.List(pl.String)),
            end=pl.col("end").fill_null(now + 1),
            cpus=pl.col("alloc_cpus") // pl.col("alloc_nodes"),
            gpus=pl.col("alloc_gpus") // pl.col("alloc_nodes"),
        )
        .explode("node")
    )
    amounts = ("cpus", "alloc_memory", "gpus")
    taken = placed.select("node", pl.col("start").alias("at"), *amounts)
    back = placed.select("node", pl.col("end").alias("at"), *amounts).with_columns(-pl.col(amounts))
    used = (
        pl.concat([back, taken])
        .group_by("node", "at")
        .agg(pl.col(amounts).sum())
        .sort("node", "at")
        .with_columns(pl.col(amounts).cum_sum().over("node"))
        .group_by("node")
        .agg(pl.col(amounts).max())
    )
    assert used.height > 15
    for node, cpus, memory, gpus in used.iter_rows():
        has = nodes[node]
        assert cpus <= (has.cpus or 0)
        assert memory <= (has.memory or 0)
        assert gpus <= has.gpus


def test_times_and_usage_are_in_order(jobs: pl.DataFrame) -> None:
    started = jobs.filter(pl.col("start").is_not_null())
    assert started.filter(
        (pl.col("submit") > pl.col("eligible")) | (pl.col("eligible") > pl.col("start"))
    ).is_empty()
    ended = started.filter(pl.col("end").is_not_null())
    assert ended.filter(pl.col("elapsed") != pl.col("end") - pl.col("start")).is_empty()
    assert ended.filter(pl.col("elapsed") < 0).is_empty()
    assert ended.filter(pl.col("elapsed") > pl.col("time_limit") + 30).is_empty()
    assert ended.filter(pl.col("max_memory") > pl.col("alloc_memory")).is_empty()
    assert ended.filter(pl.col("cpu_seconds") > pl.col("elapsed") * pl.col("alloc_cpus")).is_empty()
    parts = pl.col("user_cpu_seconds") + pl.col("system_cpu_seconds")
    assert ended.filter(pl.col("cpu_seconds") != parts).is_empty()
    assert ended.filter(pl.col("energy") < 0).is_empty()


def test_requests_keep_within_their_partition(cluster: DemoCluster, jobs: pl.DataFrame) -> None:
    for partition in cluster.machine().partitions:
        mine = jobs.filter(pl.col("partition") == partition.name)
        assert not mine.is_empty()
        assert mine["time_limit"].max() <= partition.max_time  # type: ignore[operator]  # polars' max is a union
        assert mine["req_nodes"].max() <= partition.max_nodes  # type: ignore[operator]


@pytest.mark.parametrize("seed", [1, 2, 7])
def test_the_share_of_outcomes_is_that_of_a_cluster(seed: int) -> None:
    outcomes = accounting(DemoCluster(seed=seed, days=10))["outcome"].drop_nulls()
    share = {name: number / len(outcomes) for name, number in Counter(outcomes).items()}
    assert 0.7 < share["completed"] < 0.9
    assert 0.03 < share["failed"] < 0.2
    assert 0.02 < share["out_of_memory"] < 0.15
    assert 0.01 < share["timeout"] < 0.1
    assert {"cancelled", "node_fail", "preempted"} <= share.keys()


def test_every_end_has_a_cause_that_can_lead_to_it(cluster: DemoCluster, jobs: pl.DataFrame) -> None:
    seen = set()
    for key, job in zip(keys(jobs), jobs.iter_rows(named=True), strict=True):
        truth = cluster.truth(key)
        if job["outcome"] is None:
            assert truth.cause is None
            continue
        assert truth.cause is not None
        seen.add(truth.cause)
        assert job["outcome"] in OUTCOMES[truth.cause]
        if truth.cause is Cause.TOO_LITTLE_MEMORY:
            assert truth.memory > job["alloc_memory"]
        elif truth.cause is Cause.TOO_LITTLE_TIME:
            assert truth.seconds > job["time_limit"]
        elif truth.cause is Cause.NONE:
            assert truth.memory <= job["alloc_memory"]
            assert truth.seconds == job["elapsed"]
        elif truth.cause is Cause.GAVE_UP_WAITING:
            assert job["start"] is None
    assert seen >= set(OUTCOMES) - {Cause.GAVE_UP_WAITING}


def test_a_mistyped_path_stands_in_the_script(cluster: DemoCluster, jobs: pl.DataFrame) -> None:
    batch = jobs.filter(pl.col("script").is_not_null() & pl.col("outcome").is_in(["failed", "completed"]))
    counted = Counter[Cause | None]()
    for key, name in zip(keys(batch), batch["name"], strict=True):
        application, _, system = name.partition("-")
        cause, text = cluster.truth(key).cause, cluster.script(key)
        assert text is not None
        counted[cause] += 1
        right = APPLICATIONS[application].program.input.format(system) in text
        assert right == (cause is not Cause.MISSING_FILE)
    assert counted[Cause.MISSING_FILE] > 20


def test_a_failing_node_takes_its_jobs_at_one_instant(cluster: DemoCluster, jobs: pl.DataFrame) -> None:
    hit = [
        (job["end"], job["node_list"])
        for key, job in zip(keys(jobs), jobs.iter_rows(named=True), strict=True)
        if cluster.truth(key).cause is Cause.BAD_NODE
    ]
    shared = set[str]()
    for instant in {end for end, _ in hit}:
        common = set.intersection(*(set(expand_nodes(nodes)) for end, nodes in hit if end == instant))
        assert common
        shared |= common if len(common) == 1 else set()
    assert len(hit) > 10
    assert len(shared) <= 3


def test_some_come_back_after_a_failure_and_one_does_so_unchanged(jobs: pl.DataFrame) -> None:
    plain = jobs.filter(pl.col("task").is_null() & pl.col("script").is_not_null())
    repeated = (
        plain.filter(pl.col("outcome") == "failed")
        .group_by("user", "script")
        .agg(pl.col("job_id").n_unique().alias("times"))
        .sort("times")
    )
    assert repeated["user"][-1] == "linus"
    assert repeated["times"][-1] >= 5


def test_a_requeue_keeps_its_id_and_is_submitted_when_the_old_record_ended(jobs: pl.DataFrame) -> None:
    again = (
        jobs.sort("job_id", "task", "submit")
        .with_columns(after=pl.col("submit").shift(-1).over("job_id", "task"))
        .filter(pl.col("after").is_not_null())
    )
    assert again.height > 5
    assert set(again["outcome"]) <= {"node_fail", "requeued", "preempted"}
    assert (again["end"] == again["after"]).all()
    assert again["requeue"].all()


def test_people_work_by_day_and_on_weekdays(jobs: pl.DataFrame) -> None:
    sent = jobs.unique("job_id").with_columns(at=pl.from_epoch("submit", time_unit="s"))
    hours = Counter(sent["at"].dt.hour())
    days = Counter(sent["at"].dt.weekday())
    assert hours[10] + hours[15] > 5 * (hours[3] + hours[4])
    assert days[2] > 1.5 * days[6]


def test_whatever_anybody_submits_can_start_on_an_empty_machine() -> None:
    for application in APPLICATIONS:
        for user in USERS:
            cluster = DemoCluster(seed=1)
            key = cluster.submit(application, user=user, size=3.0)
            cluster.clock.advance_to(START + 10)
            job = cluster.queue().filter(pl.col("job_id") == key.job_id)
            started = job["start"].drop_nulls()
            assert len(started), (application, user)
