"""First metrics: what a job used in its first 120 s, and nothing that was measured later."""

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.ended_jobs import job, jobs
from tocsin.core.channels import JOB_CHANNELS
from tocsin.core.frames import JOB_SAMPLES
from tocsin.core.stages import EARLY_SECONDS
from tocsin.history.first_metrics import FIRST_METRICS, first_metrics

START = 1010
"""Of job 1."""


def samples(*rows: dict[str, Any]) -> pl.DataFrame:
    plain = {"node": "n1", "job": "1", **dict.fromkeys(JOB_CHANNELS)}
    return pl.DataFrame([{**plain, **row} for row in rows], schema=JOB_SAMPLES, orient="row")


def every_second(node: str = "n1", number: str = "1", **channels: float) -> pl.DataFrame:
    return samples(
        *({"node": node, "job": number, "at": START + n, **channels} for n in range(1, EARLY_SECONDS + 1))
    )


def test_rates_become_shares_and_totals_of_two_minutes() -> None:
    used = {"cpu_user": 3.0, "cpu_system": 0.5, "io_read": 1000.0, "io_written": 10.0, "page_faults": 2.0}
    [found] = first_metrics(jobs([job(1, alloc_cpus=4)]), every_second(**used)).to_dicts()
    assert (found["first_cpu_user"], found["first_cpu_system"]) == (0.75, 0.125)
    assert (found["first_read_bytes"], found["first_written_bytes"]) == (120_000, 1200)
    assert found["first_page_faults"] == 240
    assert found["first_memory"] is None, "the source does not tell"


def test_memory_is_of_the_node_that_uses_most() -> None:
    grows = samples(*({"at": START + n, "memory": 100.0 * n} for n in range(1, 121)))
    falls = samples(*({"node": "n2", "at": START + n, "memory": 20_000.0 - n} for n in range(1, 101)))
    [found] = first_metrics(jobs([job(1)]), pl.concat([grows, falls])).to_dicts()
    assert (found["first_memory"], found["first_memory_peak"]) == (19_900, 19_999)


def test_nodes_without_samples_are_like_the_others() -> None:
    wide = jobs([job(1, alloc_cpus=8, alloc_nodes=4)])
    [found] = first_metrics(
        wide, pl.concat([every_second(n, cpu_user=1.0, io_read=1.0) for n in "ab"])
    ).to_dicts()
    assert (found["first_cpu_user"], found["first_read_bytes"]) == (0.5, 480)


def test_a_task_is_found_by_its_raw_id_and_a_short_job_has_none() -> None:
    task = jobs([job(1, task=7, raw_id=99), job(2, submit=1000, elapsed=60)])
    both = pl.concat([every_second(number="99", cpu_user=1.0), every_second(number="2", cpu_user=1.0)])
    assert first_metrics(task, both)["task"].to_list() == [7]


def test_a_few_samples_tell_nothing() -> None:
    assert first_metrics(jobs([job(1)]), every_second(cpu_user=1.0).head(3)).is_empty()


_AT = st.integers(START - 50, START + 400)
_SAMPLE = st.fixed_dictionaries(
    {
        "at": _AT,
        "node": st.sampled_from(["n1", "n2"]),
        "cpu_user": st.floats(0, 64) | st.none(),
        "memory": st.floats(0, 2**40) | st.none(),
        "io_read": st.floats(0, 2**30) | st.none(),
    }
)


@given(st.lists(_SAMPLE, max_size=60), st.lists(_SAMPLE, max_size=20))
def test_what_is_measured_after_two_minutes_changes_nothing(
    known: list[dict[str, Any]], later: list[dict[str, Any]]
) -> None:
    asked = jobs([job(1, alloc_cpus=4, alloc_nodes=2)])
    outside = [row for row in later if not START < row["at"] <= START + EARLY_SECONDS]
    one, other = (first_metrics(asked, samples(*rows)) for rows in (known, [*known, *outside]))
    assert one.equals(other)


@pytest.mark.parametrize("name", FIRST_METRICS)
def test_every_field_is_measured(name: str) -> None:
    found = first_metrics(jobs([job(1)]), every_second(**dict.fromkeys(JOB_CHANNELS, 1.0)))
    assert found[name].null_count() == 0
