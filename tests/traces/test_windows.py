"""Windows as frames and as arrays."""

import numpy as np
import polars as pl
import pytest

from tocsin.core.channels import JOB_CHANNELS
from tocsin.core.errors import ModelError
from tocsin.core.frames import WINDOWS
from tocsin.traces.windows import Windows


def frame(*rows: tuple[str | None, int | None, list[float]]) -> pl.DataFrame:
    jobs, cpus, values = zip(*rows, strict=True)
    count = len(rows)
    columns = {"job": jobs, "node": ["n1"] * count, "cpu": cpus, "at": [100] * count, "gaps": [0] * count}
    return pl.DataFrame({**columns, "values": list(values)}, schema=WINDOWS)


SIX = [0.1, 0.2, 0.3, 0.4, 0.5, 0.05]


def test_a_window_is_seconds_by_channels() -> None:
    windows = Windows.from_frame(frame(("a", 0, SIX), (None, 1, SIX)))
    assert windows.values.shape == (2, 2, 3)
    assert windows.values[0, 1] == pytest.approx([0.4, 0.5, 0.05])


@pytest.mark.parametrize("count", [0, 1, 3])
def test_arrays_become_the_same_frame_again(count: int) -> None:
    rows = frame(*[("a", cpu, SIX) for cpu in range(3)]).head(count)
    again = Windows.from_frame(rows).to_frame()
    assert again.equals(rows)
    assert again.schema == WINDOWS


def test_counters_of_jobs_are_apart_from_the_rates_of_cpus() -> None:
    rows = frame(("a", 0, SIX), ("a", None, [1.0] * len(JOB_CHANNELS)))
    assert len(Windows.from_frame(rows)) == 1
    assert Windows.from_frame(rows, JOB_CHANNELS).values.shape == (1, 1, len(JOB_CHANNELS))


def test_windows_of_different_lengths_are_refused() -> None:
    with pytest.raises(ModelError, match="cannot be put together"):
        Windows.from_frame(frame(("a", 0, SIX), ("a", 1, SIX[:3])))


def test_a_graph_is_a_node_or_a_job_at_one_instant() -> None:
    windows = Windows.from_frame(frame(("a", 0, SIX), ("b", 1, SIX), ("a", 2, SIX), (None, 3, SIX)))
    assert len(set(windows.graphs(by_job=False))) == 1
    numbers = windows.graphs(by_job=True)
    assert numbers[0] == numbers[2]
    assert len(set(numbers)) == 3


def test_a_selection_keeps_values_and_rows_together() -> None:
    windows = Windows.from_frame(frame(("a", 0, SIX), ("b", 1, [0.0] * 6)))[np.array([False, True])]
    assert windows.index["job"].to_list() == ["b"]
    assert not windows.values.any()
