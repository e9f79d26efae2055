"""`tocsin traces bench`: figures of each method on labelled series."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from tests.kits.command_line import Tocsin


def _write(path: Path, seed: int = 0, **replace: object) -> None:
    random = np.random.default_rng(seed)
    wave = np.sin(np.arange(900) / 10)[:, None] * [1.0, 2.0, 3.0] + 0.1 * random.normal(size=(900, 3))
    label = np.zeros(300, dtype=np.int64)
    label[100:140] = 1
    wave[700:740, 1] *= -1
    np.savez(path, **{"train": wave[:600], "test": wave[600:], "test_label": label, **replace})  # type: ignore[arg-type]


def test_figures_of_each_series_and_method_and_their_mean(tocsin: Tocsin, tmp_path: Path) -> None:
    folder = tmp_path / "series"
    folder.mkdir()
    _write(folder / "a.npz")
    _write(folder / "b.npz", seed=1)
    done = tocsin("traces", "bench", str(folder), "--scores", str(tmp_path / "scores"), "--json")
    report = json.loads(done.out)
    assert set(report["files"]) == {"a", "b"}
    assert set(report["mean"]) == {"tocsin", "pca", "iforest"}
    for method, mean in report["mean"].items():
        assert mean["auc_pr"] == pytest.approx(
            np.mean([report["files"][name][method]["auc_pr"] for name in "ab"]), abs=1e-4
        )
    assert report["mean"]["tocsin"]["auc_pr"] > report["mean"]["iforest"]["auc_pr"]
    with np.load(tmp_path / "scores" / "a.npz") as scores, np.load(folder / "a.npz") as series:
        again = average_precision_score(series["test_label"], scores["tocsin"])
    assert again == pytest.approx(report["files"]["a"]["tocsin"]["auc_pr"], abs=1e-4)


def test_a_series_without_an_anomaly_has_no_figure(tocsin: Tocsin, tmp_path: Path) -> None:
    _write(tmp_path / "quiet.npz", test_label=np.zeros(300))
    report = json.loads(tocsin("traces", "bench", str(tmp_path), "--json").out)
    assert report["files"]["quiet"]["tocsin"] == {"auc_pr": None, "best_f1": None}
    assert report["mean"]["pca"]["auc_pr"] is None


@pytest.mark.parametrize(
    ("arrays", "word"),
    [
        ({"test_label": np.zeros(7)}, "labels"),
        ({"train": np.zeros((500, 2))}, "channels"),
        ({"train": np.zeros((50, 3))}, "too few"),
        ({"train": np.array([["x"] * 3] * 200)}, "numbers"),
        ({"test": np.array([object()] * 3, dtype=object)}, "plain arrays"),
    ],
)
def test_an_unusable_file_is_named(
    tocsin: Tocsin, tmp_path: Path, arrays: dict[str, object], word: str
) -> None:
    _write(tmp_path / "odd.npz", **arrays)
    done = tocsin("traces", "bench", str(tmp_path))
    assert "odd.npz" in done.err
    assert word in done.err


@pytest.mark.parametrize(
    "odd",
    [
        {"train": np.ones((200, 3))},
        {"train": np.full((200, 3), np.nan)},
        {"train": np.where(np.arange(600).reshape(200, 3) == 7, np.inf, 1.5)},
        {"test": np.full((300, 3), -np.inf)},
        {"test": np.full((300, 3), 1e308)},
        {"test": np.zeros((4, 3)), "test_label": np.array([0, 1, 1, 0])},
        {"train": np.arange(200.0), "test": np.arange(300.0) % 50},
    ],
    ids=[
        "still",
        "unknown",
        "infinite once",
        "infinite test",
        "huge",
        "shorter than a window",
        "one channel",
    ],
)
def test_odd_series_have_figures_of_every_method(
    odd: dict[str, object], tocsin: Tocsin, tmp_path: Path
) -> None:
    _write(tmp_path / "a.npz", **odd)
    figures = json.loads(tocsin("traces", "bench", str(tmp_path), "--json").out)["files"]["a"]
    assert all(0 <= row["auc_pr"] <= 1 for row in figures.values())


def test_garbage_and_an_empty_folder_are_errors(tocsin: Tocsin, tmp_path: Path) -> None:
    assert "no .npz file" in tocsin("traces", "bench", str(tmp_path)).err
    (tmp_path / "x.npz").write_bytes(b"PK\x03\x04 not a zip")
    assert "x.npz" in tocsin("traces", "bench", str(tmp_path)).err
    assert "no folder" in tocsin("traces", "bench", str(tmp_path / "none")).err
