"""A model's view of kinds of jobs: errors, embeddings in a plane, and their distance to known bad kinds.

After the paper's Figures 2 to 4. The plane is fitted without the bad kinds; a bad kind is a label of a campaign, or a
region that people confirmed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.channels import CPU_CHANNELS
from tocsin.core.errors import InputError
from tocsin.traces.model import Scores, TraceModel
from tocsin.traces.plane import Plane
from tocsin.traces.windows import Windows

__all__ = [
    "Embedded",
    "bad_centroids",
    "decays",
    "embed",
    "errors_by_kind",
    "in_plane",
    "reconstructions",
    "typical",
    "worst",
    "worst_iowait",
]

_QUANTILES = {"low": 0.05, "lower": 0.25, "median": 0.5, "upper": 0.75, "high": 0.95}
_MOST_POINTS = 100  # of a kind in a scatter plot
_FEWEST = 10  # windows for a correlation
_NEAR = 0.1  # share of the windows


@dataclass(frozen=True, slots=True)
class Embedded:
    """Windows with their scores by a model, and the kind of each."""

    windows: Windows
    scores: Scores
    kinds: NDArray[np.str_]
    bad: NDArray[np.bool_]
    """Whether the kind of the window is a bad one."""

    def of(self, kind: str) -> NDArray[np.bool_]:
        return np.asarray(self.kinds == kind)

    @property
    def names(self) -> list[str]:
        return [str(kind) for kind in np.unique(self.kinds)]

    def frame(self) -> pl.DataFrame:
        """One row for each window: its job, node, CPU and end, kind, error and embedding."""
        embedding = pl.Series("embedding", self.scores.embedding.astype(np.float32)).cast(pl.List(pl.Float32))
        return self.windows.index.with_columns(
            pl.Series("kind", self.kinds.tolist(), dtype=pl.String),
            pl.Series("error", self.scores.error.astype(np.float32)),
            embedding,
        )


def embed(model: TraceModel, windows: Windows, about: pl.DataFrame) -> Embedded:
    """Score windows; `about` has `kind` and `normal` (null counts as normal) of each."""
    if not len(windows):
        raise InputError(f"there is no window of {model.length} s of a known job to embed")
    bad = ~about["normal"].fill_null(True).to_numpy()
    return Embedded(windows, model.score(windows), np.asarray(about["kind"].to_list(), dtype=np.str_), bad)


def errors_by_kind(found: Embedded) -> list[dict[str, Any]]:
    """Reconstruction errors of each kind (Figure 3), normal kinds first, by their median."""
    rows = []
    for kind in found.names:
        of = found.of(kind)
        errors = found.scores.error[of].astype(np.float64)
        rows.append(
            {
                "kind": kind,
                "bad": bool(found.bad[of].any()),
                "windows": int(of.sum()),
                "jobs": found.windows.index.filter(of)["job"].n_unique(),
                "mean": _rounded(errors.mean()),
                "deviation": _rounded(errors.std()),
                **{name: _rounded(np.quantile(errors, q)) for name, q in _QUANTILES.items()},
            }
        )
    return sorted(rows, key=lambda row: (row["bad"], row["median"]))


def in_plane(found: Embedded, seed: int = 0) -> dict[str, Any]:
    """The embeddings in two principal components fitted without the bad kinds (Figure 4a)."""
    good = found.scores.embedding[~found.bad]
    if len(good) < _FEWEST:
        raise InputError(f"{len(good)} windows of normal jobs are too few to compare bad ones with")
    plane = Plane.fit(good)
    random = np.random.default_rng(seed)
    rows = np.concatenate(
        [random.permutation(np.flatnonzero(found.of(kind)))[:_MOST_POINTS] for kind in found.names]
    )
    points = [
        {"kind": str(found.kinds[row]), "x": _rounded(x), "y": _rounded(y)}
        for row, (x, y) in zip(rows, plane.project(found.scores.embedding[rows]), strict=True)
    ]
    return {"explained": [_rounded(share) for share in plane.explained], "points": points}


def worst_iowait(windows: Windows) -> NDArray[np.float64]:
    """The largest share of a second that each window spent waiting for I/O: the worst case, as in the paper."""
    return np.asarray(windows.values[:, :, CPU_CHANNELS.index("iowait")].max(axis=1), dtype=np.float64)


def bad_centroids(found: Embedded) -> dict[str, NDArray[np.float64]]:
    """The centre of each bad kind's embeddings."""
    names = [str(kind) for kind in np.unique(found.kinds[found.bad])]
    return {kind: found.scores.embedding[found.of(kind)].mean(axis=0, dtype=np.float64) for kind in names}


