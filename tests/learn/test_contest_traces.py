"""The contest of trace models: error on normal windows, and a confirmed anomaly halts it for a day."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl
import pytest

from tests.kits.pca_traces import pca_detector
from tests.kits.simulated_windows import COMPUTES, STRIDE, every, windows
from tests.kits.watching import NOON
from tocsin.core.decision import NewCase
from tocsin.core.stages import Stage
from tocsin.core.verdict import CaseStatus
from tocsin.learn.contest import Night
from tocsin.learn.contest_traces import NormalWindows, TracesContest
from tocsin.learn.journal import Journal
from tocsin.learn.nightly import Nightly, Outcome
from tocsin.models.registry import Registry
from tocsin.store import cases
from tocsin.store.database import Store, open_store
from tocsin.store.home import Home
from tocsin.traces.detector import DETECTOR, TracesDetector
from tocsin.traces.model_card import model_card

DAY = 86_400
NOW = NOON + 6 * DAY
MORE_SYSTEM = (0.6, 0.3, 0.05)
SECONDS = 3.0  # of CPU time to train an autoencoder


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(Home(tmp_path / "home").prepare().url) as opened:
        yield opened


def day(number: int, level: Sequence[float], jobs: int = 12) -> pl.DataFrame:
    """Windows of some jobs on one day."""
    first = number * DAY
    return pl.concat(
        windows(f"{number}{job:03}", every(first, first + 200), level=level, seed=number)
        for job in range(jobs)
    )


def kinds(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select("job").unique().with_columns(user=pl.lit("ann"), name=pl.lit("fit")).sort("job")


@pytest.fixture
def detector() -> TracesDetector:
    """A small one; a test may name another."""
    return pca_detector()


@pytest.fixture
def registry(tmp_path: Path, detector: TracesDetector, request: pytest.FixtureRequest) -> Registry:
    """A champion that knows jobs that compute."""
    if detector is DETECTOR:
        request.getfixturevalue("torch")
    made = Registry(tmp_path / "models")
    learned = day(0, COMPUTES)
    fitted = detector.fit_windows(learned, kinds(learned), stride=STRIDE, seconds=SECONDS)
    card = model_card(
        fitted, created=NOON, data="tests", parameters={"ensemble": 1, "seed": 0, "seconds": SECONDS}
    )
    made.promote("traces", made.add("traces", fitted.save, card))
    return made


def night(
    store: Store, registry: Registry, kept: pl.DataFrame, detector: TracesDetector | None = None
) -> Outcome:
    def read(clusters: Sequence[str], since: int, until: int) -> NormalWindows:
        assert list(clusters) == ["lab"]
        during = kept.filter(pl.col("at") > since, pl.col("at") <= until)
        return NormalWindows(during, kinds(during))

    run = Nightly(
        registry=registry,
        contests={"traces": TracesContest(read, detector or pca_detector())},
        journal=Journal(registry.folder / "nightly.json"),
        night=Night(store=store, now=NOW, holdback_days=2),
        day="2026-11-17",
    )
    [found] = run.run("traces")
    return found


@pytest.mark.parametrize("detector", [pca_detector(), DETECTOR], ids=["PCA", "autoencoder"])
def test_a_model_of_todays_normal_jobs_replaces_the_old_one(
    store: Store, registry: Registry, detector: TracesDetector
) -> None:
    kept = pl.concat([day(number, COMPUTES if number < 2 else MORE_SYSTEM) for number in (0, 1, 2, 3, 5)])
    found = night(store, registry, kept, detector)
    assert found.state == "promoted", found.why
    assert found.result is not None
    assert (found.result.figure, found.result.challenger < found.result.champion) == ("cpus.error", True)
    assert found.drift[0].then is not None
    assert {drift.name: drift.strength for drift in found.drift[1:]}["system"] == "strong"
    assert registry.champion("traces", Stage.RUNNING) == "2"
    card = registry.card("traces", "2")
    assert card.window is not None
    assert card.window.last <= NOW - 2 * DAY, "the held-back days trained nothing"


def test_a_confirmed_anomaly_halts_the_day(store: Store, registry: Registry) -> None:
    document = {"detector": "traces"}
    new = NewCase(cause="traces:lab:17", job=f"lab:17@{NOON}", opened=NOW - 7200, document=document)
    with store.writing() as connection:
        number, _ = cases.open_case(connection, new)
    cases.answer(store, number, CaseStatus.CONFIRMED, who="ada", at=NOW - 3600)
    found = night(store, registry, day(1, COMPUTES))
    assert (found.state, registry.versions("traces")) == ("skipped", ["1"])
    assert found.why.startswith(f"an anomaly was confirmed in the last 24 hours (lab:17@{NOON})")
    cases.answer(store, number, CaseStatus.DISMISSED, who="ada", at=NOW - 60)
    assert "anomaly" not in night(store, registry, day(1, COMPUTES)).why


def test_without_windows_nothing_is_retrained(store: Store, registry: Registry) -> None:
    found = night(store, registry, day(3, COMPUTES))
    assert (found.state, "and 0 after it; both are needed" in found.why) == ("skipped", True)
    found = night(store, registry, pl.concat([day(3, COMPUTES), day(5, COMPUTES, jobs=4)]))
    assert (found.state, "4 independent blocks" in found.why) == ("skipped", True)
