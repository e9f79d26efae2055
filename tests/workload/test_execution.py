"""Execution-time models learn what an operation does to a machine, and say what they could not see."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from bench.flowbench import NORMAL
from bench.flowbench import stream as flowbench

from tests.kits.command_line import Tocsin
from tests.kits.mining_jobs import NOW, mining_jobs
from tocsin.core.errors import ModelError
from tocsin.core.fields import Part, fields_of
from tocsin.core.frames import conform, key_text
from tocsin.core.verdict import SEEN_FROM
from tocsin.models.registry import Registry
from tocsin.store.database import open_store
from tocsin.store.jobs import load as stored_jobs
from tocsin.workload.execution.features import RATIOS
from tocsin.workload.execution.gate import lower_bound
from tocsin.workload.execution.models import FILE, FittedExecution, load_execution
from tocsin.workload.execution.training import due, execution_labels, in_window, train_execution

DAY = 86400


@pytest.fixture(scope="module")
def trained() -> FittedExecution:
    jobs, mining = mining_jobs()
    return train_execution(jobs, {"cryptomining": mining}, now=NOW)


def operations(model: FittedExecution, jobs: pl.DataFrame) -> list[float]:
    return [each.operations["cryptomining"] for each in model.screen(jobs) if each is not None]


def test_an_operation_that_draws_more_power_is_seen_in_jobs_never_met(trained: FittedExecution) -> None:
    jobs, mining = mining_jobs(seed=2)
    seen = np.array(operations(trained, jobs)) >= SEEN_FROM
    assert len(seen) == jobs.height
    assert (seen == mining.to_numpy()).mean() > 0.97


def test_people_are_never_looked_at_and_every_feature_is_kept_or_has_a_reason(
    trained: FittedExecution,
) -> None:
    model = trained.operations["cryptomining"]
    assert "watts_per_node" in model.features
    spoken_of = {*model.features, *model.dropped}
    assert not {"uid", "gid", "priority", "job_id", "raw_id", "submit", "end"} & spoken_of
    assert model.dropped["flops"] == "is known of no job"
    assert "exit_code" not in spoken_of


def test_what_was_requested_and_how_it_ended_is_not_what_a_job_did() -> None:
    jobs, mining = mining_jobs()
    told = jobs.with_columns(
        time_limit=pl.Series(np.where(mining, 100, 9000)),
        req_cpus=pl.Series(np.where(mining, 64, 1)),
        exit_code=pl.Series(np.where(mining, 1, 0)),
        power=None,
        energy=None,
        cpu_seconds=pl.col("elapsed") * 2,
    )
    model = train_execution(told, {"cryptomining": mining}, now=NOW).operations["cryptomining"]
    measured = {*fields_of(Part.USAGE), *RATIOS}
    assert {*model.features, *model.dropped} <= measured
    # The request changes nothing in the answer either.
    fitted = train_execution(jobs, {"cryptomining": mining}, now=NOW)
    asked = jobs.with_columns(
        time_limit=pl.lit(60), req_nodes=pl.lit(99), req_cpus=pl.lit(1), exit_code=pl.lit(1)
    )
    assert fitted.screen(asked) == fitted.screen(jobs)


def gated(jobs: pl.DataFrame, mining: pl.Series, answers: pl.Series) -> FittedExecution:
    return train_execution(jobs, {"x": mining}, now=NOW, shortest=60, answers={"x": answers})


def test_a_model_with_grounds_is_used_and_its_card_names_them() -> None:
    jobs, mining = mining_jobs()
    model = gated(jobs, mining, mining)
    assert (list(model.in_use), model.operations["x"].refused) == (["x"], None)
    card = model.card(created=NOW)
    assert "not proof" in card.parameters["labels"]
    figures = card.parameters["operations"]["x"]["gate"]
    assert figures["users"] == 7
    assert figures["precision_low"] >= 0.8
    assert figures["agreed"] >= 0.9 * figures["answered"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda jobs, mining: (jobs, mining & (pl.Series(range(800)) < 60), mining), "positive jobs"),
        (
            lambda jobs, mining: (
                jobs.with_columns(user=pl.when(pl.Series(mining)).then(pl.lit("eve")).otherwise("user")),
                mining,
                mining,
            ),
            "1 users have 5 or more",
        ),
        (
            lambda jobs, mining: (jobs, mining, pl.Series([None] * 800, dtype=pl.Boolean)),
            "people confirmed 0",
        ),
        (
            lambda jobs, mining: (jobs, mining, mining ^ (pl.Series(range(800)) % 5 == 0)),
            "it agrees with people on",
        ),
        (
            lambda jobs, mining: (
                jobs.with_columns(power=pl.lit(1.0), energy=pl.col("job_id") % 7),
                mining,
                mining,
            ),
            "with 95 % confidence",
        ),
    ],
    ids=["few", "one user", "nobody confirmed", "people disagree", "imprecise"],
)
def test_a_model_without_grounds_is_not_used(change: Callable[..., Any], why: str, tmp_path: Path) -> None:
    jobs, mining = mining_jobs()
    jobs, labels, answers = change(jobs, mining)
    model = gated(jobs, labels, answers)
    assert why in str(model.operations["x"].refused)
    assert model.in_use == {}
    model.save(tmp_path)
    loaded = load_execution(tmp_path)
    assert loaded.screen(jobs) == [None] * 800
    assert "x is not used" in str(loaded.missing(jobs)[0])


def test_the_lower_bound_of_a_share_grows_with_the_evidence() -> None:
    assert lower_bound(0, 0) == 0
    bounds = [lower_bound(n, n) for n in (1, 5, 16, 100)]
    assert bounds == sorted(bounds)
    assert bounds[1] < 0.6 < 0.8 < bounds[2] < 1
    assert lower_bound(50, 100) == pytest.approx(0.404, abs=0.001)  # Wilson


def test_a_feature_that_says_nothing_and_one_that_says_the_same_again_are_dropped_with_the_reason() -> None:
    jobs, mining = mining_jobs()
    alternating = pl.Series([0.0, 1.0] * 200 + [0.0, 1.0] * 200)
    own = jobs.with_columns(
        power=pl.Series(mining).cast(pl.Float64) * 100 + pl.int_range(pl.len()) % 7,
        fans=alternating,
        celsius=(pl.Series(mining).cast(pl.Float64) * 100 + pl.int_range(pl.len()) % 7) * 0.5 + 20,
    )
    # Of each pair of neighbours both or none is one: the alternating column cannot tell.
    pairs = pl.Series(np.repeat(mining.to_numpy()[::2], 2))
    dropped = train_execution(own, {"x": pairs}, now=NOW).operations["x"].dropped
    assert dropped["fans"] == "its correlation with the label, 0.0000, is below 0.015"
    assert dropped["celsius"] == "is the same as power, or proportional to it"


def test_a_sites_own_counter_is_taken_from_its_column() -> None:
    jobs, mining = mining_jobs()
    dark = jobs.with_columns(power=None, energy=None, packets=pl.Series(np.where(mining, 900.0, 10.0)))
    model = train_execution(dark, {"cryptomining": mining}, now=NOW)
    assert "packets" in model.operations["cryptomining"].features
    assert (np.array(operations(model, dark)) >= SEEN_FROM).tolist() == mining.to_list()
    # A job without it is answered, and the gap is said.
    assert "counters missing for this job: packets" in str(model.missing(jobs.head(1))[0])


def test_what_is_missing_is_said_and_never_invented(trained: FittedExecution) -> None:
    jobs, _ = mining_jobs(rows=20)
    assert trained.missing(jobs) == [None] * 20
    short = replace(trained, shortest=10_000)
    assert short.screen(jobs) == [None] * 20
    assert "less than 10000 s" in str(short.missing(jobs)[0])
    no_energy = jobs.with_columns(energy=pl.lit(None, pl.Float64))
    assert all(answer is not None for answer in trained.screen(no_energy))
    assert trained.missing(no_energy)[0] == ("counters missing for this job: energy; the others were used")
    blank = no_energy.with_columns(
        pl.lit(None, pl.Float64).alias("power"), pl.lit(None, pl.Int64).alias("elapsed")
    )
    assert trained.screen(blank) == [None] * 20
    assert trained.missing(blank)[0] == (
        "no counter of the job is known, so its execution cannot be classified"
    )
    running = jobs.with_columns(end=pl.lit(None, pl.Int64))
    assert trained.screen(running) == [None] * 20
    assert trained.missing(running)[0] == "the job has not ended, so what it did is not known yet"
    assert trained.screen(jobs.head(0)) == []
    assert trained.missing(jobs.head(0)) == []


def test_the_same_seed_gives_the_same_files_and_what_was_saved_answers_alike(
    trained: FittedExecution, tmp_path: Path
) -> None:
    jobs, mining = mining_jobs()
    again = train_execution(jobs, {"cryptomining": mining}, now=NOW)
    folders = [tmp_path / name for name in ("one", "two")]
    for folder, model in zip(folders, (trained, again), strict=True):
        folder.mkdir()
        model.save(folder)
    files = [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders]
    assert files[0] == files[1]
    asked, _ = mining_jobs(seed=3)
    loaded = load_execution(folders[0])
    assert loaded.screen(asked) == trained.screen(asked)
    assert loaded.missing(asked) == trained.missing(asked)
    assert loaded.card(created=NOW) == trained.card(created=NOW)
    # Alone as among others, in any order.
    assert [trained.screen(asked[row])[0] for row in range(5)] == trained.screen(asked.head(5))
    assert trained.screen(asked.reverse())[::-1] == trained.screen(asked)


def test_a_model_that_was_changed_is_refused_by_name(trained: FittedExecution, tmp_path: Path) -> None:
    trained.save(tmp_path)
    whole = json.loads((tmp_path / FILE).read_text())
    for broken in ({}, {**whole, "operations": {"x": {"file": "../x"}}}, {**whole, "window": 3}, [1]):
        (tmp_path / FILE).write_text(json.dumps(broken))
        with pytest.raises(ModelError, match=f"{FILE} .*train again"):
            load_execution(tmp_path)
    (tmp_path / FILE).write_text("\0")
    with pytest.raises(ModelError, match="cannot be read"):
        load_execution(tmp_path)


def test_the_registry_keeps_it_as_the_workload_model_of_the_end(
    trained: FittedExecution, tmp_path: Path
) -> None:
    registry = Registry(tmp_path)
    version = registry.add("workload", trained.save, trained.card(created=NOW, data="lab"))
    card = registry.verify("workload", version)
    assert (str(card.stage), card.operations, card.rows) == ("end", ["cryptomining"], 800)
    assert "flops" in card.parameters["operations"]["cryptomining"]["dropped"]
    assert {figure.name: figure.value for figure in card.figures}["f1"] > 0.9  # type: ignore[operator]  # it has one


def test_only_jobs_of_the_last_days_that_were_known_train() -> None:
    jobs, mining = mining_jobs(days=10)
    model = train_execution(jobs, {"cryptomining": mining}, now=NOW, alpha_days=5)
    assert model.rows == jobs.filter(pl.col("end") > NOW - 5 * DAY).height
    # What became known later, or was stopped by us, changes nothing.
    earlier = NOW - DAY
    later = pl.col("known_at") > earlier
    other = jobs.with_columns(power=pl.when(later).then(1e6).otherwise("power"))
    flipped = mining.zip_with(jobs.select(~later).to_series(), ~mining)
    models = [
        train_execution(frame, {"cryptomining": flags}, now=earlier)
        for frame, flags in ((jobs, mining), (other, flipped))
    ]
    assert models[0].screen(jobs) == models[1].screen(jobs)
    stopped = jobs.with_columns(intervened=pl.lit(True))
    assert not stopped.select(in_window(now=NOW)).to_series().any()


def test_labels_of_one_kind_are_told_and_the_other_operations_still_learned() -> None:
    jobs, mining = mining_jobs()
    nothing = pl.Series([False] * jobs.height)
    with pytest.raises(
        ModelError, match=r'0 of the 800 jobs with a label in the window are "ai"; .* longer window'
    ):
        train_execution(jobs, {"ai": nothing}, now=NOW)
    model = train_execution(jobs, {"ai": nothing, "cryptomining": mining}, now=NOW)
    assert list(model.operations) == ["cryptomining"]
    assert "ai was not trained: 0 of the 800 jobs" in str(model.missing(jobs.head(1))[0])


def test_an_empty_window_is_told_with_the_last_job_and_the_next_step() -> None:
    jobs, mining = mining_jobs()
    with pytest.raises(
        ModelError,
        match=r"no job ended in the 5 days before .*the last known one ended at 2026-.*import newer jobs",
    ):
        train_execution(jobs, {"cryptomining": mining}, now=NOW + 30 * DAY)
    with pytest.raises(ModelError, match=r"no job ended in the 5 days before [^(]*; import newer jobs"):
        train_execution(jobs.head(0), {"cryptomining": mining.head(0)}, now=NOW)
    with pytest.raises(ModelError, match="window of 0 days"):
        train_execution(jobs, {"cryptomining": mining}, now=NOW, alpha_days=0)
    with pytest.raises(ModelError, match="800 jobs"):
        train_execution(jobs, {"cryptomining": mining.head(3)}, now=NOW)


def test_without_any_counter_that_tells_the_training_says_what_to_gather() -> None:
    jobs, mining = mining_jobs()
    bare = conform(jobs.select("cluster", "job_id", "submit", "end", "known_at", "alloc_nodes"))
    with pytest.raises(
        ModelError,
        match='no counter of the 800 jobs distinguishes "cryptomining" from the rest; let accounting',
    ):
        train_execution(bare, {"cryptomining": mining}, now=NOW)


def test_labels_are_the_answers_at_submission_and_people_overrule_them() -> None:
    jobs, _ = mining_jobs(rows=4)
    one, two, three, four = jobs.select(key_text()).to_series()
    said = {one: {"ai": 0.9, "cyber": 0.1}, two: {"ai": 0.2}, three: {"ai": SEEN_FROM}}
    labels = execution_labels(jobs, said, {two: {"ai": True}, three: {"ai": False}})
    assert labels["ai"].to_list() == [True, True, False, None]
    assert labels["cyber"].to_list() == [False, None, None, None]
    assert four not in said


def test_a_task_is_what_its_array_is_unless_it_is_known_better() -> None:
    jobs, _ = mining_jobs(rows=3)
    tasks = jobs.with_columns(job_id=pl.lit(7), submit=pl.lit(NOW), task=pl.Series([1, 2, 3]))
    array, task = (f"{jobs['cluster'][0]}:{name}@{NOW}" for name in ("7", "7_2"))
    labels = execution_labels(tasks, {array: {"ai": 0.9}}, {task: {"ai": False}})
    assert labels["ai"].to_list() == [True, False, True]


def test_a_model_is_due_after_beta_days() -> None:
    assert due(None, now=NOW)
    assert not due(NOW - DAY + 1, now=NOW)
    assert due(NOW - DAY, now=NOW)
    assert not due(NOW - DAY, now=NOW, beta_days=2)


def test_odd_numbers_neither_stop_a_training_nor_an_answer() -> None:
    jobs, mining = mining_jobs()
    places = pl.int_range(pl.len())
    odd = jobs.with_columns(
        power=pl.when(places % 50 == 0)
        .then(float("inf"))
        .when(places % 50 == 1)
        .then(float("nan"))
        .otherwise("power"),
        elapsed=pl.when(places % 50 == 2).then(0).otherwise("elapsed"),
        time_limit=pl.lit(2**63 - 1),
        huge=pl.lit(1e300) * places,
    )
    model = train_execution(odd, {"cryptomining": mining}, now=NOW)
    assert all(0 <= p <= 1 for p in operations(model, odd))


def test_f_data_comes_in_with_one_command_and_trains(tocsin: Tocsin, tmp_path: Path) -> None:
    jobs, mining = mining_jobs(rows=400)
    instant = {name: pl.from_epoch(column).dt.convert_time_zone("Asia/Tokyo") for name, column in
               (("adt", "submit"), ("sdt", "start"), ("edt", "end"))}  # fmt: skip
    table = jobs.select(
        pl.format("jid_{}", "job_id").alias("jid"),
        **instant,
        usr="user",
        econ=pl.col("energy") / 3600,
        avgpcon="power",
        cnumat="alloc_cpus",
        nnuma="alloc_nodes",
        nnumr="req_nodes",
        elp="elapsed",
        elpl="time_limit",
        idle_time_ave=pl.lit(1.5),
        mbwidth=pl.col("elapsed") * 1e9,
        flops=pl.col("elapsed") * 1e10,
        ec="exit_code",
    ).with_columns(pl.lit("completed").alias("exit state"))
    table.write_parquet(tmp_path / "21_04.parquet")
    assert tocsin("import", "-m", "f-data", tmp_path / "21_04.parquet").code == 0
    with open_store(f"sqlite:///{tmp_path / 'home' / 'tocsin.db'}") as store:
        stored = stored_jobs(store).sort("job_id")
    assert stored.height == 400
    model = train_execution(stored, {"ai": mining}, now=NOW)
    assert {"power", "energy"} & set(model.operations["ai"].features)
    assert model.operations["ai"].dropped["idle_seconds"] == "is the same for all jobs"
    assert not {"flops", "memory_bandwidth"} & {
        n for n, why in model.operations["ai"].dropped.items() if "no job" in why
    }
    seen = [each.operations["ai"] >= SEEN_FROM for each in model.screen(stored) if each is not None]
    assert np.mean(np.array(seen) == mining.to_numpy()) > 0.97


def test_a_real_stream_of_workflows_is_told_apart_with_its_gaps(data: Path) -> None:
    jobs = flowbench(data / "execution" / "eht_smili.zip")
    kind, frame = jobs["kind"], jobs.drop("kind", "run")
    now = int(frame["submit"].max()) - 12 * 3600  # type: ignore[arg-type]  # an instant
    model = train_execution(frame, {"limited": kind.ne(NORMAL)}, now=now, alpha_days=1)
    asked = frame["submit"] >= now
    is_one = kind.filter(asked).ne(NORMAL).to_numpy()
    seen = [
        each.operations["limited"] >= SEEN_FROM
        for each in model.screen(frame.filter(asked))
        if each is not None
    ]
    hits = float((np.array(seen) & is_one).sum())
    assert hits / is_one.sum() > 0.8
    assert hits / sum(seen) > 0.8
    gaps = [said for said in model.missing(frame.filter(asked)) if said is not None]
    assert 0 < len(gaps) < len(seen)
    assert any("kickstart_online_iowait" in said for said in gaps)
