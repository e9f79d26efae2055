"""Slurm's units are read in every form and written back so that they read the same."""

from datetime import UTC
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.core.errors import UnitError
from tocsin.core.units import (
    UNLIMITED,
    format_duration,
    format_instant,
    format_memory,
    format_tres,
    memory_per_node,
    parse_duration,
    parse_instant,
    parse_memory,
    parse_memory_request,
    parse_tres,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 5400),
        ("1:30", 90),
        ("01:02:03", 3723),
        ("2-3", 2 * 86400 + 3 * 3600),
        ("2-3:04", 2 * 86400 + 3 * 3600 + 240),
        ("1-02:03:04", 93784),
        ("00:00.143", 0),
        ("UNLIMITED", UNLIMITED),
        ("infinite", UNLIMITED),
        ("Partition_Limit", None),
        ("", None),
    ],
)
def test_a_duration_is_read_in_every_form_that_slurm_takes(text: str, seconds: int | None) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["-5", "1:2:3:4", "1d", "five", "1-", "٣", "1" * 4000])
def test_what_is_no_duration_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(UnitError, match="is not a duration"):
        parse_duration(text)


@given(st.integers(0, 10**9) | st.just(UNLIMITED))
def test_a_duration_written_reads_the_same(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


def test_no_limit_sorts_above_every_limit() -> None:
    assert max(UNLIMITED, parse_duration("999999-00:00:00") or 0) == UNLIMITED


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("4652K", 4652 * 1024),
        ("62.50G", 64000 * 1024**2),
        ("1GB", 2**30),
        ("2MiB", 2**21),
        ("0", 0),
        ("Unknown", None),
    ],
)
def test_memory_is_read_with_its_unit(text: str, amount: int | None) -> None:
    assert parse_memory(text) == amount


@given(st.integers(0, 2**60))
def test_memory_written_reads_the_same(amount: int) -> None:
    assert parse_memory(format_memory(amount)) == amount


@pytest.mark.parametrize(
    ("text", "cpus", "nodes", "per_node"),
    [
        ("31000Mn", 12, 1, 31000 * 1024**2),
        ("4Gc", 16, 2, 32 * 2**30),
        ("2147486648Mn", 8, 1, 24000 * 1024**2),  # the flag of old versions printed as part of the number
        ("100M", 4, 2, 50 * 1024**2),  # since 21.08: of the whole job
        ("4Gc", None, 2, None),
        ("", 1, 1, None),
        ("0n", 1, 1, 0),
    ],
)
def test_a_memory_request_is_per_node_whatever_it_was_written_per(
    text: str, cpus: int | None, nodes: int, per_node: int | None
) -> None:
    assert memory_per_node(parse_memory_request(text), cpus=cpus, nodes=nodes) == per_node


def test_resources_are_read_and_written_back() -> None:
    text = "cpu=8,mem=24000M,node=1,billing=8,gres/gpu=2,gres/gpu:a100=2"
    assert parse_tres(text)["mem"] == 24000 * 1024**2
    assert parse_tres(format_tres(parse_tres(text))) == parse_tres(text)
    assert parse_tres("") == {}


@given(st.text(max_size=50))
def test_any_text_is_read_or_refused_in_a_sentence(text: str) -> None:
    for parse in (
        parse_duration,
        parse_memory,
        parse_memory_request,
        parse_tres,
        lambda t: parse_instant(t, UTC),
    ):
        try:
            parse(text)
        except UnitError as error:
            assert len(str(error)) > 20


def test_a_local_time_is_read_in_the_clusters_zone() -> None:
    assert parse_instant("2026-07-01T12:00:00", ZoneInfo("Europe/Rome")) == parse_instant(
        "2026-07-01T10:00:00Z", UTC
    )


@given(st.integers(1, 4 * 10**9).filter(lambda n: len(str(n)) != 8))
def test_an_instant_written_reads_the_same(epoch: int) -> None:
    assert parse_instant(format_instant(epoch) or "", UTC) == epoch
    assert parse_instant(str(epoch), UTC) == epoch
