"""A watch of traces rings once for each job, survives what sources do, and loses nothing when it is killed."""

from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest

from tests.kits.simulated_windows import WAITS, jobs
from tests.kits.trace_rounds import Lab, trained
from tests.kits.watching import NOON, KillableStore, Killed, rows
from tocsin.core.errors import ClusterError, SourceError
from tocsin.core.frames import SCHEMA, Samples
from tocsin.core.verdict import Level
from tocsin.store.database import Store
from tocsin.store.home import Home
from tocsin.traces.fitted import FittedTraces


@pytest.fixture(scope="module")
def fitted() -> FittedTraces:
    return trained()


@pytest.fixture
def lab(store: Store, home: Home, fitted: FittedTraces) -> Lab:
    return Lab(store, home.windows, fitted)


def given(store: Store) -> list[tuple[str, int, str]]:
    return rows(store, "SELECT job, seq, level FROM verdicts ORDER BY job, seq")


def test_a_job_that_begins_to_wait_rings_once_and_names_its_cpus(lab: Lab) -> None:
    lab.add({"job_id": 1}, {"job_id": 2})
    lab.nodes.computes(1, 0, 400, cpus=(0, 1))
    lab.nodes.computes(2, 0, 200, cpus=(2, 3))
    lab.nodes.computes(2, 201, 400, WAITS, cpus=(2, 3))
    assert lab.run(60, 203) == []
    [verdict] = lab.run(213, 400)
    assert verdict.job == f"lab:2@{NOON}"
    assert verdict.level is Level.WARNING
    assert verdict.at <= NOON + 200 + 20 + 3 * 10 + 10, "within three windows of the first that is wholly bad"
    [finding] = verdict.findings
    assert finding.text.startswith("CPU 2–3 of n1 have waited for I/O")
    assert finding.group == f"high_iowait@{verdict.known_until}"
    assert [message for (message,) in rows(lab.store, "SELECT reference FROM outbox")] == [
        verdict.to_json()["id"]
    ]


def test_it_is_updated_when_it_is_over_and_rings_again_when_it_begins_anew(lab: Lab) -> None:
    lab.add({"job_id": 1})
    for first, last, level in ((0, 100, None), (101, 200, WAITS), (201, 300, None), (301, 400, WAITS)):
        lab.nodes.computes(1, first, last, *([level] if level else []))
    found = lab.run(60, 410)
    assert [(v.seq, v.level) for v in found] == [
        (0, Level.WARNING),
        (1, Level.OK),
        (2, Level.WARNING),
    ]


def test_jobs_that_ring_for_one_cause_are_one_group(lab: Lab) -> None:
    lab.add(*({"job_id": number} for number in range(1, 5)))
    for number in range(1, 5):
        lab.nodes.computes(number, 0, 100, node=f"n{number % 2}", cpus=(number,))
    for number in (1, 2):
        lab.nodes.computes(number, 101, 400, WAITS, node=f"n{number % 2}", cpus=(number,))
    lab.nodes.computes(3, 101, 200, node="n1", cpus=(3,))
    lab.nodes.computes(3, 201, 400, WAITS, node="n1", cpus=(3,))
    lab.nodes.computes(4, 101, 400, (0.1, 0.85, 0.0), node="n0", cpus=(4,))
    found = {verdict.job: verdict.findings[0] for verdict in lab.run(60, 400)}
    group = {job.removeprefix("lab:").partition("@")[0]: finding.group for job, finding in found.items()}
    assert group["1"] == group["2"] == group["3"], "the third joined while the others still rang"
    assert group["4"] != group["1"], "another channel is another cause"
    assert any("3 jobs have this alarm" in line for line in found[f"lab:3@{NOON}"].evidence)


def test_a_job_that_the_store_does_not_have_is_taken_from_the_queue(lab: Lab) -> None:
    lab.queue = lambda: jobs({"job_id": 5, "raw_id": 5}).select(SCHEMA.names())
    lab.nodes.computes(5, 0, 400, WAITS)
    assert [verdict.job for verdict in lab.run(60, 100)] == [f"lab:5@{NOON}"]
    assert rows(lab.store, "SELECT job_id FROM jobs") == [(5,)]


def test_without_a_queue_unknown_jobs_are_reported_and_the_others_ring(lab: Lab) -> None:
    def down() -> pl.DataFrame:
        raise ClusterError("slurmctld does not answer")

    lab.queue = down
    lab.add({"job_id": 1})
    lab.nodes.computes(1, 0, 400, WAITS)
    lab.nodes.computes(99, 0, 400, cpus=(1,))
    problems = lab.start().step(NOON + 60).problems
    assert any("slurmctld does not answer" in problem for problem in problems)
    assert any("such as 99" in problem for problem in problems)
    lab.run(70, 100)
    assert given(lab.store) == [(f"lab:1@{NOON}", 0, "warning")]


