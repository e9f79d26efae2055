"""The loop around the rounds: what it waits for, what it says, how it ends."""

import os
import signal
from typing import Any

import pytest

from tests.kits.watching import NOON, FakeCluster, stored_verdicts, watcher
from tocsin.core.errors import ClusterError, StoreError
from tocsin.store.database import Store
from tocsin.watch import loop
from tocsin.watch.loop import Stop, run
from tocsin.watch.watcher import Round


class Clock:
    def now(self) -> float:
        return NOON


class Waits(Stop):
    """Writes down how long it was waited, and does not wait."""

    def __init__(self, rounds: int) -> None:
        super().__init__()
        self.waited: list[float] = []
        self.left = rounds

    def wait(self, seconds: float) -> bool:
        self.waited.append(seconds)
        self.left -= 1
        return self.left < 0


class Rounds:
    """A watcher whose rounds are given."""

    def __init__(self, *rounds: Any) -> None:
        self.rounds = list(rounds)

    def step(self, now: int) -> Round:
        done = self.rounds.pop(0)
        if isinstance(done, Exception):
            raise done
        return Round(at=now, queued=1, **done)


def follow(*rounds: Any, interval: float = 5, **more: Any) -> tuple[list[float], list[str], int]:
    said: list[str] = []
    told: list[Round] = []
    with Waits(len(rounds)) as stop:
        run(
            Rounds(*rounds),  # type: ignore[arg-type]  # it steps, and no more is asked of it
            Clock(),
            stop,
            interval=interval,
            report=told.append,
            notify=said.append,
            **{"seconds": lambda: 0.0, **more},
        )
        return stop.waited, said, len(told)


def test_the_pause_is_the_interval_or_twenty_times_what_the_dump_took() -> None:
    waited, said, _ = follow({"cost": 0.01}, {"cost": 1.5}, *[{"cost": 0.3}] * 5)
    assert waited == [0, 5, 30, 5, 5, 5, 6, 6]
    assert said == []


def test_the_interval_counts_from_the_beginning_of_a_round_and_leaves_others_a_third_of_the_time() -> None:
    instants = iter([0.0, 0.2, 1.0, 1.9, 10.0, 14.0, 20.0, 20.0])
    waited, _, _ = follow(*[{"cost": 0.0}] * 4, interval=1, seconds=lambda: next(instants))
    assert waited == pytest.approx([0, 0.8, 0.45, 1, 1])


def test_one_hang_does_not_silence_the_watch_and_is_reported_once() -> None:
    waited, said, _ = follow({"cost": 25}, {"cost": 24}, {"cost": 0.1}, {"cost": 25})
    assert waited == [0, 30, 30, 5, 30]
    slow, over, again = said
    assert "took 25 s" in slow
    assert "answer" in over
    assert again == slow


def test_a_slow_answer_leaves_time_for_a_screening_window() -> None:
    waited, _, _ = follow({"cost": 25}, {"cost": 0.1}, interval=1, longest=3)
    assert waited == [0, 3, 2]


def test_one_answer_that_a_busy_host_delayed_does_not_slow_the_watch_and_a_busy_slurmctld_does() -> None:
    waited, said, _ = follow(*[{"cost": cost} for cost in (0.01, 0.4, 0.03, *[0.4] * 5)], interval=1)
    assert waited == [0, 1, 1, 1, 1, 1, 1, 1, 8]
    assert said == []


def test_each_pause_is_announced_with_the_error_that_caused_it() -> None:
    pauses: list[tuple[float, str | None]] = []
    follow(
        ClusterError("down"),
        {"cost": 0},
        {"cost": 0, "behind": True},
        waiting=lambda pause, problem: pauses.append((pause, problem)),
    )
    assert pauses == [(5, "down"), (5, None), (0, None)]


def test_who_is_behind_does_not_wait() -> None:
    waited, _, _ = follow({"cost": 1, "behind": True}, {"cost": 1, "behind": True}, {"cost": 0})
    assert waited == [0, 0, 0, 5]


def test_a_problem_is_reported_once_and_retried_less_and_less_often() -> None:
    down = ClusterError("slurmctld does not answer")
    waited, said, told = follow(*[down] * 9, {"cost": 0}, {"cost": 0})
    assert waited == [0, 5, 10, 20, 40, *[loop.LONGEST] * 5, 5, 5]
    assert said == ["slurmctld does not answer (trying again)", "all sources answer again"]
    assert told == 2


def test_another_problem_is_reported_too_and_problems_of_a_part_do_not_stop_the_rounds() -> None:
    part = {"cost": 0, "problems": ["slurmdbd does not answer"]}
    waited, said, told = follow(StoreError("locked"), part, part, {"cost": 0}, part)
    assert said == [
        "locked (trying again)",
        "all sources answer again",
        "slurmdbd does not answer",
        "all sources answer again",
        "slurmdbd does not answer",
    ]
    assert told == 4
    assert waited[2:] == [5] * 4


def test_an_error_that_is_not_an_outage_ends_the_watch() -> None:
    with pytest.raises(ZeroDivisionError):
        follow(ZeroDivisionError())


def test_once_is_until_it_has_caught_up_and_an_error_is_an_error() -> None:
    assert follow({"cost": 0, "behind": True}, {"cost": 0}, {"cost": 0}, once=True)[2] == 2
    with pytest.raises(ClusterError):
        follow(ClusterError("no"), once=True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_after_the_round(store: Store, number: signal.Signals) -> None:
    cluster = FakeCluster(queued=[{}])
    handler = signal.getsignal(number)

    class Signalled(FakeCluster):
        def queue(self) -> Any:
            os.kill(os.getpid(), number)
            return super().queue()

    watch = watcher(Signalled(queued=cluster.queued), store)
    rounds: list[Round] = []
    with Stop() as stop, stop.on_signals(signal.SIGTERM, signal.SIGINT):
        run(watch, Clock(), stop, interval=600, report=rounds.append, notify=print)
    assert len(rounds) == 1
    assert stored_verdicts(store) == [(f"lab:1@{NOON}", "submit")]
    assert signal.getsignal(number) is handler


def test_a_wait_ends_at_once_when_it_is_stopped() -> None:
    with Stop() as stop:
        assert not stop.wait(0)
        for _ in range(100_000):  # more than a pipe holds
            stop.set()
        assert stop.wait(600)
