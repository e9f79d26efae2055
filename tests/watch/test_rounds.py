"""Rounds on a cluster that tells what we want: stubs, ends that only the queue knows, scripts, what is kept."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import pytest

from tests.kits.watching import (
    NOON,
    FakeCluster,
    KillableStore,
    Killed,
    ended,
    frame,
    rows,
    running,
    stored_verdicts,
    watcher,
)
from tocsin.core.detector import Known, Parts
from tocsin.core.errors import ClusterError
from tocsin.core.ids import JobKey
from tocsin.core.ports import Subscription
from tocsin.core.stages import Stage
from tocsin.judge.answers import DetectorModels, Model
from tocsin.judge.judge import Judge
from tocsin.store.database import Store
from tocsin.store.home import Home
from tocsin.store.jobs import upsert
from tocsin.watch import watcher as watcher_module
from tocsin.watch.script_reader import ScriptReader
from tocsin.watch.watcher import Watcher

KEY = f"lab:1@{NOON}"


def stages(store: Store, job: str = KEY) -> list[str]:
    return [stage for key, stage in stored_verdicts(store) if key == job]


def test_jobs_that_have_ended_are_not_counted_in_the_queue(store: Store) -> None:
    """slurmctld shows them for MinJobAge; squeue lists them only with -t all."""
    cluster = FakeCluster()
    cluster.queued = [
        {},
        running(NOON, job_id=2),
        {**running(NOON, job_id=3), "state": "SUSPENDED"},
        {**running(NOON, job_id=4), "state": "COMPLETING"},
        ended(NOON, NOON + 3, job_id=5),
        ended(NOON, NOON + 3, "FAILED", job_id=6),
    ]
    assert watcher(cluster, store).step(NOON + 5).queued == 4


def test_a_stage_is_judged_when_it_is_reached_and_not_before(store: Store) -> None:
    cluster = FakeCluster()
    watch = watcher(cluster, store)
    watch.step(NOON - 10)
    cluster.queued = [{}]
    assert [v.stage for v in watch.step(NOON + 5).verdicts] == ["submit"]
    cluster.queued = [running(NOON + 7)]
    assert [v.stage for v in watch.step(NOON + 10).verdicts] == ["start"]
    assert watch.step(NOON + 126).verdicts == []
    assert [v.stage for v in watch.step(NOON + 127).verdicts] == ["early"]
    cluster.queued, cluster.accounted = [], [ended(NOON + 7, NOON + 300)]
    last = watch.step(NOON + 305)
    assert [(v.stage, v.late) for v in last.verdicts] == [("end", False)]
    assert watch.step(NOON + 310).verdicts == []


@pytest.mark.parametrize(("end", "reached"), [(119, False), (120, True)])
def test_early_is_for_jobs_that_live_for_two_minutes(store: Store, end: int, reached: bool) -> None:
    cluster = FakeCluster()
    watch = watcher(cluster, store)
    watch.step(NOON)
    cluster.accounted = [ended(NOON, NOON + end)]
    watch.step(NOON + 200)
    assert ("early" in stages(store)) is reached


def test_a_job_that_was_cancelled_while_it_waited_was_submitted_and_ended(store: Store) -> None:
    cluster = FakeCluster()
    watch = watcher(cluster, store)
    watch.step(NOON)
    cluster.accounted = [ended(None, NOON + 50, "CANCELLED")]
    watch.step(NOON + 100)
    assert stages(store) == ["end", "submit"]


def test_what_ended_before_the_watch_began_is_not_watched(store: Store) -> None:
    cluster = FakeCluster(queued=[ended(NOON, NOON + 5)], accounted=[ended(NOON, NOON + 5)])
    watch = watcher(cluster, store)
    watch.step(NOON + 6)
    watch.step(NOON + 300)
    assert stored_verdicts(store) == []


def test_what_ended_between_an_import_and_the_first_watch_is_stored_without_verdicts(store: Store) -> None:
    """Training on the imported jobs may take hours; the jobs of these hours must not run for ever."""
    hours = NOON + 3 * 3600
    upsert(store, frame(running(NOON, user="alice")))
    unseen = ended(NOON + 60, NOON + 90, "FAILED", job_id=2, submit=NOON + 60)
    cluster = FakeCluster(accounted=[ended(NOON, NOON + 600), unseen])
    watch = watcher(cluster, store)
    watch.step(hours)
    watch.step(hours + 60)
    assert rows(store, "SELECT job_id, outcome, known_at FROM jobs ORDER BY job_id") == [
        (1, "completed", hours),
        (2, "failed", hours),
    ]
    assert stored_verdicts(store) == []


def test_a_first_watch_reads_a_month_of_accounting_at_most(store: Store) -> None:
    month = 30 * 86400
    upsert(store, frame(running(NOON)))
    cluster = FakeCluster()
    watch = watcher(cluster, store)
    rounds = [watch.step(NOON + 2 * month)]
    while rounds[-1].behind:
        rounds.append(watch.step(NOON + 2 * month + len(rounds)))
    assert 25 < len(rounds) < 35, "day by day"


def test_a_stub_of_accounting_makes_no_job(store: Store) -> None:
    cluster = FakeCluster()
    watch = watcher(cluster, store)
    watch.step(NOON)
    cluster.queued = [ended(NOON, NOON + 3, job_id=7, task=2)]
    # For some seconds accounting shows the task as a plain job of its raw id, without partition and request.
    cluster.accounted = [ended(NOON, NOON + 3, job_id=9, partition=None)]
    watch.step(NOON + 4)
    assert stored_verdicts(store) == [(f"lab:7@{NOON}", "submit"), (f"lab:7_2@{NOON}", "start")]
    cluster.accounted = [ended(NOON, NOON + 3, job_id=7, task=2, elapsed=3, max_memory=5)]
    watch.step(NOON + 9)
    assert (f"lab:7_2@{NOON}", "end") in stored_verdicts(store)
    assert rows(store, "SELECT max_memory FROM jobs WHERE task = 2") == [(5,)]
    assert rows(store, "SELECT count(*) FROM jobs WHERE job_id = 9") == [(0,)]


def test_an_outcome_in_the_queue_counts_at_once_and_its_verdict_waits_for_the_usage(store: Store) -> None:
    cluster = FakeCluster(queued=[running(NOON)])
    watch = watcher(cluster, store)
    watch.step(NOON + 3)
    cluster.queued = [ended(NOON, NOON + 5, "FAILED", req_memory=4096, max_memory=None)]
    watch.step(NOON + 8)
    assert rows(store, "SELECT outcome, known_at, elapsed FROM jobs") == [("failed", NOON + 8, 5)]
    assert stages(store) == ["start", "submit"]
    asked = frame({"job_id": 2, "submit": NOON + 9})
    names = ["user.unsuccessful", "user.ended", "user.memory_used"]
    failing, count, memory = watch.ledger.peek().features(asked, stage=Stage.SUBMIT, names=names).row(0)
    assert (failing, count, memory) == (1, 1, None)
    cluster.accounted = [ended(NOON, NOON + 5, "FAILED", elapsed=4, max_memory=1024)]
    watch.step(NOON + 14)
    assert stages(store) == ["end", "start", "submit"]
    assert rows(store, "SELECT known_at, elapsed, max_memory FROM jobs") == [(NOON + 8, 4, 1024)]
    watch.step(NOON + 20)
    failing, count, memory = watch.ledger.peek().features(asked, stage=Stage.SUBMIT, names=names).row(0)
    assert (failing, count, memory) == (1, 1, 0.25)


def test_an_end_that_leaves_the_queue_before_accounting_tells_it_keeps_its_outcome(store: Store) -> None:
    cluster = FakeCluster(queued=[running(NOON)])
    watch = watcher(cluster, store)
    watch.step(NOON + 3)
    cluster.queued = [ended(NOON, NOON + 5, "TIMEOUT")]
    watch.step(NOON + 8)
    cluster.queued = []
    watch.step(NOON + 20)
    assert "end" not in stages(store)
    watch = watcher(cluster, store)  # a restart is no news
    watch.step(NOON + 40)
    assert "end" not in stages(store)
    watch.step(NOON + 66)
    assert "end" in stages(store)
    for hour in range(1, 31):
        watch.step(NOON + hour * 3600)
    assert rows(store, "SELECT outcome, known_at FROM jobs") == [("timeout", NOON + 8)]


def test_others_hear_of_an_end_once(store: Store) -> None:
    every = Subscription(kinds=["job"], levels=[], most=100)
    cluster = FakeCluster(queued=[running(NOON), running(NOON, job_id=2)])
    watch = watcher(cluster, store, sinks={"kafka": every})
    for at in (3, 8, 70, 75):
        watch.step(NOON + at)
        shown = ended(NOON, NOON + 5)
        cluster.queued = [shown, {**shown, "job_id": 2}]
        cluster.accounted = [ended(NOON, NOON + 5, max_memory=7)] if at >= 8 else []
    told = [json.loads(text) for (text,) in rows(store, "SELECT document FROM outbox ORDER BY id")]
    ends = [(each["job"], each.get("max_memory")) for each in told if each.get("outcome")]
    assert sorted(ends) == [(KEY, 7), (f"lab:2@{NOON}", None)]


def test_an_end_that_accounting_never_tells_is_judged_after_a_minute(store: Store) -> None:
    cluster = FakeCluster(queued=[{}])
    watch = watcher(cluster, store)
    watch.step(NOON)
    cluster.queued = [ended(None, NOON + 10, "CANCELLED")]
    watch.step(NOON + 12)
    assert stages(store) == ["submit"]
    watch.step(NOON + 70)
    assert stages(store) == ["end", "submit"]
    assert rows(store, "SELECT outcome, known_at FROM jobs") == [("cancelled", NOON + 12)]


def test_of_a_job_that_nobody_tells_the_end_of_it_stays_unknown(store: Store) -> None:
    cluster = FakeCluster(queued=[{}])
    watch = watcher(cluster, store)
    watch.step(NOON)
    cluster.queued = []
    watch.step(NOON + 60)
    for hour in range(1, 27):
        watch = watcher(cluster, store) if hour == 5 else watch  # a restart is no news
        watch.step(NOON + hour * 3600)
    assert rows(store, "SELECT outcome FROM jobs") == [(None,)]
    watch.step(NOON + 31 * 3600)
    assert rows(store, "SELECT outcome FROM jobs") == [("unknown",)]
    assert stages(store) == ["submit"]


def test_a_job_that_was_missing_for_a_moment_is_not_given_up(store: Store) -> None:
    cluster = FakeCluster(queued=[{}])
    watch = watcher(cluster, store)
    watch.step(NOON)
    cluster.queued = []
    watch.step(NOON + 60)
    cluster.queued = [{}]
    for hour in range(1, 30):
        watch.step(NOON + hour * 3600)
    assert rows(store, "SELECT outcome FROM jobs") == [(None,)]


def test_an_end_that_a_killed_process_had_stored_gets_its_verdict(store: Store) -> None:
    mortal = KillableStore(store.engine, store.timeout)
    cluster = FakeCluster(queued=[ended(None, NOON + 10, "CANCELLED")])
    watch = watcher(cluster, mortal)
    watch.step(NOON)
    mortal.deaths.append(1)  # after the jobs are stored, before their verdicts are
    with pytest.raises(Killed):
        watch.step(NOON + 70)
    cluster.queued = []
    assert rows(store, "SELECT outcome FROM jobs") == [("cancelled",)]
    watcher(cluster, store).step(NOON + 100)
    assert stages(store) == ["end", "submit"]


def test_accounting_that_comes_hours_late_is_still_heard(store: Store) -> None:
    cluster = FakeCluster(queued=[running(NOON)])
    watch = watcher(cluster, store)
    watch.step(NOON + 5)
    cluster.queued = []
    for minute in range(1, 300, 10):
        watch.step(NOON + minute * 60)
    cluster.accounted = [ended(NOON, NOON + 30)]
    watch.step(NOON + 300 * 60)
    assert stages(store) == ["end", "start", "submit"]


def test_a_requeued_job_is_submitted_again(store: Store) -> None:
    cluster = FakeCluster(queued=[running(NOON)])
    watch = watcher(cluster, store)
    watch.step(NOON + 5)
    cluster.queued = [{"submit": NOON + 50}]
    cluster.accounted = [ended(NOON, NOON + 50, "REQUEUED")]
    watch.step(NOON + 55)
    assert stages(store) == ["end", "start", "submit"]
    assert stages(store, f"lab:1@{NOON + 50}") == ["submit"]


def test_a_task_that_is_put_back_belongs_to_its_old_array(store: Store) -> None:
    cluster = FakeCluster(queued=[{"array": "1-2", "array_tasks": 2}])
    watch = watcher(cluster, store)
    watch.step(NOON)
    cluster.queued = [running(NOON + 1, task=1), running(NOON + 1, task=2)]
    watch.step(NOON + 5)
    cluster.queued = [running(NOON + 1, task=1), running(NOON + 90, task=2, submit=NOON + 60)]
    cluster.accounted = [ended(NOON + 1, NOON + 60, "REQUEUED", task=2)]
    watch.step(NOON + 95)
    assert [job for job, stage in stored_verdicts(store) if stage == "submit"] == [KEY]
    assert (f"lab:1_2@{NOON + 60}", "start") in stored_verdicts(store)


def test_an_array_that_was_never_seen_whole_is_made_from_its_tasks(store: Store) -> None:
    cluster = FakeCluster(queued=[running(NOON + 1, task=task, name="sweep") for task in (1, 2, 3, 7)])
    watcher(cluster, store).step(NOON + 2)
    made = rows(store, 'SELECT "array", array_tasks, name, state, start FROM jobs WHERE task = -1')
    assert made == [("1-3,7", 4, "sweep", "PENDING", None)]
    assert stages(store) == ["submit"]


def test_the_request_is_frozen_as_first_seen_and_the_dump_is_not_stored_again(store: Store) -> None:
    cluster = FakeCluster(queued=[{"time_limit": 600, "priority": 5}])
    watch = watcher(cluster, store)
    watch.step(NOON)
    cluster.queued = [{"time_limit": 1200, "priority": 6}]
    watch.step(NOON + 5)
    assert rows(store, "SELECT time_limit, priority, request_final FROM jobs") == [(600, 5, 0)]


def test_scripts_are_read_once_a_few_a_round_and_the_verdict_waits_for_them(store: Store, home: Home) -> None:
    cluster = FakeCluster(
        queued=[{"job_id": number} for number in range(1, 6)],
        scripts={number: f"#!/bin/sh\necho {number}\n" for number in range(1, 6)},
    )
    watch = watcher(cluster, store, scripts=ScriptReader(cluster, home.scripts, most=2))
    assert [len(watch.step(NOON + 5 * number).verdicts) for number in range(4)] == [2, 2, 1, 0]
    assert cluster.asked == [1, 2, 3, 4, 5]
    assert rows(store, "SELECT count(DISTINCT script) FROM jobs") == [(5,)]
    assert len(list(home.scripts.iterdir())) == 5


def test_a_burst_of_scripts_is_read_without_pauses_in_rounds_of_bounded_time(
    store: Store, home: Home
) -> None:
    clock = [0.0]

    class Slow(FakeCluster):
        def script(self, key: JobKey) -> str | None:
            clock[0] += 0.3
            return super().script(key)

    cluster = Slow(
        queued=[{"job_id": number} for number in range(1, 11)],
        scripts={number: f"#!/bin/sh\necho {number}\n" for number in range(1, 11)},
    )
    reader = ScriptReader(cluster, home.scripts, seconds=lambda: clock[0])
    watch = watcher(cluster, store, scripts=reader)
    rounds = [watch.step(NOON + number) for number in range(3)]
    assert [(len(done.verdicts), done.behind) for done in rounds] == [(4, True), (4, True), (2, False)]


def test_an_array_that_only_its_tasks_tell_of_does_not_wait_for_a_script(store: Store, home: Home) -> None:
    cluster = FakeCluster(
        queued=[{"job_id": 1}, {"job_id": 2}, running(NOON, job_id=7, task=1)],
        scripts=dict.fromkeys(range(9), "#!/bin/sh\n"),
    )
    watch = watcher(cluster, store, scripts=ScriptReader(cluster, home.scripts, most=1))
    assert [v.job for v in watch.step(NOON + 2).verdicts] == [
        f"lab:{job}@{NOON}" for job in ("1", "7", "7_1")
    ]


def test_tasks_are_judged_at_their_end_with_the_script_of_their_array(store: Store, home: Home) -> None:
    cluster = FakeCluster(scripts={1: "#!/bin/sh\n./xmrig\n"})
    heard: dict[str, list[str | None]] = {}

    class Reader:
        def assess(self, jobs: Any, known: Known, *, stage: Stage) -> list[Parts]:
            texts = [known.script(digest) if digest else None for digest in jobs["script"]]
            heard.setdefault(str(stage), []).extend(texts)
            return [Parts() for _ in texts]

    models = {stage: Model(Reader(), "1") for stage in (Stage.SUBMIT, Stage.START, Stage.END)}  # type: ignore[arg-type]  # it is only asked
    watch = watcher(
        cluster, store, Judge({"reader": DetectorModels(models)}), scripts=ScriptReader(cluster, home.scripts)
    )
    watch.step(NOON - 10)
    cluster.queued = [{"array": "1-3", "array_tasks": 3}, {"job_id": 2}]
    watch.step(NOON + 5)
    cluster.queued = []
    cluster.accounted = [ended(NOON + 7, NOON + 100, task=task) for task in (1, 2)]
    cluster.accounted += [
        ended(NOON + 50, NOON + 100, task=3, submit=NOON + 40),
        ended(NOON + 7, NOON + 99, job_id=2),
    ]
    watch.step(NOON + 105)
    script = cluster.scripts[1]
    assert heard["end"] == [script, script, None, script]
    assert heard["submit"] == [script, None]
    assert heard["start"] == [None] * 4, "history knows tasks without one, in training as here"


def test_where_scripts_may_not_be_read_verdicts_do_not_wait(store: Store, home: Home) -> None:
    class Closed(FakeCluster):
        def script(self, key: JobKey) -> str | None:
            super().script(key)
            raise ClusterError("you may not read the scripts of others")

    cluster = Closed(queued=[{"job_id": number} for number in range(1, 6)])
    watch = watcher(cluster, store, scripts=ScriptReader(cluster, home.scripts))
    done = watch.step(NOON)
    assert done.problems == ["you may not read the scripts of others"]
    assert len(done.verdicts) == 5
    assert len(cluster.asked) == 1


class _Looking:
    """A detector that writes down what it was shown."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, dict[str, Any], dict[str, Any]]] = []

    def assess(self, jobs: Any, known: Known, *, stage: Stage) -> list[Parts]:
        history = known.features(jobs, stage=stage)
        for row, facts in zip(jobs.to_dicts(), history.to_dicts(), strict=True):
            self.shown.append((stage, row, facts))
        return [Parts() for _ in range(jobs.height)]

    explain = save = None


