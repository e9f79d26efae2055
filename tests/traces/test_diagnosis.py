"""What a model makes of kinds of jobs, on a simulated campaign (the paper's Figures 2 to 4)."""

import numpy as np
import polars as pl
import pytest

from tests.kits.pca_traces import PcaModel
from tocsin.app.traces_samples import campaign_samples
from tocsin.core.errors import InputError
from tocsin.traces.campaigns import Split
from tocsin.traces.diagnosis import (
    Embedded,
    bad_centroids,
    decays,
    embed,
    errors_by_kind,
    in_plane,
    reconstructions,
    typical,
    worst,
    worst_iowait,
)
from tocsin.traces.plane import Plane
from tocsin.traces.simulation import SimulationPlan, simulated_campaign
from tocsin.traces.windows import Windows

TYPES = ("fit", "good_io", "mpi_2", "idle", "bad_io")


def labelled(split: Split, seed: int) -> tuple[Windows, pl.DataFrame]:
    plan = SimulationPlan(split=split, nodes=3, cpus=16, seconds=1200, seed=seed, types=TYPES)
    return campaign_samples(simulated_campaign(plan)).windows(100, 20)


@pytest.fixture(scope="module")
def model() -> PcaModel:
    windows, about = labelled(Split.TRAIN, 1)
    return PcaModel.fit(windows[about["normal"].to_numpy()])


@pytest.fixture(scope="module")
def found(model: PcaModel) -> Embedded:
    return embed(model, *labelled(Split.TEST, 2))


def test_a_kind_that_was_not_trained_on_has_the_largest_error(found: Embedded) -> None:
    rows = errors_by_kind(found)
    assert rows[-1]["kind"] == "bad_io"
    assert rows[-1]["bad"]
    assert rows[-1]["low"] > 5 * max(row["median"] for row in rows[:-1])
    assert {row["kind"]: row["windows"] for row in rows} == {
        kind: int((found.kinds == kind).sum()) for kind in TYPES
    }


def test_windows_near_bad_io_wait_longer_for_io(found: Embedded) -> None:
    [fits] = [row for row in decays(found, bad_centroids(found)) if row["kind"] == "fit"]
    assert fits["bad"] == "bad_io"
    assert fits["correlation"] < -0.3
    assert fits["iowait_near"] > 2 * fits["iowait_far"]
    assert {"distance", "iowait"} == set(fits["points"][0])


def test_bad_kinds_have_no_say_in_the_plane(found: Embedded) -> None:
    plane = in_plane(found)
    normal = Plane.fit(found.scores.embedding[~found.bad])
    assert plane["explained"] == pytest.approx(normal.explained, rel=1e-4)
    assert {point["kind"] for point in plane["points"]} == set(TYPES)
    with pytest.raises(InputError, match="0 windows of normal jobs are too few to compare"):
        in_plane(Embedded(found.windows, found.scores, found.kinds, np.ones(len(found.windows), dtype=bool)))


def test_a_reconstruction_is_shown_beside_the_original(model: PcaModel, found: Embedded) -> None:
    shown = reconstructions(model, found, typical(found))
    assert [each["kind"] for each in shown].count("bad_io") == 1
    assert len({each["kind"] for each in shown}) == len(shown) == 5
    for each in shown:
        squared = (np.array(each["original"]) - np.array(each["reconstruction"])) ** 2
        assert len(squared) == 100
        # the channel shown differs most, so it is above the mean over the four channels
        assert squared.mean() >= each["error"] * 0.99


def test_the_worst_cpus_are_those_with_the_largest_errors(found: Embedded) -> None:
    of = found.of("fit")
    numbers = worst(found, of, most=3)
    errors = found.scores.error[numbers]
    assert errors[0] == found.scores.error[of].max()
    assert list(errors) == sorted(errors, reverse=True)
    assert found.windows.index[numbers].select("node", "cpu").n_unique() == 3


def test_embeddings_become_a_table_with_one_row_for_each_window(found: Embedded) -> None:
    frame = found.frame()
    assert frame.columns == ["job", "node", "cpu", "at", "gaps", "kind", "error", "embedding"]
    assert frame.height == len(found.windows)
    assert frame["embedding"][7].to_list() == pytest.approx(found.scores.embedding[7].tolist())


def test_the_worst_wait_is_that_of_the_worst_second() -> None:
    windows = Windows(np.zeros((1, 4, 3), np.float32), pl.DataFrame({"job": ["a"]}))
    windows.values[0, 2, 2] = 0.75
    assert worst_iowait(windows).tolist() == [0.75]
