"""Patterns match lines as a reader expects, in time that grows with the line and no faster."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.causes.patterns import alternatives, parse_pattern


@pytest.mark.parametrize(
    ("pattern", "line", "expected"),
    [
        ("out of memory", "cuda out of memory. tried", True),
        ("^out of memory", "cuda out of memory", False),
        ("out of memory$", "ran out of memory", True),
        ("out of memory$", "ran out of memory again", False),
        ("detected * oom*kill", "slurmstepd: error: detected 2 oom_kill events", True),
        ("oom*detected", "detected 1 oom-kill", False),
        ("^{word}error: ", "torch.cuda.outofmemoryerror: cuda error: x", True),
        ("^{word}error: ", "the next error: x", False),
        ("^{word}error: ", "error: x", False),
        ("line *: *: command not found", "slurm_script: line 5: module: command not found", True),
        ("abc*abc$", "abc", False),
        ("^make: ***", "make: *** [all] error 1", True),
        ("^make: ***", "make: nothing to be done", False),
    ],
)
def test_a_line_matches_or_not(pattern: str, line: str, expected: bool) -> None:
    assert parse_pattern(pattern, shortest=1).matches(line) is expected


@pytest.mark.parametrize("pattern", ["", "*", "ab*cd", "x" * 400, "*a" * 30, "tab\there", "error {word}"])
def test_a_pattern_that_would_match_anything_or_cannot_be_read_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError):
        parse_pattern(pattern)


@given(st.text(max_size=60), st.text(max_size=200))
def test_any_pattern_is_read_or_refused_and_any_line_is_matched_or_not(pattern: str, line: str) -> None:
    try:
        parsed = parse_pattern(pattern)
    except ValueError:
        return
    assert parsed.matches(line) in (True, False)


def test_a_choice_stands_for_each_of_its_texts_and_a_bracket_without_one_for_itself() -> None:
    assert alternatives("(cannot|could not) open (a |)file") == (
        *("cannot open a file", "cannot open file"),
        *("could not open a file", "could not open file"),
    )
    assert alternatives("execvp() failed (see above)") == ("execvp() failed (see above)",)


def test_choices_that_stand_for_too_many_patterns_are_refused() -> None:
    with pytest.raises(ValueError, match="1024 patterns"):
        alternatives("(a|b)" * 10)


def test_parts_may_stand_in_any_order() -> None:
    patterns = [parse_pattern(text) for text in alternatives("(license|licence) & denied")]
    for line in ("licence for solver: denied", "denied by the license server"):
        assert any(pattern.matches(line) for pattern in patterns)
    assert not any(pattern.matches("licence granted") for pattern in patterns)


def test_more_than_three_parts_are_refused() -> None:
    with pytest.raises(ValueError, match="more than 3 parts"):
        alternatives("one & two & three & four")
