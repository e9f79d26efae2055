"""Ids and keys: every form that Slurm prints, and the key that never changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.core.errors import UnitError
from tocsin.core.ids import JobKey, SlurmId, array_size, parse_key, parse_slurm_id


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("123", SlurmId(123)),
        ("123_4", SlurmId(123, task=4)),
        ("123_[1-9%2]", SlurmId(123, array="1-9%2")),
        ("123_[1,3,...]", SlurmId(123, array="1,3,...")),
        ("123+1", SlurmId(123, het_offset=1)),
        ("123.batch", SlurmId(123, step="batch")),
        ("123_4.0", SlurmId(123, task=4, step="0")),
        ("123+1.extern", SlurmId(123, het_offset=1, step="extern")),
        ("5.0+1", SlurmId(5, step="0+1")),
    ],
)
def test_a_printed_id_is_taken_apart(text: str, expected: SlurmId) -> None:
    assert parse_slurm_id(text) == expected


keys = st.builds(
    JobKey,
    cluster=st.from_regex(r"[a-z][a-z0-9_-]{0,20}", fullmatch=True),
    job_id=st.integers(0, 10**17),
    task=st.none() | st.integers(0, 4_000_000),
    submit=st.integers(0, 10**10),
)


@given(keys)
def test_a_key_written_reads_the_same(key: JobKey) -> None:
    assert parse_key(str(key)) == key


def test_a_key_reads_like_the_job_it_names() -> None:
    assert str(JobKey("lab", 17, 4, 1794775393)) == "lab:17_4@1794775393"


@given(st.text(max_size=40))
def test_any_text_is_an_id_or_refused(text: str) -> None:
    for parse in (parse_slurm_id, parse_key, array_size):
        try:
            parse(text)
        except UnitError:
            continue


@given(st.integers(0, 10**6), st.integers(0, 300), st.integers(1, 50))
def test_an_array_has_as_many_tasks_as_its_range(first: int, length: int, step: int) -> None:
    assert array_size(f"{first}-{first + length}:{step}%3") == len(range(first, first + length + 1, step))


def test_a_vast_array_is_counted_without_being_listed() -> None:
    assert array_size("0-4000000000") == 4_000_000_001


def test_an_array_without_tasks_is_refused() -> None:
    with pytest.raises(UnitError, match="has no tasks"):
        array_size("9-1")
