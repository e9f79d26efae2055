"""The demo behind the ports: it knows what is known at its clock's instant, and obeys hold and release."""

from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING

import polars as pl
import pytest

from tocsin.core.errors import ClusterError, InputError, NotFound
from tocsin.core.frames import SCHEMA
from tocsin.core.ids import JobKey, array_size
from tocsin.core.nodelist import expand_nodes
from tocsin.core.units import parse_duration, parse_memory
from tocsin.demo.cluster import START, DemoClock, DemoCluster

if TYPE_CHECKING:
    from tocsin.core.ports import Clock, Cluster

GIB = 1024**3
DAY = 86400


def state(cluster: DemoCluster, key: JobKey) -> str:
    frame = pl.concat(cluster.accounting(key.submit, key.submit + 30 * DAY))
    found = frame.filter(
        (pl.col("job_id") == key.job_id)
        & pl.col("task").eq_missing(pl.lit(key.task, dtype=pl.Int64))
        & (pl.col("submit") == key.submit)
    )
    return str(found["state"][0]) if found.height else ""


def wait(cluster: DemoCluster, seconds: int) -> None:
    cluster.clock.advance_to(cluster.clock.now() + seconds)


def test_it_is_a_cluster_and_has_a_clock() -> None:
    cluster: Cluster = DemoCluster(seed=1)
    clock: Clock = DemoClock(5)
    assert cluster.name == "demo"
    assert clock.now() == 5


def test_the_clock_does_not_go_back() -> None:
    clock = DemoClock(100)
    clock.advance_to(100)
    with pytest.raises(InputError, match="is at 100 and cannot go back to 99"):
        clock.advance_to(99)


def test_nothing_is_shown_before_it_was_known() -> None:
    cluster = DemoCluster(seed=5)
    running_seen = 0
    for now in range(START, START + 6 * DAY, 13_577):
        cluster.clock.advance_to(now)
        for frame in (cluster.queue(), *cluster.accounting(START, now + 90 * DAY)):
            assert frame.schema == SCHEMA
            for instant in ("submit", "start", "end"):
                assert frame.filter(pl.col(instant) > now).is_empty()
            pending = frame.filter(pl.col("state") == "PENDING")
            running = frame.filter(pl.col("state") == "RUNNING")
            later = ["outcome", "end", "exit_code", "exit_signal", "elapsed", "max_memory", "energy"]
            assert pl.concat([pending, running]).select(pl.col(later).is_null().all()).row(0) == (True,) * 7
            assert pending.select(pl.col("start", "node_list").is_null().all()).row(0) == (True, True)
            assert running.select(pl.col("start", "node_list").is_not_null().all()).row(0) == (True, True)
            ended = frame.filter(~pl.col("state").is_in(["PENDING", "RUNNING"]))
            assert ended.select(pl.col("outcome", "end").is_not_null().all()).row(0) == (True, True)
            running_seen += running.height
    assert running_seen > 100


def test_the_queue_forgets_an_ended_job_after_five_minutes() -> None:
    cluster = DemoCluster(seed=1)
    key = cluster.submit("reduce", user="rosa", mistake="path")
    wait(cluster, 60)
    end = int(cluster.queue().filter(pl.col("job_id") == key.job_id)["end"][0])
    cluster.clock.advance_to(end + 300)
    assert key.job_id in cluster.queue()["job_id"]
    wait(cluster, 1)
    assert key.job_id not in cluster.queue()["job_id"]
    assert state(cluster, key) == "FAILED"


def test_accounting_gives_those_alive_in_the_window(cluster: DemoCluster, jobs: pl.DataFrame) -> None:
    since, until = START + 3 * DAY, START + 3 * DAY + 7200
    found = pl.concat(cluster.accounting(since, until))
    alive = jobs.filter((pl.col("submit") < until) & (pl.col("end").is_null() | (pl.col("end") >= since)))
    assert 10 < found.height < jobs.height
    assert found.height == alive.height