def test_a_late_verdict_is_made_from_what_was_known_then(store: Store) -> None:
    looking = _Looking()
    judge = Judge({"looking": DetectorModels(dict.fromkeys(Stage, Model(looking, "1")))})  # type: ignore[arg-type]  # no more is asked
    cluster = FakeCluster()
    watch = watcher(cluster, store, judge)
    watch.step(NOON - 10)
    cluster.accounted = [
        ended(NOON + 10, NOON + 200, "FAILED", job_id=1, submit=NOON),
        ended(NOON + 260, NOON + 500, job_id=2, submit=NOON + 250),
        ended(NOON + 710, NOON + 900, job_id=3, submit=NOON + 700),
    ]
    late = watch.step(NOON + 1000).verdicts
    assert {v.stage: v.late for v in late if v.job.startswith("lab:3@")} == {
        "submit": True,
        "start": True,
        "early": True,
        "end": False,
    }
    seen = {(stage, row["job_id"]): (row, known) for stage, row, known in looking.shown}
    submission, known = seen["submit", 3]
    assert submission["start"] is submission["end"] is submission["outcome"] is None
    assert (known["user.submitted"], known["user.ended"]) == (2, 0)
    assert seen["submit", 1][1]["user.submitted"] == 0
    assert seen["early", 3][0]["start"] == NOON + 710
    assert seen["early", 3][0]["end"] is None
    assert seen["end", 3][0]["outcome"] == "completed"
    cluster.queued = [{"job_id": 4, "submit": NOON + 1001}]
    [now] = watch.step(NOON + 1005).verdicts
    assert looking.shown[-1][2]["user.ended"] == 3
    assert (now.at, now.known_until) == (NOON + 1005, NOON + 1001)


