"""What was known by T: the same at once and job by job, and blind to everything that came later."""

import zlib
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.core.fields import Job
from tocsin.core.frames import from_jobs
from tocsin.core.outcomes import Outcome
from tocsin.core.stages import Stage
from tocsin.core.units import UNLIMITED
from tocsin.demo.cluster import DemoCluster
from tocsin.history import recipe, snapshot
from tocsin.history.ledger import Ledger
from tocsin.history.replay import Replay
from tocsin.history.snapshot import FILE, open_ledger, save_ledger
from tocsin.sources.swf import SwfFile

LAG = 60


def known(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(known_at=pl.when(pl.col("outcome").is_not_null()).then(pl.col("end") + LAG))


def public_log(data: Path, name: str) -> pl.DataFrame:
    return known(pl.concat(batch.jobs for batch in SwfFile(data / "swf" / f"{name}.swf.gz").batches()))


@pytest.fixture(scope="module")
def demo() -> pl.DataFrame:
    return known(pl.concat(batch.jobs for batch in DemoCluster(seed=3, days=6).history().batches()))


def differing(one: pl.DataFrame, other: pl.DataFrame) -> list[str]:
    return [name for name in one.columns if not one[name].eq_missing(other[name]).all()]


jobs = st.builds(
    Job,
    cluster=st.just("lab"),
    job_id=st.integers(1, 9),
    task=st.none() | st.integers(0, 2),
    submit=st.integers(0, 3).map(lambda n: n * 40_000),
    user=st.none() | st.sampled_from(["alice", "bob"]),
    name=st.none() | st.sampled_from(["a", "b"]),
    partition=st.none() | st.just("main"),
    req_cpus=st.none() | st.integers(1, 2),
    req_memory=st.none() | st.sampled_from([0, 2**30, 2**45]),
    time_limit=st.none() | st.sampled_from([60, 3600, UNLIMITED]),
    max_memory=st.none() | st.integers(0, 2**46),
)


@st.composite
def logs(draw: st.DrawFn) -> pl.DataFrame:
    """Jobs that started, ended and became known in order, or did not yet."""
    rows = []
    for job in draw(st.lists(jobs, max_size=25, unique_by=lambda j: j.key)):
        start = draw(st.none() | st.integers(0, 4).map(lambda n, s=job.submit: s + n * 100))
        outcome = draw(st.none() | st.sampled_from(list(Outcome)))
        elapsed = draw(st.integers(0, 900_000))
        end = None if outcome is None else (start if start is not None else job.submit) + elapsed
        rows.append(
            {
                **{name: getattr(job, name) for name in Job.__slots__},
                "start": start,
                "end": end,
                "outcome": outcome,
                "elapsed": None if start is None else elapsed,
            }
        )
    return known(from_jobs([Job(**row) for row in rows]))


@given(logs(), st.sampled_from([Stage.SUBMIT, Stage.START, Stage.EARLY, Stage.END]))
@settings(deadline=None, max_examples=40)
def test_job_by_job_comes_to_the_same_as_all_at_once(log: pl.DataFrame, stage: Stage) -> None:
    ledger = Ledger()
    ledger.learn(log)
    assert differing(Replay(log).features(log, stage=stage), ledger.features(log, stage=stage)) == []


@pytest.mark.parametrize("stage", [Stage.SUBMIT, Stage.START, Stage.EARLY, Stage.END])
def test_both_forms_agree_on_the_demo(demo: pl.DataFrame, stage: Stage) -> None:
    ledger = Ledger()
    ledger.learn(demo)
    assert differing(Replay(demo).features(demo, stage=stage), ledger.features(demo, stage=stage)) == []


@pytest.mark.parametrize(("name", "every"), [("KTH-SP2-1996-2.1-cln", 2), ("SDSC-BLUE-2000-4.2-cln", 12)])
def test_both_forms_agree_on_a_real_log(data: Path, name: str, every: int) -> None:
    """The whole log is counted, and asked about row by row; here every so many rows, in `make bench` each one."""
    log = public_log(data, name)
    asked = log.gather_every(every)
    ledger = Ledger()
    ledger.learn(log)
    found = Replay(log).features(asked, stage=Stage.SUBMIT)
    assert found.height == asked.height > 10_000
    assert differing(found, ledger.features(asked, stage=Stage.SUBMIT)) == []


@pytest.mark.parametrize("stage", list(Stage))
def test_few_jobs_are_told_the_same_as_all(demo: pl.DataFrame, stage: Stage) -> None:
    replay = Replay(demo)
    rows = [3, demo.height // 2, demo.height - 1]
    odd = demo.with_columns(name=pl.lit("never seen"), user=pl.lit(None, pl.String))
    for jobs in (demo, odd):
        assert (
            differing(replay.features(jobs[rows], stage=stage), replay.features(jobs, stage=stage)[rows])
            == []
        )
    assert replay.features(demo.head(0), stage=stage).height == 0


def test_nothing_that_comes_later_changes_a_bit(demo: pl.DataFrame) -> None:
    """Outcomes, ends, usage and jobs after T are replaced by others; what was known before T stays as it was."""
    cut = int(demo["submit"].quantile(0.6) or 0)
    after = pl.col("known_at").is_null() | (pl.col("known_at") > cut)
    scrambled = demo.filter((pl.col("submit") <= cut) | (pl.col("job_id") % 3 == 0)).with_columns(
        pl.when(after).then(pl.lit("failed")).otherwise("outcome").alias("outcome"),
        pl.when(after)
        .then(pl.col("known_at").fill_null(cut) + 777_777)
        .otherwise("known_at")
        .alias("known_at"),
        pl.when(pl.col("start") > cut).then(pl.col("start") + 5_000).otherwise("start").alias("start"),
        pl.when(after).then(123_456).otherwise("elapsed").alias("elapsed"),
        pl.when(after).then(2**40).otherwise("max_memory").alias("max_memory"),
        pl.when(pl.col("submit") > cut).then(pl.lit("mallory")).otherwise("user").alias("user"),
    )
    before = demo.filter(pl.col("submit") <= cut)
    asked = scrambled.filter(pl.col("submit") <= cut)
    truth = Replay(demo).features(before, stage=Stage.SUBMIT)
    assert truth.height > 500
    assert differing(truth, Replay(scrambled).features(asked, stage=Stage.SUBMIT)) == []


def test_the_order_of_the_rows_does_not_matter(demo: pl.DataFrame) -> None:
    shuffled = demo.sample(fraction=1.0, shuffle=True, seed=5)
    one = Replay(demo).features(demo, stage=Stage.SUBMIT).with_columns(demo["job_id", "task", "submit"])
    other = (
        Replay(shuffled)
        .features(shuffled, stage=Stage.SUBMIT)
        .with_columns(shuffled["job_id", "task", "submit"])
    )
    key = ["job_id", "task", "submit"]
    assert differing(one.sort(key), other.sort(key)) == []


def test_a_user_with_two_failures_is_known_for_them_once_they_are_known() -> None:
    def job(number: int, submit: int, outcome: Outcome) -> Job:
        return Job(
            cluster="lab", job_id=number, task=None, submit=submit, user="alice", start=submit + 10, end=submit + 100,
            elapsed=90, time_limit=180, outcome=outcome, known_at=submit + 160,
        )  # fmt: skip

    log = from_jobs(
        [job(1, 0, Outcome.OUT_OF_MEMORY), job(2, 50, Outcome.TIMEOUT), job(3, 170, Outcome.COMPLETED)]
    )
    asked = from_jobs(
        [Job(cluster="lab", job_id=9, task=None, submit=at, user="alice") for at in (159, 160, 210, 400)]
    )
    found = Replay(log).features(asked, stage=Stage.SUBMIT)
    assert found["user.ended"].to_list() == [0, 1, 2, 3]
    assert found["user.failed"].to_list() == [None, 1, 1, pytest.approx(2 / 3)]
    assert found["user.streak"].to_list() == [0, 1, 2, -1]
    assert found["user.time_used"].to_list() == [None, 0.5, 0.5, 0.5]
    assert found["user.elapsed_least"].to_list() == [None, None, None, 90]
    assert found["user.running"].to_list() == [2, 1, 1, 0]
    assert found["user.submitted"].to_list() == [2, 2, 3, 3]


def test_every_statistic_has_a_column_and_a_meaning() -> None:
    empty = Replay(from_jobs([])).features(from_jobs([]), stage=Stage.SUBMIT)
    assert empty.columns == recipe.columns()
    assert all(statistic.doc for statistic in recipe.STATISTICS)


class Store:
    """A store that a test can add to and take from."""

    def __init__(self, jobs: pl.DataFrame) -> None:
        self.jobs = jobs
        self.asked: list[int] = []

    def load(self, since: int) -> pl.DataFrame:
        self.asked.append(since)
        return self.jobs.filter(
            pl.col("end").is_null() | (pl.col("end") >= since) | (pl.col("known_at") >= since)
        )

    def fingerprint(self, until: int) -> str:
        return str(self.jobs.filter(pl.col("known_at") <= until).height)


def test_a_saved_ledger_goes_on_where_it_stopped(demo: pl.DataFrame, tmp_path: Path) -> None:
    cut = int(demo["submit"].quantile(0.7) or 0)
    later = demo.filter(pl.col("submit") > cut)
    whole = Ledger()
    whole.learn(demo)
    expected = whole.features(later, stage=Stage.SUBMIT)

    store = Store(demo)
    first = open_ledger(tmp_path, store.load, store.fingerprint)
    first.advance(cut)
    save_ledger(tmp_path, first, store.fingerprint)
    second = open_ledger(tmp_path, store.load, store.fingerprint)
    assert store.asked[0] == 0
    assert store.asked[1] > 0
    assert differing(expected, second.features(later, stage=Stage.SUBMIT)) == []


def test_a_snapshot_that_no_longer_fits_the_store_is_left_aside(demo: pl.DataFrame, tmp_path: Path) -> None:
    store = Store(demo)
    ledger = open_ledger(tmp_path, store.load, store.fingerprint)
    ledger.advance(int(demo["known_at"].max() or 0))  # type: ignore[arg-type]  # they are whole numbers
    save_ledger(tmp_path, ledger, store.fingerprint)
    store.jobs = demo.head(demo.height // 2)
    open_ledger(tmp_path, store.load, store.fingerprint)
    assert store.asked == [0, 0]


@pytest.mark.parametrize("content", [b"", b"nonsense", b"x\x9c\x03\x00\x00\x00\x00\x01"])
def test_a_damaged_snapshot_is_made_anew(demo: pl.DataFrame, tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    store = Store(demo)
    open_ledger(tmp_path, store.load, store.fingerprint)
    assert store.asked == [0]


@pytest.mark.parametrize("text", [b"[" * 100_000, b'"' + b" " * 2000 + b'"'])
def test_a_snapshot_that_would_fill_the_memory_or_the_stack_is_made_anew(
    demo: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes
) -> None:
    monkeypatch.setattr(snapshot, "MOST_BYTES", len(text) if text.startswith(b"[") else 1000)
    (tmp_path / FILE).write_bytes(zlib.compress(text))
    store = Store(demo)
    open_ledger(tmp_path, store.load, store.fingerprint)
    assert store.asked == [0]