@pytest.mark.parametrize(
    ("submit", "expected"),
    [
        (lambda c: c.submit("mdrun", user="ada"), ("COMPLETED", 0, 0)),
        (lambda c: c.submit("mdrun", user="ada", memory=2 * GIB), ("OUT_OF_MEMORY", 0, 125)),
        (lambda c: c.submit("mdrun", user="ada", time_limit=600), ("TIMEOUT", 0, 0)),
        (lambda c: c.submit("foam", user="ada", mistake="path"), ("FAILED", 2, 0)),
        (lambda c: c.submit("mdrun", user="ada", mistake="module"), ("FAILED", 127, 0)),
        (lambda c: c.submit("mdrun", user="ada", mistake="rubbish"), ("CANCELLED", 0, 15)),
    ],
)
def test_a_job_ends_by_what_is_wrong_with_it(
    submit: Callable[[DemoCluster], JobKey], expected: tuple[str, int, int]
) -> None:
    cluster = DemoCluster(seed=1)
    key = submit(cluster)
    wait(cluster, DAY)
    frame = pl.concat(cluster.accounting(START, START + DAY)).filter(pl.col("job_id") == key.job_id)
    assert frame.select("state", "exit_code", "exit_signal").row(0) == expected
    assert (frame["cancelled_by"][0] == frame["uid"][0]) == (expected[0] == "CANCELLED")


def test_a_held_job_does_not_start_until_it_is_released() -> None:
    cluster = DemoCluster(seed=1)
    key = cluster.submit("lammps", user="niels")
    cluster.hold(key, "looks like the last three that failed")
    wait(cluster, 3600)
    assert state(cluster, key) == "PENDING"
    cluster.release(key)
    wait(cluster, 60)
    assert state(cluster, key) == "RUNNING"
    with pytest.raises(ClusterError, match="is RUNNING, not pending"):
        cluster.hold(key, "too late")


def test_a_held_array_starts_no_further_task() -> None:
    cluster = DemoCluster(seed=1)
    key = cluster.submit("sweep", user="mary")
    cluster.hold(key, "first look at its script")
    wait(cluster, 3600)
    assert state(cluster, key) == "PENDING"
    cluster.release(key)
    wait(cluster, 60)
    assert state(cluster, key._replace(task=1)) == "RUNNING"


def test_a_job_that_nobody_submitted_is_not_found() -> None:
    cluster = DemoCluster(seed=1)
    for action in (cluster.script, cluster.release, cluster.truth):
        with pytest.raises(NotFound, match='no job demo:4711@1 in cluster "demo"'):
            action(JobKey("demo", 4711, None, 1))
    key = cluster.submit("reduce", user="rosa")
    with pytest.raises(NotFound, match="no job lab:"):
        cluster.script(key._replace(cluster="lab"))


def test_an_unknown_application_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match='no application "fluent"; it has mdrun, relax'):
        DemoCluster(seed=1).submit("fluent", user="ada")


def test_an_array_waits_as_one_record_and_runs_as_many() -> None:
    cluster = DemoCluster(seed=1)
    key = cluster.submit("sweep", user="mary")
    waiting = cluster.queue().row(0, named=True)
    size = waiting["array_tasks"]
    assert (waiting["task"], waiting["raw_id"]) == (None, key.job_id)
    assert array_size(waiting["array"]) == size >= 10
    seen_both = False
    raw_ids: dict[int, int] = {}
    for _ in range(3000):
        wait(cluster, 60)
        mine = pl.concat(cluster.accounting(START, START + 9 * DAY)).filter(pl.col("job_id") == key.job_id)
        tasks = mine.filter(pl.col("task").is_not_null())
        whole = mine.filter(pl.col("task").is_null())
        assert whole.height == (tasks.height < size)
        assert tasks["array"].null_count() == tasks.height
        seen_both |= bool(whole.height and tasks.height)
        if not whole.height and tasks["end"].null_count() == 0:
            break
    raw_ids = dict(tasks.select("task", "raw_id").iter_rows())
    assert sorted(raw_ids) == list(range(1, size + 1))
    assert len(set(raw_ids.values())) == size
    assert raw_ids[size] == key.job_id  # the last to start takes the array's own
    assert set(tasks["submit"]) == {key.submit}
    assert cluster.script(key) == cluster.script(key._replace(task=3))