def test_a_running_job_gets_a_verdict_more_each_time_its_trace_rings(store: Store) -> None:
    cluster = FakeCluster(queued=[running(NOON + 5)])
    watch = watcher(cluster, store)
    watch.step(NOON + 10)
    job = frame(running(NOON + 5))
    for _ in range(2):
        watch._due_verdicts.give_running(job, NOON + 20)
    again = watcher(cluster, store)  # a new process goes on where the last one stopped
    assert [v.known_until for v in again._due_verdicts.give_running(job, NOON + 30)] == [NOON + 30]
    assert again.step(NOON + 40).verdicts == []
    assert [verdict.stage for verdict in again.step(NOON + 130).verdicts] == [Stage.EARLY]
    found = rows(store, "SELECT stage, seq FROM verdicts ORDER BY id")
    assert found == [
        ("submit", 0),
        ("start", 0),
        ("running", 0),
        ("running", 1),
        ("running", 2),
        ("early", 0),
    ]


def test_memory_holds_no_more_than_is_about(store: Store) -> None:
    cluster = FakeCluster()
    watch = watcher(cluster, store)
    for number in range(40):
        now = NOON + number * 400
        cluster.queued = [{"job_id": number, "submit": now}]
        cluster.accounted = [ended(now - 300, now - 1, job_id=number - 1, submit=now - 400)]
        watch.step(now)
    kept = [watch._due_verdicts._given, watch._queue_seen, watch._ended_seen, watch._living]
    assert all(len(part) <= 3 for part in kept)
    assert len(watch._unaccounted) == 0


