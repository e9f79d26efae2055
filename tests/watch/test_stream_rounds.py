"""A stream of job events: every stage of every job once, in any order, with repeats, kills and failing stores."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.kits.watching import (
    NOON,
    KillableStore,
    Killed,
    ended,
    frame,
    rows,
    running,
    stored_verdicts,
)
from tocsin.core.errors import StoreError
from tocsin.core.intake import Rejects
from tocsin.history.ledger import Ledger
from tocsin.judge.judge import Judge
from tocsin.sources.kafka import Events
from tocsin.store.database import Store, open_store
from tocsin.store.home import Home
from tocsin.store.jobs import Filter, load
from tocsin.watch.stream_rounds import StreamRounds


@dataclass
class FakeStream:
    """A topic that a test writes to; what was polled and not committed comes again to the next reader."""

    name: str = "lab"
    log: list[dict[str, Any]] = field(default_factory=list)
    scripts: dict[int, str] = field(default_factory=dict)
    rejects: Rejects = field(default_factory=Rejects)
    committed: int = 0
    position: int = 0
    batch: int = 500
    problem: str = ""
    caught_up = True

    def poll(self, seconds: float) -> Events:
        new = self.log[self.position : self.position + self.batch]
        scripts = {n: text for n in range(len(new)) if (text := self.scripts.get(self.position + n))}
        self.position += len(new)
        return Events(frame(*new), scripts, len(new))

    def commit(self) -> None:
        self.committed = self.position

    def reopened(self) -> "FakeStream":
        """As another process sees it."""
        self.position = self.committed
        return self


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").prepare()


@pytest.fixture
def store(home: Home) -> Iterator[Store]:
    with open_store(home.url) as opened:
        yield opened


def rounds(stream: FakeStream, store: Store, home: Home, **more: Any) -> StreamRounds:
    """As after a restart."""
    ledger = Ledger()
    ledger.learn(load(store, Filter(clusters=[stream.name])))
    return StreamRounds(stream.reopened(), store, Judge({}), ledger, folder=home.scripts, **more)


def life(number: int, start: int = NOON + 10, end: int = NOON + 300) -> list[dict[str, Any]]:
    """The three events of a job."""
    return [{"job_id": number}, running(start, job_id=number), ended(start, end, job_id=number)]


def stages(*numbers: int) -> list[tuple[str, str]]:
    return sorted((f"lab:{n}@{NOON}", s) for n in numbers for s in ("submit", "start", "early", "end"))


def test_each_event_brings_the_verdict_of_its_stage_and_the_clock_brings_early(
    store: Store, home: Home
) -> None:
    stream = FakeStream()
    follow = rounds(stream, store, home)
    submit, start, end = life(1)
    given = []
    for now, event in ((NOON + 1, submit), (NOON + 11, start), (NOON + 131, None), (NOON + 301, end)):
        stream.log += [event] if event else []
        given.append([(v.stage, v.late) for v in follow.step(now).verdicts])
    assert given == [[("submit", False)], [("start", False)], [("early", False)], [("end", False)]]
    assert stream.committed == 3


def test_a_record_of_an_ended_job_alone_brings_all_verdicts_late(store: Store, home: Home) -> None:
    stream = FakeStream()
    follow = rounds(stream, store, home)
    follow.step(NOON)
    stream.log = life(1)[2:]
    assert [(v.stage, v.late) for v in follow.step(NOON + 301).verdicts] == [
        ("submit", True),
        ("start", True),
        ("early", True),
        ("end", False),
    ]


def test_repeated_and_overtaken_events_add_nothing(store: Store, home: Home) -> None:
    stream = FakeStream()
    submit, start, end = life(1)
    stream.log = [end, submit, start, end, end, submit]
    follow = rounds(stream, store, home)
    for now in range(NOON + 301, NOON + 304):
        follow.step(now)
    assert stored_verdicts(store) == stages(1)
    assert load(store)["state"].to_list() == ["COMPLETED"]


def test_tasks_whose_array_was_never_announced_inherit_a_verdict_on_it(store: Store, home: Home) -> None:
    stream = FakeStream(log=[ended(NOON + 5, NOON + 9, task=task) for task in (3, 4)])
    rounds(stream, store, home).step(NOON + 10)
    array = f"lab:1@{NOON}"
    tasks = [(f"lab:1_{task}@{NOON}", stage) for task in (3, 4) for stage in ("start", "end")]
    assert stored_verdicts(store) == sorted([(array, "submit"), *tasks])
    assert rows(store, 'SELECT "array" FROM jobs WHERE task = -1') == [("3-4",)]


def test_what_ended_before_the_watch_began_is_history_without_verdicts(store: Store, home: Home) -> None:
    stream = FakeStream(log=life(1))
    rounds(stream, store, home).step(NOON + 90_000)
    assert stored_verdicts(store) == []
    assert load(store)["outcome"].to_list() == ["completed"]
    assert stream.committed == 3


def test_a_script_that_comes_along_is_kept_and_read(store: Store, home: Home) -> None:
    stream = FakeStream(log=[{}], scripts={0: "#!/bin/bash\nsleep 1\n"})
    rounds(stream, store, home).step(NOON + 1)
    [reference] = load(store)["script"].to_list()
    assert (home.scripts / reference).read_text() == "#!/bin/bash\nsleep 1\n"


def test_early_is_given_after_a_restart_though_no_event_tells_of_it(store: Store, home: Home) -> None:
    stream = FakeStream(log=life(1)[:2])
    rounds(stream, store, home).step(NOON + 11)
    assert [v.stage for v in rounds(stream, store, home).step(NOON + 1000).verdicts] == ["early"]


def test_what_could_not_be_stored_is_not_committed_and_stored_by_the_next_round(
    store: Store, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = FakeStream(log=life(1))
    follow = rounds(stream, store, home)
    with monkeypatch.context() as patch:
        patch.setattr("tocsin.watch.stream_rounds.merge_in", _locked)
        with pytest.raises(StoreError):
            follow.step(NOON + 301)
    assert stream.committed == 0
    follow.step(NOON + 302)
    assert (stream.committed, stored_verdicts(store)) == (3, stages(1))


def _locked(*_: object) -> None:
    raise StoreError("locked")


def test_events_that_cannot_be_read_are_counted_reported_once_and_do_not_block(
    store: Store, home: Home
) -> None:
    notes: list[str] = []
    stream = FakeStream(log=life(1))
    follow = rounds(stream, store, home, notify=notes.append)
    for now, number in ((NOON + 301, 2), (NOON + 302, 1)):
        stream.rejects.add("not JSON", range(number), "jobs/0")
        stream.log += [{"job_id": 2}]
        follow.step(now)
    assert notes == ["events that cannot be read are skipped and counted: not JSON (first in jobs/0)"]
    assert rows(store, "SELECT rejected FROM imports") == [('{"not JSON": 3}',)]
    assert len(stored_verdicts(store)) == 5


@pytest.mark.parametrize("batch", [1, 7, 500])
def test_a_process_that_is_killed_at_every_point_gives_each_verdict_once(home: Home, batch: int) -> None:
    numbers = range(1, 6)
    stream = FakeStream(log=[event for n in numbers for event in life(n)], batch=batch)
    with open_store(home.url) as opened:
        store = KillableStore(opened.engine, opened.timeout)
        now, kills = NOON + 301, 0
        while stream.committed < len(stream.log):
            store.deaths[:] = [kills % 9]
            try:
                follow = rounds(stream, store, home)
                while stream.committed < len(stream.log):
                    follow.step(now)
            except Killed:
                kills += 1
        assert kills > 5
        assert stored_verdicts(store) == stages(*numbers)


def test_a_stream_that_does_not_answer_is_a_problem_of_the_round(store: Store, home: Home) -> None:
    stream = FakeStream(problem="all brokers are down")
    done = rounds(stream, store, home).step(NOON)
    assert done.problems == ["Kafka does not answer: all brokers are down"]
