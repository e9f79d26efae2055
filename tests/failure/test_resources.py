"""What a job will need: bounds that hold as often as they say, also when what a cluster runs changes."""

import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.kits.ended_jobs import GIB, job, jobs
from tocsin.core.errors import ModelError
from tocsin.core.outcomes import Outcome
from tocsin.core.stages import Stage
from tocsin.core.verdict import Resources
from tocsin.failure.columns import Columns
from tocsin.failure.conformal import conformal_offset
from tocsin.failure.resources import READ, ResourceModel
from tocsin.history.replay import Replay
from tocsin.sources.swf import SwfFile

SEED = 3


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_offset_covers_its_share_of_later_rows(level: float) -> None:
    rng = np.random.default_rng(SEED)
    before, later = rng.normal(0.3, 1.0, 4000), rng.normal(0.3, 1.0, 20_000)
    assert (later <= conformal_offset(before, level=level)).mean() == pytest.approx(level, abs=0.01)


def test_the_latest_rows_weigh_most() -> None:
    rng = np.random.default_rng(SEED)
    drifting = np.concatenate([rng.normal(0, 1, 20_000), rng.normal(2, 1, 4000)])
    quick, slow = (conformal_offset(drifting, half_life=rows) for rows in (1000, 100_000))
    assert (rng.normal(2, 1, 9000) <= quick).mean() == pytest.approx(0.95, abs=0.02)
    assert quick > slow


def test_a_few_rows_move_no_bound() -> None:
    assert conformal_offset(np.full(5, 3.0)) == 0.0
    assert conformal_offset(np.array([])) == 0.0
    assert conformal_offset(np.full(100, np.nan)) == 0.0
    assert conformal_offset(np.arange(25.0)) == 24.0, "the highest, where the 95th is not among them"


def two_habits(number: int = 400) -> pl.DataFrame:
    """Of ann's jobs with one CPU all run ten minutes or so, of those with 64 some ten hours."""
    rng = np.random.default_rng(SEED)
    small = rng.random(number) < 0.5
    seconds = np.where(small, rng.normal(600, 60, number), rng.normal(36_000, 3000, number)).astype(int)
    return jobs(
        job(n, req_cpus=1 if small[n] else 64, elapsed=int(seconds[n]), time_limit=86_400)
        for n in range(number)
    )


def table(frame: pl.DataFrame) -> np.ndarray:
    return frame.select("req_cpus", "time_limit", "req_memory").cast(pl.Float32).to_numpy()


def unseen(frame: pl.DataFrame) -> pl.DataFrame:
    """Of each job: no earlier one is known."""
    return pl.DataFrame(schema=dict.fromkeys(READ, pl.Float32)).clear(frame.height)


def test_a_job_that_asks_for_less_than_its_like_ever_took_needs_what_they_took() -> None:
    log = two_habits()
    model = ResourceModel.fit(table(log), log, seed=SEED, threads=1)
    one = log.filter(req_cpus=1).head(1)
    told = model.resources(table(one), one, unseen(one))[0].runtime_seconds
    assert told is not None
    history = pl.DataFrame([[9.0, 7000.0, 8000.0, 9000.0]], schema=list(READ), orient="row")
    found = model.resources(table(one), one, history)[0].runtime_seconds
    assert found is not None
    assert (found.p50, found.p95) == (8000, 9000)
    few = history.with_columns(pl.lit(2.0).alias(READ[0]))
    assert model.resources(table(one), one, few)[0].runtime_seconds == told


def test_a_bound_is_as_wide_as_the_habit() -> None:
    log = two_habits()
    model = ResourceModel.fit(table(log), log, seed=SEED, threads=1)
    rows = {}
    for cpus in (1, 64):
        one = log.filter(req_cpus=cpus).head(1)
        rows[cpus] = model.resources(table(one), one, unseen(one))[0]
    short, long = (rows[cpus].runtime_seconds for cpus in (1, 64))
    assert short is not None
    assert long is not None
    assert 500 < short.p50 < 650 < short.p95 < 1200
    assert 33_000 < long.p50 < long.p95 < 50_000
    assert short.requested == 86_400
    assert rows[1].memory_bytes is None, "no job of the training recorded memory"


