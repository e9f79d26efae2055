"""When windows ring, and what the alarm says."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.kits.pca_traces import PcaModel, pca_detector, train
from tests.kits.simulated_windows import COMPUTES, WAITS, every, jobs, windows
from tests.kits.watching import NOON
from tocsin.core.channels import JOB_CHANNELS
from tocsin.core.detector import Budget, Parts
from tocsin.core.errors import ModelError
from tocsin.core.frames import key_text
from tocsin.core.stages import Stage
from tocsin.history.known_windows import KnownWindows
from tocsin.history.replay import Replay
from tocsin.traces.alarms import in_a_row, together
from tocsin.traces.fitted import FittedTraces
from tocsin.traces.fitting import fit_traces, held_back
from tocsin.traces.thresholds import Kind, Rule, Thresholds, upper_quantile

PAST = [{"job_id": 900 + number, "outcome": "completed", "end": NOON + 2000} for number in range(6)]


@pytest.fixture(scope="module")
def fitted() -> FittedTraces:
    """Trained on six jobs that computed."""
    past = jobs(*PAST)
    normal = pl.concat(windows(row["job_id"], every(20, 2000), cpus=(0, 1)) for row in PAST)
    known = Replay(past, windows=KnownWindows(normal, past))
    return pca_detector().fit(past, known, stage=Stage.RUNNING, seed=0, budget=Budget())


def assess(
    fitted: FittedTraces, asked: pl.DataFrame, frame: pl.DataFrame, now: int, **more: Any
) -> list[Parts]:
    known = Replay(asked, windows=KnownWindows(frame, more.get("all_jobs", asked)), now=NOON + now)
    return fitted.assess(asked, known, stage=Stage.RUNNING)


def test_three_unusual_windows_in_a_row_on_a_cpu_ring_and_two_do_not(fitted: FittedTraces) -> None:
    job = jobs({"job_id": 1})
    for bad, rings in ((2, False), (3, True)):
        frame = pl.concat(
            [
                windows(1, every(20, 200), cpus=(0, 1)),
                windows(1, every(210, 200 + 10 * bad), level=WAITS),
                windows(1, every(210, 200 + 10 * bad), cpus=(1,)),
            ]
        )
        [parts] = assess(fitted, job, frame, 200 + 10 * bad)
        assert bool(parts.findings) is rings


def test_unusual_windows_on_different_cpus_are_not_in_a_row(fitted: FittedTraces) -> None:
    frame = pl.concat(windows(1, [210 + 10 * n], level=WAITS, cpus=(n,)) for n in range(3))
    [parts] = assess(fitted, jobs({"job_id": 1}), frame, 230)
    assert not parts.findings
    assert not parts.missing


def test_an_alarm_names_cpus_node_channel_and_what_is_usual(fitted: FittedTraces) -> None:
    frame = windows(1, every(210, 230), level=WAITS, cpus=(0, 1, 2, 3, 7), node="n12")
    [parts] = assess(fitted, jobs({"job_id": 1}), frame, 230)
    [finding] = parts.findings
    assert finding.text == (
        "CPU 0–3, 7 of n12 have waited for I/O 80 % of the last 20 s; jobs of this kind: 1 %"
    )
    assert finding.kind == "high_iowait"
    assert finding.score is not None
    assert finding.threshold is not None
    assert finding.score > finding.threshold
    other = jobs({"job_id": 1, "name": "never seen"})
    [parts] = assess(fitted, other, frame, 230)
    assert parts.findings[0].text.endswith("other jobs: 1 %")


def test_the_nodes_of_a_job_are_one_alarm(fitted: FittedTraces) -> None:
    frame = pl.concat(
        windows(1, every(210, 230), level=WAITS, cpus=(0, 1), node=f"n{number}") for number in range(3)
    )
    [parts] = assess(fitted, jobs({"job_id": 1}), frame, 230)
    [finding] = parts.findings
    assert finding.text.startswith("CPU 0–1 of n0 and 4 CPUs of 2 more nodes have waited")
    assert finding.evidence == ["n0: CPU 0–1", "n1: CPU 0–1", "n2: CPU 0–1"]


def test_a_job_that_recovered_does_not_ring(fitted: FittedTraces) -> None:
    frame = pl.concat([windows(1, every(150, 200), level=WAITS), windows(1, [210])])
    [parts] = assess(fitted, jobs({"job_id": 1}), frame, 210)
    assert not parts.findings


def test_a_missing_window_does_not_break_a_row_and_two_do(fitted: FittedTraces) -> None:
    for ends, rings in (([210, 220, 240], True), ([210, 220, 250], False)):
        [parts] = assess(fitted, jobs({"job_id": 1}), windows(1, ends, level=WAITS), 250)
        assert bool(parts.findings) is rings


def test_windows_that_end_later_are_not_used(fitted: FittedTraces) -> None:
    frame = pl.concat([windows(1, [190, 200]), windows(1, every(210, 300), level=WAITS)])
    [parts] = assess(fitted, jobs({"job_id": 1}), frame, 200)
    assert not parts.findings
    assert not parts.missing


ARRAY = [{"job_id": 7, "task": task, "name": "new"} for task in range(8)]


def of_array(level: Sequence[float], odd: Sequence[float], noise: float = 0.02) -> pl.DataFrame:
    """Windows of eight tasks, of which the last one does something else."""
    return pl.concat(
        windows(f"7_{task}", every(20, 230), level=odd if task == 7 else level, noise=noise)
        for task in range(8)
    )


def test_a_task_that_differs_from_its_siblings_rings_and_they_do_not(fitted: FittedTraces) -> None:
    array = jobs(*ARRAY)
    found = assess(fitted, array, of_array(COMPUTES, WAITS), 230)
    assert [bool(parts.findings) for parts in found] == [False] * 7 + [True]
    assert "the other tasks of its array at this age: 1 %" in found[7].findings[0].text


def test_an_array_that_is_like_its_siblings_but_noisy_does_not_ring(fitted: FittedTraces) -> None:
    """They are compared with each other first: noise that is usual for the array is no alarm."""
    loud = of_array(COMPUTES, COMPUTES, noise=0.028)
    alone = assess(fitted, jobs({"job_id": 8, "name": "new"}), windows(8, every(20, 230), noise=0.05), 230)
    assert alone[0].findings, "so much noise is unusual for others"
    assert not any(parts.findings for parts in assess(fitted, jobs(*ARRAY), loud, 230))


def test_a_whole_array_that_misbehaves_does_not_hide_itself(fitted: FittedTraces) -> None:
    found = assess(fitted, jobs(*ARRAY), of_array(WAITS, WAITS), 230)
    assert all(parts.findings for parts in found)


def test_alarms_with_one_cause_are_told_as_one() -> None:
    jobs = [f"lab:{number}@{NOON}" for number in range(1, 7)]
    assert together(jobs) == "6 jobs have this alarm at the same time: 1, 2, 3, 4 and 2 more"


def test_rows_are_counted_for_each_cpu_in_any_order_of_the_windows() -> None:
    rows = [("a", "n1", cpu, 10 * t, t != 2 or cpu == 1) for cpu in (0, 1, None) for t in range(5)]
    frame = pl.DataFrame(rows, ["job", "node", "cpu", "at", "unusual"], orient="row")
    frame = frame.with_columns(pl.col("cpu").cast(pl.Int32)).sample(fraction=1, shuffle=True, seed=3)
    found = frame.with_columns(in_a_row(frame, 10)).sort("cpu", "at", nulls_last=True)["in_a_row"].to_list()
    assert found == [1, 2, 0, 1, 2, 1, 2, 3, 4, 5, 1, 2, 0, 1, 2]


def test_candidates_are_all_jobs_that_ring(fitted: FittedTraces) -> None:
    asked = jobs({"job_id": 1}, {"job_id": 2}, *ARRAY)
    frame = pl.concat(
        [windows(1, every(150, 230)), windows(2, every(150, 230), level=WAITS), of_array(COMPUTES, WAITS)]
    )
    scores = fitted.scores(frame, asked.select(key_text(), "user", "name"))
    assert fitted.candidates(scores.filter(pl.col("at") > NOON + 200)) == [f"lab:2@{NOON}", f"lab:7_7@{NOON}"]


@pytest.mark.parametrize("draw", ["lognormal", "exponential", "uniform", "gamma"])
def test_few_normal_windows_exceed_the_threshold(draw: str) -> None:
    """The stated rate holds on fresh windows, with few windows to learn from and with many."""
    random = np.random.default_rng(1)
    sample = {
        "lognormal": lambda n: random.lognormal(-4, 0.5, n),
        "exponential": lambda n: random.exponential(0.01, n),
        "uniform": lambda n: random.uniform(0, 0.01, n),
        "gamma": lambda n: random.gamma(3, 0.003, n),
    }[draw]
    fresh = sample(200_000)
    for number in (200, 5000):
        above = [float((fresh > upper_quantile(sample(number), 0.001)).mean()) for _ in range(20)]
        assert np.mean([share <= 0.001 for share in above]) >= 0.9
        assert upper_quantile(sample(number), 0.001) < 6 * np.quantile(fresh, 0.999), "and it is no wall"
    assert upper_quantile(sample(300), 0.001, overlap=10) > upper_quantile(sample(30_000), 0.001)


def test_a_kind_with_enough_windows_has_its_own_threshold() -> None:
    random = np.random.default_rng(1)
    errors = np.concatenate([random.gamma(3, 0.001, 300), random.gamma(3, 0.01, 100)])
    kinds = [Kind("ann", "fit")] * 300 + [Kind("bob", "loud")] * 100
    found = Thresholds.fit(errors, np.zeros((400, 4)), kinds)
    assert set(found.kinds) == {Kind("ann", "fit")}
    own, is_own = found.of(Kind("ann", "fit"))
    other, is_not = found.of(Kind("bob", "loud"))
    assert is_own
    assert not is_not
    assert own.threshold < other.threshold
    assert Thresholds.from_json(found.to_json()) == found


def test_every_third_job_is_held_back_and_no_window_is_in_both() -> None:
    many = pl.concat(windows(number, every(20, 100)) for number in range(6))
    few = windows(77, every(20, 620))
    index = pl.concat([many, few]).drop("values")
    asked = jobs(*({"job_id": number} for number in range(6)), {"job_id": 77, "name": "rare"})
    train_on, held = held_back(index, asked.select(key_text(), "user", "name"), 20)
    assert not (train_on & held).any()
    rows = index.with_columns(train=train_on, held=held)
    split = rows.filter(pl.col("job") != f"lab:77@{NOON}").group_by("job").agg("train", "held")
    assert sorted(split["held"].list.unique().to_list()) == [[False]] * 4 + [[True]] * 2
    rare = rows.filter(pl.col("job") == f"lab:77@{NOON}")
    last, first = rare.filter("train")["at"].max(), rare.filter("held")["at"].min()
    assert first - 20 >= last, "windows that share seconds are not in both"  # type: ignore[operator]


def test_too_few_windows_are_refused_with_the_next_step() -> None:
    asked = jobs({"job_id": 1})
    with pytest.raises(ModelError, match="tocsin traces train FOLDER"):
        fit_traces(windows(1, [20]), asked.select(key_text(), "user", "name"), train)


def test_a_threshold_that_no_window_can_exceed_is_refused() -> None:
    """The job read its input only at the end: most errors of the held-back windows are tiny, some are large."""
    asked = jobs({"job_id": 1})
    rare = pl.concat(
        [
            windows(1, every(20, 820), cpus=(0, 1)),
            windows(1, every(830, 850), level=WAITS, cpus=(0, 1)),
            windows(1, every(860, 900), cpus=(0, 1)),
        ]
    )
    with pytest.raises(ModelError, match="so there would be no alarms"):
        fit_traces(rare, asked.select(key_text(), "user", "name"), train)


@pytest.mark.parametrize(("last", "learned"), [(590, False), (700, True)])
def test_counters_of_jobs_need_thirty_windows_apart(last: int, learned: bool) -> None:
    asked = jobs({"job_id": 1})
    of_cpus = windows(1, every(20, last), cpus=(0, 1))
    random = np.random.default_rng(0)
    values = [random.random(20 * len(JOB_CHANNELS)).tolist() for _ in every(20, last)]
    counters = of_cpus.filter(cpu=0).with_columns(
        pl.lit(None, pl.Int32).alias("cpu"), pl.Series("values", values, pl.List(pl.Float32))
    )
    found = fit_traces(pl.concat([of_cpus, counters]), asked.select(key_text(), "user", "name"), train)
    assert (found.jobs is not None) is learned


def test_windows_of_another_length_are_refused(fitted: FittedTraces) -> None:
    long = windows(1, [200]).with_columns(pl.concat_list("values", "values").alias("values"))
    with pytest.raises(
        ModelError, match="windows have 40 points, but the model was trained on windows of 20"
    ):
        assess(fitted, jobs({"job_id": 1}), long, 200)


def test_a_model_of_whole_nodes_is_refused() -> None:
    asked = jobs({"job_id": 1})

    def of_nodes(*given: Any, **more: Any) -> PcaModel:
        model = train(*given, **more)
        return PcaModel(
            model.length, model.channels, model.centre, model.scale, model.directions, "node_graph"
        )

    with pytest.raises(ModelError, match="use vanilla or job_graph"):
        fit_traces(windows(1, every(20, 900)), asked.select(key_text(), "user", "name"), of_nodes)


def test_the_rate_is_a_setting_of_the_detector(fitted: FittedTraces) -> None:
    assert fitted.cpus.thresholds.rule == Rule()
    past = jobs(*PAST)
    normal = pl.concat(windows(row["job_id"], every(20, 500)) for row in PAST)
    known = Replay(past, windows=KnownWindows(normal, past))
    strict, loose = (
        pca_detector(rate=rate).fit(past, known, stage=Stage.RUNNING, seed=0, budget=Budget())
        for rate in (0.0001, 0.05)
    )
    assert strict.cpus.thresholds.all.threshold > loose.cpus.thresholds.all.threshold
