"""The most similar past jobs: close in the model's main features, with the same user, name and partition."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.errors import ModelError
from tocsin.core.frames import key_text
from tocsin.core.outcomes import Outcome
from tocsin.core.verdict import Similar
from tocsin.models.engines import Floats, Matrix
from tocsin.models.files import MALFORMED, read_json

__all__ = ["FILE", "SimilarJobs"]

FILE = "similar.json"
VERSION = 1
LATEST = 5000
UNSUCCESSFUL = 3000
"""Earlier unsuccessful jobs kept in addition to the latest ones: they are what people look for."""
FEATURES = 16
NAMED = ("user", "name", "partition")
_NAMED_WEIGHT = 0.1
"""The share of the distance that each of the names decides; the features share the rest by their gain."""
_STEPS = 250
_GAP = 255
"""The code of an unknown value."""

Codes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class SimilarJobs:
    """Uses ranks instead of values: two values differ by how many of the kept jobs lie between them."""

    columns: NDArray[np.int64]
    """The columns of the model's matrix that are compared."""
    weights: Floats
    edges: Sequence[Floats]
    """For each of them, the values that separate its ranks."""
    codes: Codes
    """Rows of kept jobs, columns as above; columns are contiguous in memory, since they are read one by one."""
    names: Mapping[str, NDArray[Any]]
    keys: list[str]
    outcomes: list[str]
    known: NDArray[np.int64]

    @classmethod
    def fit(cls, X: Matrix, jobs: pl.DataFrame, gains: Sequence[float] | Floats) -> "SimilarJobs":
        """`X` and `jobs` row by row in order of time, outcomes known; `gains` are the importances of the columns."""
        rows = _kept(jobs)
        gain = np.nan_to_num(np.asarray(gains, dtype=np.float64)).clip(0)
        columns = np.argsort(-gain, kind="stable")[: min(FEATURES, int((gain > 0).sum()) or 1)]
        weights = gain[columns] / gain[columns].sum() if gain[columns].sum() else np.ones(len(columns))
        kept = X[rows][:, columns]
        edges = [_edges(kept[:, place]) for place in range(len(columns))]
        kept_jobs = jobs[rows].with_columns(key_text())
        return cls(
            columns=columns,
            weights=weights * (1 - _NAMED_WEIGHT * len(NAMED)),
            edges=edges,
            codes=_coded(kept, edges),
            names={name: _text(kept_jobs[name]) for name in NAMED},
            keys=kept_jobs["job"].to_list(),
            outcomes=kept_jobs["outcome"].to_list(),
            known=kept_jobs["known_at"].to_numpy().astype(np.int64),
        )

    def find(self, x: Matrix, job: Mapping[str, Any], *, most: int = 5) -> list[Similar]:
        """For one row of the matrix and the job's own fields: jobs whose outcome was known when it was submitted."""
        own = _coded(x.reshape(1, -1)[:, self.columns], self.edges)[0]
        distance = np.zeros(len(self.keys))
        for codes, apart in zip(self.codes.T, _apart(own) * self.weights[:, None], strict=True):
            distance += apart.take(codes)
        for name, values in self.names.items():
            distance += _NAMED_WEIGHT * (values != (job[name] or ""))
        distance[self.known > job["submit"]] = np.inf
        near = np.arange(len(distance))
        if len(near) > most:  # sorting all of them would take longer than measuring their distances
            near = np.flatnonzero(distance <= np.partition(distance, most - 1)[most - 1])
        nearest = near[np.lexsort((-self.known[near], distance[near]))][:most]
        return [
            Similar(
                job=self.keys[n],
                outcome=Outcome(self.outcomes[n]),
                distance=round(float(distance[n]), 4),
                user=self.names["user"][n] or None,
            )
            for n in nearest.tolist()
            if np.isfinite(distance[n])
        ]

    def save(self, folder: Path) -> None:
        document = {
            "version": VERSION,
            "columns": self.columns.tolist(),
            "weights": self.weights.tolist(),
            "edges": [edges.tolist() for edges in self.edges],
            "codes": base64.b64encode(self.codes.tobytes()).decode("ascii"),
            "names": {name: values.tolist() for name, values in self.names.items()},
            "keys": self.keys,
            "outcomes": self.outcomes,
            "known": self.known.tolist(),
        }
        (folder / FILE).write_text(json.dumps(document, sort_keys=True, allow_nan=False) + "\n", "utf-8")

    @classmethod
    def load(cls, folder: Path) -> "SimilarJobs":
        path = folder / FILE
        try:
            document = read_json(path)
            if document["version"] != VERSION:
                raise ValueError(f"it is not of version {VERSION}")
            return _read(document)
        except (OSError, *MALFORMED) as error:
            raise ModelError(f"{path} cannot be read: {str(error)[:200]}; train again") from None


def _read(document: Mapping[str, Any]) -> SimilarJobs:
    keys, columns = document["keys"], np.array(document["columns"], dtype=np.int64)
    raw = np.frombuffer(base64.b64decode(document["codes"], validate=True), dtype=np.uint8)
    found = SimilarJobs(
        columns=columns,
        weights=np.array(document["weights"], dtype=np.float64),
        edges=[np.array(edges, dtype=np.float64) for edges in document["edges"]],
        codes=np.asfortranarray(raw.reshape(len(keys), len(columns))),
        names={name: np.array(document["names"][name], dtype=object) for name in NAMED},
        keys=[str(key) for key in keys],
        outcomes=[str(Outcome(outcome)) for outcome in document["outcomes"]],
        known=np.array(document["known"], dtype=np.int64),
    )
    lengths = {len(keys), len(found.outcomes), len(found.known), *(len(v) for v in found.names.values())}
    if len(lengths) > 1 or not len(columns) == len(found.weights) == len(found.edges):
        raise ValueError("its columns are not of the same length")
    return found


def _kept(jobs: pl.DataFrame) -> NDArray[np.int64]:
    """The latest rows, and before them the latest unsuccessful ones."""
    first = max(0, jobs.height - LATEST)
    failed = np.flatnonzero(jobs["outcome"][:first].ne(str(Outcome.COMPLETED)).to_numpy())
    return np.concatenate([failed[-UNSUCCESSFUL:], np.arange(first, jobs.height)]).astype(np.int64)


def _edges(values: Matrix) -> Floats:
    known = values[np.isfinite(values)].astype(np.float64)
    if not len(known):
        return np.empty(0)
    return np.unique(np.quantile(known, np.linspace(0, 1, _STEPS)[1:-1], method="lower"))


def _coded(values: Matrix, edges: Sequence[Floats]) -> Codes:
    """The rank of each value from 0 to 249, scaled so that the range is the same for any number of edges."""
    found = np.empty(values.shape, np.uint8, order="F")
    for place, parts in enumerate(edges):
        column = values[:, place].astype(np.float64)
        ranks = np.searchsorted(parts, column, side="left") * ((_STEPS - 1) / max(len(parts), 1))
        found[:, place] = np.where(np.isnan(column), _GAP, np.rint(ranks))
    return found


def _apart(own: Codes) -> Floats:
    """The distance of each of these codes from every code, one row each."""
    all_codes, codes = np.arange(256), own.astype(np.int64)[:, None]
    gaps = (all_codes == _GAP) != (codes == _GAP)
    return np.where(gaps, 1.0, np.abs(all_codes - codes) / _STEPS)


def _text(values: pl.Series) -> NDArray[Any]:
    return np.array(values.fill_null("").to_list(), dtype=object)
