"""Samples become windows: gaps, breaks, changes of the job, duplicates and clock jumps."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.core.channels import CPU_CHANNELS, JOB_CHANNELS
from tocsin.core.frames import CPU_SAMPLES, JOB_SAMPLES, WINDOWS
from tocsin.traces.cutting import KEYS, cut, cut_counted
from tocsin.traces.windows import Windows

BEGIN = 27_720 * 64_746  # a multiple of each stride below


def samples(
    seconds: "list[int] | range", *, node: str = "n1", cpu: int = 0, job: str | None = "7"
) -> pl.DataFrame:
    """Samples whose `user` tells their second."""
    rows = [(node, cpu, BEGIN + at, job, (at % 1000) / 1000, 0.0, 0.0) for at in seconds]
    return pl.DataFrame(rows, schema=CPU_SAMPLES, orient="row")


def job_samples(seconds: "list[int] | range", *, job: str = "7", **channels: Any) -> pl.DataFrame:
    rows = [{"node": "n1", "job": job, "at": BEGIN + at, "memory": float(at), **channels} for at in seconds]
    return pl.DataFrame(rows, schema=JOB_SAMPLES, orient="row")


def ends(windows: pl.DataFrame) -> list[int]:
    return [at - BEGIN for at in windows["at"]]


def test_windows_end_at_multiples_of_the_stride_and_hold_the_seconds_up_to_there() -> None:
    windows = cut(samples(range(3, 131)))
    assert windows.schema == WINDOWS
    assert ends(windows) == [110, 120, 130]
    values = Windows.from_frame(windows).values
    assert values[0, :, 0] == pytest.approx([at / 1000 for at in range(11, 111)])
    assert windows["job"].to_list() == ["7"] * 3
    assert windows["gaps"].to_list() == [0, 0, 0]


def test_a_second_without_a_sample_repeats_the_one_before_and_is_counted() -> None:
    windows = cut(samples([at for at in range(1, 101) if at not in (50, 51)]))
    assert windows["gaps"].to_list() == [2]
    user = Windows.from_frame(windows).values[0, :, 0]
    assert user[48:52] == pytest.approx([0.049, 0.049, 0.049, 0.052])


def test_too_many_gaps_drop_the_window_and_are_counted() -> None:
    kept = cut_counted(samples([at for at in range(1, 101) if at not in range(40, 60, 2)]))
    lost = cut_counted(samples([at for at in range(1, 101) if at not in range(40, 62, 2)]))
    assert kept.windows["gaps"].to_list() == [10]
    assert not kept.dropped
    assert lost.windows.is_empty()
    assert lost.dropped == {"gaps": 1}


def test_after_a_long_break_windows_begin_anew() -> None:
    found = cut_counted(samples([*range(1, 111), *range(151, 261)]))
    assert ends(found.windows) == [100, 110, 250, 260]
    assert found.dropped == {"gaps": 13}  # those that end from 120 to 240
    assert found.windows["gaps"].sum() == 0


def test_a_clock_jump_is_a_break_however_far_it_is() -> None:
    found = cut_counted(samples([*range(1, 111), 10**9, *range(111, 121)]))
    assert ends(found.windows) == [100, 110, 120]
    assert found.dropped["gaps"] <= 20  # windows with a sample, not those of thirty years


def test_a_window_of_two_jobs_is_dropped_unless_one_has_nine_tenths() -> None:
    changed = pl.concat([samples(range(1, 96), job="7"), samples(range(96, 211), job="8")])
    found = cut_counted(changed)
    assert dict(zip(ends(found.windows), found.windows["job"], strict=True)) == {
        100: "7",
        190: "8",
        200: "8",
        210: "8",
    }
    assert found.dropped == {"job changed": 8}
    idle = cut(pl.concat([samples(range(1, 6), job="7"), samples(range(6, 101), job=None)]))
    assert idle["job"].to_list() == [None]


def test_the_last_of_samples_of_one_second_counts_and_order_does_not_matter() -> None:
    first = samples(range(1, 101))
    again = samples([30]).with_columns(user=pl.lit(0.9, pl.Float32))
    found = cut_counted(pl.concat([first.sample(fraction=1, shuffle=True, seed=3), again]))
    assert found.duplicates == 1
    assert Windows.from_frame(found.windows).values[0, 29, 0] == pytest.approx(0.9)


def test_a_vanished_cpu_and_a_partly_missing_node_leave_the_others_whole() -> None:
    frame = pl.concat(
        [samples(range(1, 201)), samples(range(1, 111), cpu=1), samples(range(1, 50), node="n2", cpu=0)]
    )
    windows = cut(frame)
    by_cpu = windows.group_by("node", "cpu").len().sort("cpu")
    assert by_cpu.rows() == [("n1", 0, 11), ("n1", 1, 2)]
    assert set(ends(windows.filter(cpu=1))) <= set(ends(windows.filter(cpu=0)))


@pytest.mark.parametrize(
    "wrong",
    [{"user": float("nan")}, {"user": 1.2}, {"system": -0.5}, {"iowait": None}, {"at": None}, {"cpu": -1}],
)
def test_samples_that_cannot_be_are_gaps(wrong: dict[str, Any]) -> None:
    bad = samples([50]).with_columns(pl.lit(value).cast(CPU_SAMPLES[name]).alias(name) for name, value in wrong.items())  # fmt: skip
    good = samples([at for at in range(1, 101) if at != 50])
    found = cut_counted(pl.concat([good, bad]))
    assert found.invalid == 1
    assert found.windows["gaps"].to_list() == [1]


def test_counters_of_a_job_have_windows_of_their_own() -> None:
    windows = cut(
        samples(range(1, 101)), pl.concat([job_samples(range(1, 101)), job_samples(range(1, 90), job="9")])
    )
    assert windows["cpu"].to_list() == [0, None]
    counters = Windows.from_frame(windows, JOB_CHANNELS)
    assert counters.index["job"].to_list() == ["7"]
    memory = counters.values[0, :, JOB_CHANNELS.index("memory")]
    assert memory == pytest.approx(list(range(1, 101)))
    assert np.isnan(counters.values[0, :, JOB_CHANNELS.index("gpu")]).all()


def test_a_counter_that_was_reset_repeats_its_value_but_not_that_of_another_job() -> None:
    frame = pl.concat([job_samples(range(1, 101)), job_samples(range(1, 101), job="8")])
    unknown = (pl.col("at") - BEGIN).is_in([50, 1])
    frame = frame.with_columns(memory=pl.when(unknown).then(None).otherwise("memory"))
    memory = Windows.from_frame(cut(samples([]), frame), JOB_CHANNELS).values[:, :, 3]
    assert memory[:, 49] == pytest.approx([49, 49])
    assert np.isnan(memory[:, 0]).all()


def test_raw_ids_become_the_keys_of_the_jobs_that_had_them() -> None:
    rows = [
        ("7", None, BEGIN, BEGIN + 120, "lab:7@1"),
        ("7", None, BEGIN + 121, None, "lab:7@2"),  # requeued
        ("8", "n2", BEGIN, None, "lab:8@1"),  # on another node
    ]
    keys = pl.DataFrame(rows, schema=KEYS, orient="row")
    frame = pl.concat([samples(range(1, 241)), samples(range(1, 101), cpu=1, job="8")])
    windows = cut(frame, keys=keys)
    first = windows.filter(cpu=0)
    assert dict(zip(ends(first), first["job"], strict=True))[100] == "lab:7@1"
    assert first["job"].to_list()[-1] == "lab:7@2"
    assert windows.filter(cpu=1)["job"].to_list() == [None]


def test_longer_intervals_are_means() -> None:
    windows = cut(samples(range(1, 101)), length=10, stride=1, interval=10)
    assert ends(windows) == [100]
    user = Windows.from_frame(windows).values[0, :, 0]
    assert user == pytest.approx([0.0055 + 0.01 * n for n in range(10)])


def test_no_samples_give_no_windows() -> None:
    assert cut(samples([]), job_samples([])).equals(WINDOWS.to_frame())


SECONDS = st.lists(st.integers(0, 400), max_size=200)


@settings(max_examples=60, deadline=None)
@given(
    seconds=SECONDS,
    jobs=st.lists(st.sampled_from(["7", "8", None]), min_size=1, max_size=4),
    length=st.integers(1, 30),
    stride=st.integers(1, 12),
    until=st.integers(0, 400),
)
def test_windows_are_what_a_loop_over_seconds_would_make(
    seconds: list[int], jobs: list[str | None], length: int, stride: int, until: int
) -> None:
    frame = pl.concat([samples([at], job=jobs[at // 20 % len(jobs)]) for at in seconds] or [samples([])])
    windows = cut(frame, length=length, stride=stride, until=BEGIN + until)
    expected = _by_loop(sorted({at for at in seconds if at <= until}), jobs, length, stride)
    found = Windows.from_frame(windows)
    rows = {
        at - BEGIN: (job, gaps, values[:, 0].round(3).tolist())
        for at, job, gaps, values in zip(*windows.select("at", "job", "gaps"), found.values, strict=True)
    }
    assert rows.keys() == expected.keys()
    for at, (job, gaps, user) in expected.items():
        assert rows[at][:2] == (job, gaps)
        assert rows[at][2] == pytest.approx(user, abs=1e-3)


def _by_loop(
    seconds: list[int], jobs: list[str | None], length: int, stride: int
) -> dict[int, tuple[str | None, int, list[float]]]:
    expected = {}
    most = int(length * 0.1)
    runs: list[list[int]] = []
    for at in seconds:
        if not runs or at - runs[-1][-1] - 1 > most:
            runs.append([])
        runs[-1].append(at)
    for run in runs:
        for end in range(run[0] + length - 1, run[-1] + 1):
            places = range(end - length + 1, end + 1)
            points = [max(at for at in run if at <= place) for place in places]
            gaps = len(set(places) - set(run))
            had = [jobs[at // 20 % len(jobs)] for at in points]
            job = max(set(had), key=had.count)
            if end % stride == 0 and gaps <= most and had.count(job) >= 0.9 * length:
                expected[end] = (job, gaps, [at / 1000 for at in points])
    return expected


@settings(max_examples=40, deadline=None)
@given(before=SECONDS, after=st.lists(st.integers(1, 10**6), max_size=50), until=st.integers(0, 400))
def test_what_comes_later_changes_no_window(before: list[int], after: list[int], until: int) -> None:
    early = samples([at for at in before if at <= until])
    late = samples([until + at for at in after], job="9").with_columns(
        pl.lit(0.5, pl.Float32).alias(name) for name in CPU_CHANNELS[1:]
    )
    options: dict[str, Any] = {"length": 20, "stride": 5, "until": BEGIN + until}
    assert cut(pl.concat([early, late]), **options).equals(cut(early, **options))
