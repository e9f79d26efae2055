"""What is quick is the same: one job as among many, a few statistics as all of them, copies as what is declared."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from tocsin.core.detector import Known
from tocsin.core.stages import Stage
from tocsin.core.units import UNLIMITED
from tocsin.failure.columns import Columns
from tocsin.failure.features import CODED, FEATURES
from tocsin.failure.fitted import FittedFailure
from tocsin.failure.history_features import history_features
from tocsin.history import recipe
from tocsin.history.cached import CachedKnown
from tocsin.history.ledger import Ledger
from tocsin.judge.check_data import CheckData
from tocsin.watch.known_at_stage import KnownAtStage

FEW = ["twin.failed_last10", "user.submitted", "cluster.running", "user.since"]


def ledger(check_data: CheckData) -> Ledger:
    """That knows all the jobs; each counts from its own instant on."""
    book = Ledger()
    book.learn(check_data.log)
    return book


def recall(check_data: CheckData) -> KnownAtStage:
    past = KnownAtStage(ledger(check_data), lambda digest: None)
    past.prepare({Stage.SUBMIT: check_data.asked(Stage.SUBMIT)})
    return past


@pytest.fixture(scope="module")
def columns(check_data: CheckData) -> Columns:
    """Every feature that there is."""
    log = check_data.log
    names = {name: log[name].drop_nulls().cast(pl.String).unique().sort().to_list() for name in CODED}
    codes = {name: {value: 1 / (n + 3) for n, value in enumerate(known)} for name, known in names.items()}
    return Columns(Stage.END, "Asia/Kolkata", tuple(FEATURES), codes, {})


def same(one: Any, other: Any) -> bool:
    return one.dtype == other.dtype == np.float32 and np.array_equal(one, other, equal_nan=True)


@pytest.mark.parametrize(
    "past",
    [
        ledger,
        CheckData.known,
        recall,
        lambda check_data: CachedKnown(
            check_data.known(), check_data.asked(Stage.SUBMIT), stage=Stage.SUBMIT
        ),
    ],
    ids=["ledger", "replay", "recall", "remembered"],
)
def test_named_statistics_are_those_of_all(check_data: CheckData, past: Callable[[CheckData], Known]) -> None:
    jobs = check_data.asked(Stage.SUBMIT)
    whole = past(check_data).features(jobs, stage=Stage.SUBMIT)
    assert whole.columns == recipe.columns()
    few = past(check_data).features(jobs, stage=Stage.SUBMIT, names=FEW)
    assert few.columns == FEW
    assert few.equals(whole.select(FEW))
    assert past(check_data).features(jobs.head(0), stage=Stage.SUBMIT, names=FEW).columns == FEW


def test_a_ledger_asked_job_by_job_says_what_it_says_of_all(check_data: CheckData) -> None:
    jobs = check_data.asked(Stage.SUBMIT).head(8)
    together = ledger(check_data).features(jobs, stage=Stage.SUBMIT)
    book = ledger(check_data)
    alone = [book.features(jobs[row], stage=Stage.SUBMIT) for row in range(jobs.height)]
    assert pl.concat(alone).equals(together)
    assert together.null_count().sum_horizontal().item() > 0
    assert not any(column.is_nan().any() for column in together)


def test_a_job_alone_has_the_features_that_it_has_among_others(
    check_data: CheckData, columns: Columns
) -> None:
    jobs = check_data.log.gather_every(10)
    history = history_features(jobs, check_data.known(), stage=Stage.END)
    together = columns.matrix(jobs, history)
    alone = [columns.matrix(jobs[row], history[row]) for row in range(jobs.height)]
    assert same(np.vstack(alone), together)


def test_the_statistics_that_are_read_are_enough(check_data: CheckData, columns: Columns) -> None:
    jobs = check_data.log.gather_every(10)
    history = history_features(jobs, check_data.known(), stage=Stage.END)
    assert same(columns.matrix(jobs, history.select(columns.reads)), columns.matrix(jobs, history))


def test_copies_are_what_an_expression_would_make(check_data: CheckData, columns: Columns) -> None:
    """The same in another form: as polars has it, over the fields and the statistics side by side."""
    jobs = check_data.log
    history = check_data.known().features(jobs, stage=Stage.SUBMIT)
    before, limit = pl.col("user.submitted"), pl.col("time_limit")
    known = pl.when(limit < UNLIMITED).then(limit)
    local = pl.from_epoch("submit").dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Kolkata").dt
    forms = {
        "user.failed_last10": pl.col("user.failed_last10"),
        "user.ended": pl.col("user.ended").clip(upper_bound=50),
        "activity": pl.when(before.is_null() | (before == 0)).then(0).when(before < 20).then(1).otherwise(2),
        "limit/name.elapsed_most": known / (pl.col("name.elapsed_most") + 1),
        "memory/twin.memory_most": pl.when(pl.col("req_memory") > 0).then("req_memory")
        / (pl.col("twin.memory_most") + 1),
        "common_partition": pl.col("partition").replace_strict(
            columns.codes["partition"], default=None, return_dtype=pl.Float64
        ),
        "common_gid": pl.col("gid")
        .cast(pl.String)
        .replace_strict(columns.codes["gid"], default=None, return_dtype=pl.Float64),
        "weekday": local.weekday(),
    }
    found = columns.only(tuple(forms)).matrix(jobs, history)
    both = pl.concat([jobs, history], how="horizontal")
    table = both.select(form.cast(pl.Float32).alias(name) for name, form in forms.items())
    assert same(found, table.to_numpy())
    assert all(np.unique(found[:, n]).size > 1 for n, name in enumerate(forms) if name != "common_gid")


def test_a_value_that_was_never_seen_has_no_share(check_data: CheckData, columns: Columns) -> None:
    jobs = check_data.log.head(3).with_columns(partition=pl.Series(["nowhere", None, ""]))
    history = check_data.known().features(jobs, stage=Stage.SUBMIT)
    assert np.isnan(columns.only(("common_partition",)).matrix(jobs, history)).all()
    without = Columns(Stage.SUBMIT, "UTC", ("common_qos", "hour"), {}, {}).matrix(jobs, history)
    assert np.isnan(without).tolist() == [[True, False]] * 3


def test_a_verdict_with_explanation_has_the_same_probability(
    check_data: CheckData, model: FittedFailure
) -> None:
    """One asks for the statistics that it needs, the other for all."""
    past = check_data.known()
    for row in range(3):
        job = check_data.asked(Stage.SUBMIT)[row]
        brief = model.assess(job, past, stage=Stage.SUBMIT)[0]
        whole = model.explain(job, past, stage=Stage.SUBMIT)
        assert brief.failure is not None
        assert whole.failure is not None
        assert brief.failure.probability == whole.failure.probability
        assert brief.missing == whole.missing
        assert brief.resources == whole.resources
