"""A sudden change of what a user runs."""

from tocsin.judge.habits import LATELY, LEAST_BEFORE, LEAST_LATELY
from tocsin.judge.habits import habit_text as habit

AT = 1_800_000_000
BEFORE = [AT - 3 * LATELY - i for i in range(LEAST_BEFORE)]
NOW = [AT - 60 * i for i in range(LEAST_LATELY)]


def said(jobs: list[int], runs: list[int]) -> str | None:
    return habit("ann", "cyber", jobs=jobs, runs=runs, at=AT)


def test_a_change_is_said_from_the_job_on_that_makes_it_plain() -> None:
    sentence = said(BEFORE + NOW, NOW)
    assert sentence == (
        "ann had never run cyber in 20 screened submissions, then ran it 5 times within a day; the credentials may be stolen"
    )
    assert said(BEFORE + NOW[:-1], NOW[:-1]) is None
    more = NOW + [AT] * 1000  # a loop of sbatch, all of it in one second
    assert "then ran it 1,005 times within a day" in str(said(BEFORE + more, more))


def test_a_newcomer_has_no_habits_and_an_old_habit_is_no_change() -> None:
    assert said(BEFORE[1:] + NOW, NOW) is None
    assert said(BEFORE + NOW, [*NOW, BEFORE[0]]) is None


def test_what_came_later_is_not_looked_at() -> None:
    later = [AT + 10 * i for i in range(1, 9)]
    assert said(BEFORE + NOW[:2] + later, NOW[:2] + later) is None