def test_a_slurmdbd_that_is_slow_to_fail_is_not_asked_in_every_round(store: Store) -> None:
    class Failing(FakeCluster):
        def accounting(self, since: int, until: int) -> Any:
            asked.append(until)
            self.slow += 30
            raise ClusterError("slurmdbd does not answer")

    asked: list[int] = []
    watch = watcher(Failing(), store)
    for now in (NOON, NOON + 5, NOON + 179):
        assert watch.step(now).problems == ["slurmdbd does not answer"]
    assert len(asked) == 1
    watch.step(NOON + 180)
    assert len(asked) == 2


@dataclass
class Hanging(FakeCluster):
    """Its slurmdbd answers when it is let."""

    answers: threading.Event = field(default_factory=threading.Event)
    asked_for: list[int] = field(default_factory=list)

    def accounting(self, since: int, until: int) -> Iterator[pl.DataFrame]:
        self.asked_for.append(until)
        assert self.answers.wait(60)
        return super().accounting(since, until)


def test_verdicts_on_the_queue_do_not_wait_for_a_slurmdbd_that_hangs(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher_module, "FIRST_PATIENCE", 0.0)
    cluster = Hanging(queued=[running(NOON)])
    watch = watcher(cluster, store, patience=0.0)
    assert [v.stage for v in watch.step(NOON + 3).verdicts] == ["submit", "start"]
    cluster.queued = [{"job_id": 2, "submit": NOON + 5}]
    second = watch.step(NOON + 6)
    assert ([v.job for v in second.verdicts], second.problems) == ([f"lab:2@{NOON + 5}"], [])
    [problem] = watch.step(NOON + 90).problems
    assert "has not answered" in problem
    assert cluster.asked_for == [NOON + 4], "one question at a time"
    cluster.accounted = [ended(NOON, NOON + 4, "FAILED"), ended(NOON + 4, NOON + 5, job_id=3)]
    cluster.answers.set()
    end = run_until(watch, NOON + 91, lambda: "end" in stages(store))
    assert rows(store, "SELECT outcome, known_at FROM jobs WHERE job_id = 1") == [("failed", end)]
    run_until(watch, end + 1, lambda: "end" in stages(store, f"lab:3@{NOON}"))
    run_until(watch, end + 200, lambda: not watch._accounting.problems)


