"""The outbox on each database: bounded for each sink, with counts of what became of its messages."""

from tests.kits.outbox import give, takes, verdict
from tocsin.core.decision import Decision
from tocsin.core.ports import Receipt
from tocsin.store.database import Store
from tocsin.store.decisions import record
from tocsin.store.outbox import SinkState, acknowledge, put, set_problem, states, waiting


def state_of(store: Store, sink: str = "hub") -> SinkState:
    return states(store, [sink])[sink]


def test_a_sink_that_nothing_was_sent_to_has_a_state(store: Store) -> None:
    assert state_of(store) == SinkState()


def test_what_is_too_much_is_dropped_from_the_oldest_on_and_counted(store: Store) -> None:
    give(store, "hub", *range(10), most=4)
    give(store, "hub", 10, most=4)
    assert [m.document["job"] for m in waiting(store, "hub", 99)] == [verdict(n).job for n in range(7, 11)]
    assert state_of(store) == SinkState(dropped=7, waiting=4)


def test_a_repeated_decision_neither_adds_nor_drops(store: Store) -> None:
    for _ in range(3):
        give(store, "hub", *range(4), most=4)
    assert state_of(store) == SinkState(waiting=4)


def test_a_problem_lasts_from_its_first_moment_until_a_message_is_taken(store: Store) -> None:
    give(store, "hub", 1, 2)
    set_problem(store, "hub", "it does not answer", now=100)
    set_problem(store, "hub", "it refuses", now=200)
    assert state_of(store) == SinkState(problem="it refuses", since=100, waiting=2)
    first, second = waiting(store, "hub", 2)
    acknowledge(store, "hub", Receipt([first]), now=300)
    acknowledge(store, "hub", Receipt([second], "too long"), now=400)
    assert state_of(store) == SinkState(sent=1, refused=1, last=400)


def test_a_message_that_was_dropped_meanwhile_cannot_take_another_with_it(store: Store) -> None:
    give(store, "hub", 1, most=1)
    [dropped] = waiting(store, "hub", 9)
    give(store, "hub", 2, most=1)
    acknowledge(store, "hub", Receipt([dropped]), now=5)
    assert [m.document["job"] for m in waiting(store, "hub", 9)] == [verdict(2).job]


def test_sinks_do_not_mix(store: Store) -> None:
    record(store, Decision(verdicts=[verdict(1)]), {"hub": takes(), "log": takes()})
    [message] = waiting(store, "hub", 9)
    acknowledge(store, "log", Receipt([message]), now=5)  # the number of another sink's message
    assert state_of(store).waiting == 1
    with store.writing() as connection:
        put(connection, {"hub": takes("case")}, kind="case", reference="1", document={"case": 1})
    assert [m.kind for m in waiting(store, "hub", 9)] == ["verdict", "case"]
    assert state_of(store, "log").waiting == 1
