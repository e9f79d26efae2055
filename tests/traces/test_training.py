"""Autoencoders learn what is normal, and say where a window is not."""

import sys

import numpy as np
import polars as pl
import pytest

from tests.kits.traces import KINDS, counters, windows
from tocsin.core.channels import MODES
from tocsin.core.errors import ModelError
from tocsin.traces.architecture import ARCHITECTURES
from tocsin.traces.training import train
from tocsin.traces.windows import Windows

pytestmark = pytest.mark.usefixtures("torch")


def normal(seed: int, **more: int) -> Windows:
    return windows(seed, length=24, **more)


def bad_io(seed: int) -> Windows:
    return windows(seed, kinds=("bad_io",), instants=5, length=24)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_bad_io_reconstructs_far_worse_than_normal_windows(architecture: str) -> None:
    model = train(normal(1, instants=120), architecture=architecture, seconds=3)
    usual, bad = model.score(normal(2)), model.score(bad_io(3))
    assert bad.error.min() > 2 * np.quantile(usual.error, 0.99)
    iowait = MODES.index("iowait")
    assert bad.by_channel[:, iowait].min() > 10 * usual.by_channel[:, iowait].max()
    kinds = np.arange(len(usual.embedding)) % len(KINDS)
    centres = np.stack([usual.embedding[kinds == kind].mean(axis=0) for kind in range(len(KINDS))])
    nearest = np.linalg.norm(usual.embedding[:, None] - centres, axis=2).argmin(axis=1)
    assert (nearest == kinds).mean() > 0.9  # each kind of job has a place of its own


def test_the_same_seed_gives_the_same_bits_and_another_does_not() -> None:
    given = windows(1, instants=6, length=8)
    first, again, other = (train(given, seed=seed).score(given).error for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_an_ensemble_has_a_member_for_each_seed() -> None:
    model = train(windows(1, instants=6, length=8), seed=3, ensemble=2, seconds=0.02)
    assert list(model.seeds) == [3, 4]
    first, second = (weights["decoder.out.weight"] for weights in model.members)
    assert not np.array_equal(first, second)


def test_a_few_bad_windows_in_the_training_data_stay_anomalous() -> None:
    given = normal(1, instants=100)
    values = given.values.copy()
    values[:: len(values) // 6] = bad_io(2).values[:7]
    model = train(Windows(values, given.index), seconds=3)
    assert model.score(bad_io(3)).error.min() > np.quantile(model.score(normal(4)).error, 0.99)


def test_counters_with_units_are_scaled_and_name_the_channel() -> None:
    model = train(counters(1), seconds=3)
    usual, leak = model.score(counters(2)), model.score(counters(3, leak=True))
    assert model.outputs == model.channels
    assert leak.error.min() > usual.error.max()
    assert model.outputs[int(leak.by_channel.mean(axis=0).argmax())] == "memory"
    memory = model.channels.index("memory")
    assert model.reconstruct(counters(2))[..., memory].mean() == pytest.approx(4e9, rel=0.05)


def test_progress_is_reported_to_its_end() -> None:
    reports: list[tuple[int, int]] = []
    train(normal(1, instants=6), seconds=0.01, progress=lambda done, of: reports.append((done, of)))
    assert reports[0][0] == 0
    assert reports[-1][0] == reports[-1][1]


def test_what_cannot_be_learned_from_is_refused() -> None:
    with pytest.raises(ModelError, match="3 windows are too few"):
        train(normal(1)[:3])
    with pytest.raises(ModelError, match='unknown architecture "tree"'):
        train(normal(1), architecture="tree")
    with pytest.raises(ModelError, match="validation windows must have the length"):
        train(normal(1), validation=windows(1, length=30))
    with pytest.raises(ModelError, match="the model reads user"):
        train(normal(1), seconds=0.01).score(counters(1, length=24))


@pytest.mark.parametrize("library", ["torch", "onnx"])
def test_a_missing_library_is_named_with_the_command_that_installs_it(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ModelError, match=r"pip install 'tocsin\[traces\]'"):
        train(normal(1))


def test_what_ran_last_does_not_end_the_training_early() -> None:
    work, rest = normal(1, instants=120), windows(2, kinds=("idle",), instants=40, length=24)
    later = rest.index.with_columns(at=rest.index["at"] + 10_000)
    both = Windows(np.concatenate([work.values, rest.values]), pl.concat([work.index, later]))
    assert train(both, seconds=3).score(normal(3)).error.mean() < 0.03