def test_an_answer_that_a_killed_process_did_not_take_is_asked_for_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher_module, "FIRST_PATIENCE", 0.0)
    cluster = Hanging(queued=[running(NOON)])
    watch = watcher(cluster, store, patience=0.0)
    watch.step(NOON + 3)
    cluster.queued, cluster.accounted = [], [ended(NOON, NOON + 4), ended(NOON + 4, NOON + 5, job_id=3)]
    watch.step(NOON + 6)
    cluster.answers.set()
    watcher(cluster, store).step(NOON + 100)
    assert stages(store) == ["end", "start", "submit"]
    assert stages(store, f"lab:3@{NOON}") == ["end", "start", "submit"]


def test_who_begins_to_watch_waits_a_moment_for_what_ended_meanwhile(store: Store) -> None:
    cluster = Hanging(queued=[{"job_id": 2, "submit": NOON + 50}])
    watcher(FakeCluster(), store).step(NOON)
    cluster.accounted = [ended(NOON + 1, NOON + 5)]
    cluster.answers.set()
    [first, *_] = watcher(cluster, store, patience=0.0).step(NOON + 60).verdicts
    assert first.job == KEY, "in the order of their submission"


def run_until(watch: Watcher, now: int, ready: Callable[[], bool]) -> int:
    """Rounds until it is ready, within a minute of real time; returns the instant of the last one."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        watch.step(now)
        if ready():
            return now
        now += 1
        time.sleep(0.01)
    raise AssertionError("it never was")