def decays(
    found: Embedded, centroids: Mapping[str, NDArray[np.float64]], seed: int = 0
) -> list[dict[str, Any]]:
    """For each pair of a bad and a normal kind: how worst-case iowait decreases with the distance (Figure 4b).

    The rank correlation (Spearman) is below zero if windows near the bad kind wait longer for I/O; null if all wait
    the same. `iowait_near` is the mean of the nearest tenth, `iowait_far` that of the others.
    """
    from scipy.stats import spearmanr

    random = np.random.default_rng(seed)
    waits = worst_iowait(found.windows)
    rows = []
    for bad, centroid in centroids.items():
        distance = np.linalg.norm(found.scores.embedding - centroid, axis=1)
        for kind in found.names:
            of = np.flatnonzero(found.of(kind) & ~found.bad)
            if len(of) < _FEWEST:
                continue
            known = np.ptp(waits[of]) > 0 and np.ptp(distance[of]) > 0
            correlation = float(spearmanr(distance[of], waits[of]).statistic) if known else None
            near = distance[of] <= np.quantile(distance[of], _NEAR)
            shown = random.permutation(of)[:_MOST_POINTS]
            rows.append(
                {
                    "bad": bad,
                    "kind": kind,
                    "windows": len(of),
                    "nearest": _rounded(distance[of].min()),
                    "median": _rounded(np.median(distance[of])),
                    "correlation": None if correlation is None else _rounded(correlation),
                    "iowait_near": _rounded(waits[of][near].mean()),
                    "iowait_far": _rounded(waits[of][~near].mean() if (~near).any() else waits[of].mean()),
                    "iowait_range": _rounded(np.ptp(waits[of])),
                    "points": [
                        {"distance": _rounded(d), "iowait": _rounded(w)}
                        for d, w in zip(distance[shown], waits[shown], strict=True)
                    ],
                }
            )
    return rows


def typical(found: Embedded, most: int = 6) -> list[int]:
    """Indices of windows to look at: for each kind, one whose error is the kind's median.

    The bad kinds with the largest error and the normal kinds with most windows, half of each if there are enough.
    """
    rows = errors_by_kind(found)
    bad = sorted((row for row in rows if row["bad"]), key=lambda row: -row["median"])
    good = sorted((row for row in rows if not row["bad"]), key=lambda row: -row["windows"])
    few = good[: max(most // 2, most - len(bad))]
    chosen = []
    for row in [*bad[: most - len(few)], *few]:
        of = np.flatnonzero(found.of(row["kind"]))
        chosen.append(int(of[np.argsort(found.scores.error[of])[len(of) // 2]]))
    return chosen


def worst(found: Embedded, of: NDArray[np.bool_], most: int = 4) -> list[int]:
    """Indices of windows to look at: for each CPU, the one with the largest error among these, worst CPUs first."""
    rows = found.windows.index.select("node", "cpu").with_row_index().with_columns(error=found.scores.error)
    ordered = rows.filter(of).sort("error", descending=True)
    return [
        int(row) for row in ordered.unique(["node", "cpu"], keep="first", maintain_order=True)["index"][:most]
    ]


def reconstructions(model: TraceModel, found: Embedded, rows: Sequence[int]) -> list[dict[str, Any]]:
    """These windows as recorded and as reconstructed, in the channel that differs most (Figure 2)."""
    if not rows:
        return []
    # A graph model needs the other CPUs of the same instant, so whole graphs are reconstructed.
    graphs = found.windows.graphs(by_job=model.architecture == "job_graph")
    needed = np.flatnonzero(np.isin(graphs, graphs[list(rows)]))
    rebuilt = model.reconstruct(found.windows[needed])
    place = {int(row): at for at, row in enumerate(needed)}
    shown = []
    for row in rows:
        channel = int(np.argmax(found.scores.by_channel[row]))
        original = _output(found.windows.values[row], model.outputs)[:, channel]
        index = found.windows.index.row(row, named=True)
        shown.append(
            {
                "kind": str(found.kinds[row]),
                "job": index["job"],
                "node": index["node"],
                "cpu": index["cpu"],
                "at": index["at"],
                "channel": model.outputs[channel],
                "error": _rounded(found.scores.error[row]),
                "original": [_rounded(value) for value in original],
                "reconstruction": [_rounded(value) for value in rebuilt[place[row]][:, channel]],
            }
        )
    return shown


def _output(values: NDArray[np.float32], outputs: Sequence[str]) -> NDArray[np.float32]:
    """A window with the channel `other`, if the model has it."""
    if len(outputs) == values.shape[1]:
        return values
    return np.concatenate([values, 1 - values.sum(axis=1, keepdims=True)], axis=1)


def _rounded(value: Any) -> float:
    """Six significant digits: a report is read by people and kept in files."""
    return float(f"{float(value):.6g}")