def test_a_throttled_array_runs_no_more_than_it_may() -> None:
    cluster = DemoCluster(seed=1, days=8)
    throttled = {}
    for frame in cluster.accounting(START, START + 8 * DAY):
        for key, script in frame.filter(pl.col("task").is_not_null()).select("job_id", "script").iter_rows():
            text = dict(cluster.scripts())[script] if key not in throttled else ""
            for line in text.splitlines():
                if "%" in line and line.startswith(("#SBATCH --array", "#SBATCH -a")):
                    throttled[key] = int(line.partition("%")[2])
    assert len(throttled) > 3
    jobs = pl.concat(cluster.accounting(START, START + 8 * DAY))
    for job_id, most in list(throttled.items())[:20]:
        tasks = jobs.filter((pl.col("job_id") == job_id) & pl.col("start").is_not_null())
        steps = pl.concat(
            [
                tasks.select(at="start", step=pl.lit(1)),
                tasks.filter(pl.col("end").is_not_null()).select(at="end", step=pl.lit(-1)),
            ]
        ).sort("at", "step")
        assert steps["step"].cum_sum().max() <= most  # type: ignore[operator]  # polars' max is a union


def test_the_machine_shows_who_is_busy(cluster: DemoCluster) -> None:
    machine = cluster.machine()
    assert 20 <= len(machine.nodes) <= 40
    running = cluster.queue().filter(pl.col("state") == "RUNNING")
    busy = {name for nodes in running["node_list"] for name in expand_nodes(nodes)}
    assert busy == {node.name for node in machine.nodes if node.state in ("MIXED", "ALLOCATED")}
    assert [partition.name for partition in machine.partitions if partition.default] == ["main"]
    names = {node.name for node in machine.nodes}
    assert all(set(expand_nodes(partition.node_list or "")) <= names for partition in machine.partitions)


def test_each_script_says_what_the_job_asked_for(cluster: DemoCluster, jobs: pl.DataFrame) -> None:
    texts = dict(cluster.scripts())
    assert all(sha256(text.encode()).hexdigest() == name for name, text in texts.items())
    batch = jobs.filter(~pl.col("interactive"))
    assert batch["script"].null_count() == 0
    assert set(batch["script"]) == set(texts)
    assert jobs.filter(pl.col("interactive"))["script"].drop_nulls().is_empty()
    unsaid = 0
    for job in batch.unique("script").iter_rows(named=True):
        text = texts[job["script"]]
        assert text.startswith("#!/bin/bash\n#SBATCH ")
        assert "@" not in text
        said = {}
        for line in text.splitlines():
            if line.startswith("#SBATCH -"):
                option, _, value = line.removeprefix("#SBATCH ").replace("=", " ", 1).partition(" ")
                said[option.lstrip("-")] = value
        assert said.get("J", said.get("job-name")) == job["name"]
        assert int(said.get("N", said.get("nodes", ""))) == job["req_nodes"]
        limit = said.get("t", said.get("time"))
        assert limit is None or parse_duration(limit) == job["time_limit"]
        assert "mem" not in said or parse_memory(said["mem"]) == job["req_memory"]
        unsaid += limit is None
    assert unsaid > 5  # new users leave it to the defaults


def test_an_interactive_job_has_no_script() -> None:
    cluster = DemoCluster(seed=1)
    assert cluster.script(cluster.submit("shell", user="emmy")) is None


def test_the_queue_shows_a_requeued_job_once_as_it_waits_again(jobs: pl.DataFrame) -> None:
    old = jobs.filter(pl.col("requeue") & pl.col("outcome").is_in(["node_fail", "requeued", "preempted"]))
    job_id, end = old.select("job_id", "end").row(0)
    cluster = DemoCluster(seed=7)
    cluster.clock.advance_to(end + 60)
    shown = cluster.queue().filter((pl.col("job_id") == job_id) & pl.col("task").eq_missing(old["task"][0]))
    assert shown.select("state", "submit").rows() == [("PENDING", end)]