def test_what_ran_into_its_limit_teaches_nothing() -> None:
    log = two_habits()
    stopped = log.with_columns(
        outcome=pl.lit(str(Outcome.TIMEOUT)), elapsed=pl.lit(86_400, pl.Int64), submit=pl.col("submit") + 1
    )
    both = pl.concat([log, stopped]).sort("submit")
    alone, among = (ResourceModel.fit(table(f), f, seed=SEED, threads=1) for f in (log, both))
    assert alone.resources(table(log), log, unseen(log)) == among.resources(table(log), log, unseen(log))


def test_memory_is_foreseen_where_it_is_recorded() -> None:
    rng = np.random.default_rng(SEED)
    log = jobs(job(n, req_memory=64 * GIB, max_memory=int(rng.normal(2, 0.1) * GIB)) for n in range(200))
    resources = ResourceModel.fit(table(log), log, seed=SEED, threads=1).resources(
        table(log), log, unseen(log)
    )[0]
    assert resources.memory_bytes is not None
    assert GIB < resources.memory_bytes.p50 < resources.memory_bytes.p95 < 4 * GIB


def test_jobs_that_ran_out_of_memory_needed_at_least_what_they_had() -> None:
    """The last sample of such a job may be far below its limit: a real one that died at 100M showed 53M."""
    rng = np.random.default_rng(SEED)
    died = str(Outcome.OUT_OF_MEMORY)
    log = jobs(
        job(n, name="fine", req_memory=64 * GIB, max_memory=int(rng.normal(2, 0.1) * GIB))
        if n % 2
        else job(n, name="greedy", req_memory=8 * GIB, max_memory=GIB // 2, outcome=died)
        for n in range(300)
    )
    X = np.arange(log.height, dtype=np.float32).reshape(-1, 1) % 2
    found = ResourceModel.fit(X, log, seed=SEED, threads=1).resources(X, log, unseen(log))
    memory = [resources.memory_bytes for resources in found[:2]]
    assert memory[0] is not None
    assert memory[1] is not None
    assert memory[0].p50 > 7.9 * GIB
    assert memory[1].p95 < 4 * GIB


def test_a_log_of_too_few_jobs_tells_nothing() -> None:
    log = two_habits(20)
    model = ResourceModel.fit(table(log), log, seed=SEED, threads=1)
    assert model.predict(table(log)) == {}
    assert model.resources(table(log), log, unseen(log))[0] == Resources()


def test_it_is_saved_and_read_back(tmp_path: Path) -> None:
    log = two_habits()
    model = ResourceModel.fit(table(log), log, seed=SEED, threads=1)
    model.save(tmp_path)
    again = ResourceModel.load(tmp_path, threads=1)
    assert again.resources(table(log), log, unseen(log)) == model.resources(table(log), log, unseen(log))
    (tmp_path / "resources.json").write_text('{"version": 1, "quantiles": {"runtime_seconds": 7}}')
    with pytest.raises(ModelError, match=r"resources\.json cannot be read"):
        ResourceModel.load(tmp_path, threads=1)


def test_bounds_cover_95_of_100_on_a_walk_over_a_real_log(data: Path) -> None:
    """KTH-SP2: a model of the first half, then each week the offset from what is known by then."""
    log = pl.concat(b.jobs for b in SwfFile(data / "swf" / "KTH-SP2-1996-2.1-cln.swf.gz").batches())
    known_at = pl.when(pl.col("outcome").is_not_null()).then(pl.col("end") + 60)
    log = log.with_columns(known_at=known_at).sort("submit", "job_id")
    _, X = Columns.fit(log, Replay(log).features(log, stage=Stage.SUBMIT), stage=Stage.SUBMIT, zone="UTC")
    submit, known = log["submit"].to_numpy(), log["known_at"].fill_null(2**60).to_numpy()
    cut = int(submit[log.height // 2])
    train = np.flatnonzero(known <= cut)
    begun = time.process_time()
    model = ResourceModel.fit(X[train], log[train], seed=SEED, threads=1)
    assert time.process_time() - begun < 20
    elapsed = pl.when(outcome="completed").then("elapsed").cast(pl.Float64).fill_null(float("nan"))
    used = log.select(elapsed).to_series().to_numpy()
    within, number = 0, 0
    for week in range(cut, int(submit[-1]), 7 * 86400):
        told = np.flatnonzero(known <= week)
        asked = np.flatnonzero((submit > week) & (submit <= week + 7 * 86400) & ~np.isnan(used))
        bound = model.recalibrated(X[told], log[told]).predict(X[asked])["runtime_seconds"].p95
        within += int((used[asked] <= np.ceil(bound)).sum())
        number += len(asked)
    assert number > 9000
    assert 0.93 <= within / number <= 0.97
