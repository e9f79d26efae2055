"""Delivery beside the watch: in order, each sink on its own, bounded while a sink is away, and reported."""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.kits.outbox import give, takes, verdict
from tocsin.core.decision import Decision
from tocsin.core.errors import SinkError
from tocsin.core.ports import Message, Receipt
from tocsin.core.verdict import Level
from tocsin.sinks import courier as couriers
from tocsin.sinks.courier import Courier
from tocsin.sinks.deliver import Busy, deliver
from tocsin.store.database import Store, open_store
from tocsin.store.decisions import record
from tocsin.store.home import Home
from tocsin.store.locks import locked
from tocsin.store.outbox import states, waiting


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(Home(tmp_path / "home").prepare().url) as opened:
        yield opened


class Recorder:
    """A sink that keeps what it gets; it can be away, hang, and refuse."""

    batch = 10

    def __init__(self, name: str = "log") -> None:
        self.name = name
        self.got: list[str] = []
        self.away = False
        self.refuses: set[str] = set()
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.asked = threading.Event()

    def due(self, now: float) -> bool:
        return True

    def close(self) -> None:
        pass

    def send(self, messages: Sequence[Message]) -> Iterator[Receipt]:
        self.asked.set()
        self.may_answer.wait(30)
        if self.away:
            raise SinkError("nobody answers")
        for message in messages:
            job = message.document["job"]
            if job in self.refuses:
                yield Receipt([message], "too long")
            else:
                self.got.append(job)
                yield Receipt([message])


class Notes:
    """What was reported; a test waits for a sentence."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._new = threading.Condition()

    def __call__(self, text: str) -> None:
        with self._new:
            self.texts.append(text)
            self._new.notify_all()

    def wait(self, part: str) -> None:
        with self._new:
            assert self._new.wait_for(lambda: any(part in text for text in self.texts), 30), self.texts


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(couriers, "_FIRST", 0.01)
    monkeypatch.setattr(couriers, "IDLE", 0.05)


def jobs(*numbers: int) -> list[str]:
    return [verdict(number).job for number in numbers]


def test_messages_are_sent_in_order_and_counted(store: Store) -> None:
    sink = Recorder()
    give(store, "log", *range(25))
    assert deliver(store, sink) is None
    assert sink.got == jobs(*range(25))
    state = states(store, ["log"])["log"]
    assert (state.sent, state.waiting, state.dropped, state.refused) == (25, 0, 0, 0)
    assert state.last > 0


def test_a_sink_that_is_away_keeps_its_messages_and_doctor_can_tell_why(store: Store) -> None:
    sink, notes = Recorder(), Notes()
    sink.away = True
    give(store, "log", 1)
    courier = Courier(store, sink, notes)
    courier.start()
    notes.wait('sink "log": nobody answers (trying again)')
    courier.stop()
    courier.join(30)
    state = states(store, ["log"])["log"]
    assert (state.waiting, state.problem) == (1, "nobody answers")
    assert state.since > 0
    assert len(notes.texts) == 1


def test_what_waited_is_sent_when_the_sink_answers_again(store: Store, quick: None) -> None:
    sink, notes = Recorder(), Notes()
    sink.away = True
    give(store, "log", 1, 2)
    courier = Courier(store, sink, notes)
    courier.start()
    notes.wait("nobody answers")
    sink.away = False
    notes.wait('sink "log" answers again')
    courier.stop()
    courier.join(30)
    assert sink.got == jobs(1, 2)
    assert states(store, ["log"])["log"].problem == ""


def test_a_sink_that_hangs_delays_no_other(store: Store, quick: None) -> None:
    slow, fast, notes = Recorder("slow"), Recorder("fast"), Notes()
    slow.may_answer.clear()
    pair = [Courier(store, sink, notes) for sink in (slow, fast)]
    for courier in pair:
        courier.start()
    for number in range(3):
        record(store, Decision(verdicts=[verdict(number)]), {"slow": takes(), "fast": takes()})
        pair[1].wake()
    assert slow.asked.wait(30)
    pair[1].stop()
    pair[1].join(30)
    assert fast.got == jobs(0, 1, 2)
    assert slow.got == []
    slow.may_answer.set()
    pair[0].stop()
    pair[0].join(30)
    assert slow.got == jobs(0, 1, 2)


def test_beyond_its_bound_the_oldest_messages_are_dropped_counted_and_reported(
    store: Store, quick: None
) -> None:
    sink, notes = Recorder(), Notes()
    sink.away = True
    give(store, "log", *range(5), most=5)
    assert len(waiting(store, "log", 99)) == 5
    courier = Courier(store, sink, notes)
    courier.start()
    notes.wait("nobody answers")
    give(store, "log", 5, 6, most=5)
    notes.wait("the oldest 2 were dropped")
    sink.away = False
    notes.wait("answers again")
    courier.stop()
    courier.join(30)
    assert sink.got == jobs(2, 3, 4, 5, 6)
    assert states(store, ["log"])["log"].dropped == 2


def test_one_sink_that_is_away_drops_no_message_of_another(store: Store) -> None:
    both = {"away": takes(most=2), "here": takes(most=100)}
    record(store, Decision(verdicts=[verdict(number) for number in range(10)]), both)
    found = states(store, both)
    assert (found["away"].waiting, found["away"].dropped) == (2, 8)
    assert (found["here"].waiting, found["here"].dropped) == (10, 0)


def test_a_message_that_the_sink_will_never_take_is_reported_and_does_not_block(store: Store) -> None:
    sink, notes = Recorder(), Notes()
    sink.refuses = set(jobs(1))
    give(store, "log", 0, 1, 2)
    courier = Courier(store, sink, notes)
    courier.start()
    notes.wait("refused verdict")
    courier.stop()
    courier.join(30)
    assert sink.got == jobs(0, 2)
    assert "which is dropped: too long" in notes.texts[0]
    assert states(store, ["log"])["log"].refused == 1


def test_a_sink_gets_the_levels_and_kinds_that_it_asked_for(store: Store) -> None:
    sinks = {"alarms": takes(levels=("warning", "critical")), "cases": takes("case")}
    verdicts = [verdict(1), verdict(2, level=Level.WARNING), verdict(3, level=Level.UNKNOWN)]
    record(store, Decision(verdicts=verdicts), sinks)
    assert [message.document["job"] for message in waiting(store, "alarms", 9)] == jobs(2)
    assert waiting(store, "cases", 9) == []


def test_two_processes_never_send_at_the_same_time(store: Store) -> None:
    give(store, "log", 1)
    with locked(store, "sink-log"), pytest.raises(Busy):
        deliver(store, Recorder())
    assert deliver(store, Recorder()) is None


def test_a_fault_in_a_client_library_is_a_problem_like_any_other(store: Store, quick: None) -> None:
    class Faulty(Recorder):
        def send(self, messages: Sequence[Message]) -> Iterator[Receipt]:
            if not self.got:
                self.got.append("first")
                raise KeyError("a fault")
            yield from super().send(messages)

    sink, notes = Faulty(), Notes()
    give(store, "log", 1)
    courier = Courier(store, sink, notes)
    courier.start()
    notes.wait("internal error: KeyError")
    notes.wait("answers again")
    courier.stop()
    courier.join(30)
    assert sink.got == ["first", *jobs(1)]