def test_a_source_that_is_down_for_a_while_loses_no_alarm(lab: Lab) -> None:
    lab.add({"job_id": 1})
    lab.nodes.computes(1, 0, 100)
    lab.nodes.computes(1, 101, 400, WAITS)
    lab.run(60, 110)
    lab.nodes.broken = "Prometheus does not answer"
    assert lab.rounds
    for second in range(120, 200, 10):
        with pytest.raises(SourceError):
            lab.rounds.step(NOON + second)
    lab.nodes.broken = ""
    [verdict] = lab.run(200, 200)
    assert NOON + 110 < verdict.known_until <= NOON + 150, "as of the window that rang"
    assert verdict.at == NOON + 200


def test_late_partial_and_impossible_samples_are_counted_and_survived(lab: Lab) -> None:
    lab.add({"job_id": 1})
    lab.nodes.computes(1, 0, 100)
    lab.nodes.computes(1, 101, 600, WAITS)

    def spoiled(samples: Samples) -> Samples:
        cpus = samples.cpus
        odd = cpus.head(2).with_columns(pl.lit(float("nan"), pl.Float32).alias("user"))
        ahead = cpus.tail(1).with_columns(pl.col("at") + 5000)
        twice = cpus.tail(3)
        late = cpus.filter(pl.col("at") % 17 != 0)
        return Samples(pl.concat([late, odd, ahead, twice]), samples.jobs)

    lab.nodes.change = spoiled
    verdicts = lab.run(60, 300)
    assert [verdict.level for verdict in verdicts] == [Level.WARNING]
    assert lab.rounds
    assert lab.rounds.counts.dropped["samples from the future (is a node's clock ahead?)"] > 0
    assert lab.rounds.counts.dropped["samples with impossible values"] > 0


def test_a_cpu_that_vanishes_is_no_alarm(lab: Lab) -> None:
    lab.add({"job_id": 1})
    lab.nodes.computes(1, 0, 400, cpus=(0,))
    lab.nodes.computes(1, 0, 150, cpus=(1,))
    assert lab.run(60, 400) == []


def test_without_a_model_it_says_so_and_keeps_the_samples(lab: Lab) -> None:
    lab.add({"job_id": 1})
    lab.nodes.computes(1, 0, 400, WAITS)
    rounds = lab.start()
    rounds._fitted = lambda: None
    done = rounds.step(NOON + 100)
    assert done.verdicts == []
    assert any("tocsin traces train" in problem for problem in done.problems)
    kept = rounds._kept.samples("lab", NOON, NOON + 100)
    assert kept.cpus.height > 50


def test_a_task_that_differs_from_its_siblings_rings(lab: Lab) -> None:
    lab.add(*({"job_id": 7, "raw_id": 100 + task, "task": task, "name": "new"} for task in range(6)))
    for task in range(6):
        level = (0.5, 0.05, 0.45) if task == 5 else (0.88, 0.05, 0.02)
        lab.nodes.computes(100 + task, 0, 400, level, cpus=(task,))
    [verdict] = lab.run(60, 200)
    assert verdict.job == f"lab:7_5@{NOON}"
    assert "the other tasks of its array" in verdict.findings[0].text


@pytest.mark.parametrize("deaths", range(8))
def test_killed_at_any_point_no_verdict_is_lost_or_given_twice(
    home: Home, fitted: FittedTraces, deaths: int, store: Store
) -> None:
    """Killed before and after each write to the store, and started again 40 s later."""
    killable = KillableStore(store.engine, store.timeout)
    lab = Lab(killable, home.windows, fitted)
    lab.add({"job_id": 1}, {"job_id": 2})
    killable.deaths[:] = [deaths]
    for number in (1, 2):
        lab.nodes.computes(number, 0, 100 * number, cpus=(number,))
        lab.nodes.computes(number, 100 * number + 1, 350, WAITS, cpus=(number,))
        lab.nodes.computes(number, 351, 500, cpus=(number,))
    second = 60
    while second <= 450:
        try:
            lab.run(second, second)
            second += 10
        except Killed:
            lab.rounds = None
            second += 40
    expected = [(f"lab:{n}@{NOON}", seq, level) for n in (1, 2) for seq, level in ((0, "warning"), (1, "ok"))]
    assert given(store) == expected
    assert len(rows(store, "SELECT reference FROM outbox")) == len(expected)


def test_a_restart_between_two_rounds_repeats_nothing(lab: Lab) -> None:
    lab.add({"job_id": 1})
    lab.nodes.computes(1, 0, 400, WAITS)
    assert len(lab.run(60, 100)) == 1
    for second in range(110, 200, 10):
        lab.rounds = None
        assert lab.run(second, second) == []


def test_after_a_long_outage_it_begins_with_the_last_minutes(lab: Lab, tmp_path: Path) -> None:
    lab.add({"job_id": 1})
    lab.nodes.computes(1, 0, 9000)
    lab.run(60, 100)
    lab.rounds = None
    lab.nodes.asked.clear()
    with suppress(SourceError):
        lab.run(8000, 8000)
    assert min(since for since, _ in lab.nodes.asked) > NOON + 8000 - 1000
