"""The most similar past jobs: near, known by then, and found in a moment."""

import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.kits.ended_jobs import job, jobs, row
from tocsin.core.errors import ModelError
from tocsin.core.outcomes import Outcome
from tocsin.failure import similar
from tocsin.failure.similar import SimilarJobs


def log(number: int) -> tuple[pl.DataFrame, np.ndarray]:
    rng = np.random.default_rng(1)
    cpus = rng.integers(1, 500, number)
    frame = jobs(
        job(
            n,
            user="ann" if n % 3 else "bob",
            req_cpus=int(cpus[n]),
            outcome=Outcome.FAILED if cpus[n] > 400 else Outcome.COMPLETED,
        )
        for n in range(number)
    )
    noise = rng.random(number)
    X = np.column_stack([cpus, np.where(noise < 0.1, np.nan, noise), rng.random(number)]).astype(np.float32)
    return frame, X


def asked(**fields: object) -> dict[str, object]:
    return row(10**6, **fields)


def test_the_nearest_by_what_matters_are_found() -> None:
    frame, X = log(600)
    found = SimilarJobs.fit(X, frame, [10.0, 0.1, 0.0]).find(np.array([450, 0.5, 0.5], np.float32), asked())
    assert len(found) == 5
    assert [each.distance for each in found] == sorted(each.distance for each in found)
    assert {each.outcome for each in found} == {Outcome.FAILED}
    numbers = [int(each.job.partition(":")[2].partition("@")[0]) for each in found]
    assert all(abs(int(frame["req_cpus"][n]) - 450) < 40 for n in numbers)
    assert [each.user for each in found] == [frame["user"][n] for n in numbers]


def test_the_distance_is_the_weighted_share_of_ranks_between_two_jobs() -> None:
    frame, X = log(300)
    model = SimilarJobs.fit(X, frame, [3.0, 2.0, 1.0])
    x = np.array([120, np.nan, 0.5], np.float32)
    found = model.find(x, asked(user="bob"), most=300)
    own = similar._coded(x.reshape(1, -1)[:, model.columns], model.edges)[0].tolist()
    expected = {}
    for n, key in enumerate(model.keys):
        parts = [
            float((a == 255) != (b == 255)) or abs(a - b) / 250
            for a, b in zip(model.codes[n].tolist(), own, strict=True)
        ]
        names = sum(0.1 * (model.names[name][n] != (asked(user="bob")[name] or "")) for name in similar.NAMED)
        expected[key] = float(np.dot(parts, model.weights)) + names
    assert len(found) == 300
    assert {each.job: each.distance for each in found} == pytest.approx(expected, abs=6e-5)


def test_jobs_of_the_same_user_are_nearer() -> None:
    frame, X = log(600)
    found = SimilarJobs.fit(X, frame, [1.0, 0.0, 0.0]).find(
        np.array([100, 0.5, 0.5], np.float32), asked(user="bob")
    )
    numbers = [int(each.job.partition(":")[2].partition("@")[0]) for each in found]
    assert {frame["user"][n] for n in numbers} == {"bob"}


def test_a_job_is_never_compared_with_what_was_not_known_then() -> None:
    frame, X = log(600)
    model = SimilarJobs.fit(X, frame, [1.0, 1.0, 1.0])
    early = {**asked(), "submit": int(frame["known_at"].sort()[2])}
    assert len(model.find(X[300], early)) == 3
    assert model.find(X[300], {**asked(), "submit": 0}) == []


def test_gaps_are_near_to_gaps() -> None:
    frame, X = log(600)
    found = SimilarJobs.fit(X, frame, [0.0, 1.0, 0.0]).find(np.array([1, np.nan, 0.5], np.float32), asked())
    numbers = [int(each.job.partition(":")[2].partition("@")[0]) for each in found]
    assert np.isnan(X[numbers, 1]).all()


def test_what_is_kept_is_bounded_and_asked_in_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    frame, X = log(9000)
    monkeypatch.setattr(similar, "UNSUCCESSFUL", 500)
    model = SimilarJobs.fit(np.tile(X, (1, 8)), frame, np.ones(24))
    assert len(model.keys) == similar.LATEST + 500
    model.find(np.tile(X[0], 8), asked())
    begun = time.process_time()
    for _ in range(20):
        model.find(np.tile(X[0], 8), asked())
    assert (time.process_time() - begun) / 20 < 0.01, "2 ms are owed; a busy machine may take longer"


def test_it_is_saved_and_read_back(tmp_path: Path) -> None:
    frame, X = log(300)
    model = SimilarJobs.fit(X, frame, [3.0, 2.0, 1.0])
    model.save(tmp_path)
    again = SimilarJobs.load(tmp_path)
    assert again.find(X[7], asked()) == model.find(X[7], asked())


@pytest.mark.parametrize(
    "change", [('"keys": ["', '"keys": ["x", "'), ('"version": 1', '"version": 2'), ("{", "[")]
)
def test_a_damaged_file_is_refused(tmp_path: Path, change: tuple[str, str]) -> None:
    frame, X = log(100)
    SimilarJobs.fit(X, frame, [1.0, 1.0, 1.0]).save(tmp_path)
    path = tmp_path / "similar.json"
    path.write_text(path.read_text().replace(*change, 1))
    with pytest.raises(ModelError, match=r"similar\.json cannot be read"):
        SimilarJobs.load(tmp_path)
