"""Trained autoencoders served by ONNX Runtime: one or several seeds, saved as .onnx files and model.json."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.core.errors import ModelError
from tocsin.models.files import MALFORMED, read_document, read_file
from tocsin.traces.architecture import Architecture
from tocsin.traces.batches import PaddedGraphs, graph_batches
from tocsin.traces.model import Scores
from tocsin.traces.onnx_graph import INPUTS, OUTPUTS, Weights, build_graph, read_weights
from tocsin.traces.scaling import Scaling, shares
from tocsin.traces.windows import Windows

__all__ = ["OnnxModel", "load_model"]

Floats = NDArray[np.float32]
Rows = slice | NDArray[np.int64]

_VERSION = 1
_DOCUMENT = "model.json"
_MOST_MEMBERS = 100
_MOST_BYTES = 64 << 20
_BATCH = 64  # windows at a time: data between two layers stays in the cache
_NEXT = "train again: tocsin traces train"


def load_model(folder: Path) -> "OnnxModel":
    """A model that `save` wrote. Files are data: their graph is compared with ours and never run as is."""
    document = read_document(folder / _DOCUMENT, version=_VERSION, next_step=_NEXT)
    try:
        architecture, scaling, normal, seeds = _parse(document)
    except MALFORMED as error:
        raise ModelError(f"{folder / _DOCUMENT} is malformed: {str(error)[:200]}; {_NEXT}") from None
    members = []
    for number in range(len(seeds)):
        path = folder / _file(number)
        members.append(read_weights(architecture, read_file(path, most=_MOST_BYTES), str(path)))
    return OnnxModel(architecture, members, seeds, scaling, normal)


@dataclass(frozen=True)
class OnnxModel:
    """The trace model of one or more seeds: the error is the mean of all members, the embedding is the first's."""

    design: Architecture
    members: Sequence[Weights]
    seeds: Sequence[int]
    scaling: Scaling | None = None
    """For channels with units."""
    normal: Floats | None = None
    """The usual error of each channel with units: errors are multiples of it, so that no channel dominates."""

    @property
    def architecture(self) -> str:
        return self.design.name

    @property
    def length(self) -> int:
        return self.design.length

    @property
    def channels(self) -> Sequence[str]:
        return self.design.channels

    @property
    def outputs(self) -> Sequence[str]:
        return self.design.outputs

    @property
    def parameters(self) -> int:
        """Trained numbers of one member."""
        return sum(int(np.prod(shape)) for shape in self.design.parameters().values())

    def score(self, windows: Windows) -> Scores:
        embedding = np.zeros((len(windows), self.design.embedding), dtype=np.float32)
        by_channel = np.zeros((len(windows), len(self.outputs)), dtype=np.float32)
        share = np.float32(1 / len(self.members))

        def add(number: int, rows: Rows, errors: Floats, embedded: Floats) -> None:
            by_channel[rows] += errors * share
            if number == 0:
                embedding[rows] = embedded

        self._run(windows, OUTPUTS[:2], add)
        if self.normal is not None:
            by_channel /= self.normal
        if not (np.isfinite(by_channel).all() and np.isfinite(embedding).all()):
            raise ModelError(f"the model gives values that are not finite; {_NEXT}")
        return Scores(by_channel.mean(axis=1), by_channel, embedding)

    def reconstruct(self, windows: Windows) -> Floats:
        found = np.zeros((len(windows), self.length, len(self.outputs)), dtype=np.float32)
        share = np.float32(1 / len(self.members))

        def add(_: int, rows: Rows, values: Floats) -> None:
            found[rows] += values.transpose(0, 2, 1) * share

        self._run(windows, OUTPUTS[2:], add)
        return found if self.scaling is None else self.scaling.restored(found)

    def save(self, folder: Path) -> None:
        for number, weights in enumerate(self.members):
            content = build_graph(self.design, weights).SerializeToString(deterministic=True)
            (folder / _file(number)).write_bytes(content)
        document = {
            "version": _VERSION,
            "architecture": self.architecture,
            "length": self.length,
            "channels": list(self.channels),
            "outputs": list(self.outputs),
            "embedding": self.design.embedding,
            "seeds": list(self.seeds),
            "centre": None if self.scaling is None else self.scaling.centre.tolist(),
            "scale": None if self.scaling is None else self.scaling.scale.tolist(),
            "normal": None if self.normal is None else self.normal.tolist(),
        }
        (folder / _DOCUMENT).write_text(json.dumps(document, indent=2) + "\n")

    def calibrated(self, windows: Windows) -> "OnnxModel":
        """With the mean error of these windows as the usual error of each channel; not for rates of a CPU."""
        if self.design.shares:
            return self
        usual = replace(self, normal=None).score(windows).by_channel.mean(axis=0, dtype=np.float64)
        return replace(self, normal=(usual + 1e-3 * usual.mean() + 1e-6).astype(np.float32))

    def _run(self, windows: Windows, outputs: Sequence[str], add: Callable[..., None]) -> None:
        """Call `add` with the number of each member, the rows of each batch and the outputs for them.

        Each core takes every n-th batch: batches share no row, and the members are run one after the other.
        """
        self._check(windows)
        graphs = windows.graphs(by_job=self.architecture == "job_graph") if self.design.graph else None
        batches = list(_batches(len(windows), graphs))
        threads = max(1, min(len(batches), len(os.sched_getaffinity(0))))
        sessions = self._sessions

        def work(first: int) -> None:
            for rows in batches[first::threads]:
                given: list[NDArray[Any]] = [self._prepared(windows.values[rows])]
                if graphs is not None:
                    given += PaddedGraphs.of(graphs[rows])
                named = dict(zip(INPUTS, given, strict=False))
                for number, session in enumerate(sessions):
                    add(number, rows, *session.run(outputs, named))

        if threads == 1:
            work(0)
            return
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(threads)))

    def _prepared(self, values: Floats) -> Floats:
        if self.scaling is not None:
            return self.scaling.scaled(values)
        return shares(values)

    def _check(self, windows: Windows) -> None:
        if tuple(windows.channels) != self.design.channels:
            raise ModelError(
                f"windows of {', '.join(windows.channels)}, but the model reads {', '.join(self.channels)}"
            )
        if len(windows) and windows.length != self.length:
            raise ModelError(f"windows of {windows.length} seconds, but the model reads {self.length}")

    @cached_property
    def _sessions(self) -> list[Any]:
        try:
            import onnxruntime  # type: ignore[import-untyped, unused-ignore]  # it ships no types
        except ImportError:
            raise ModelError(
                "scoring traces needs ONNX Runtime; install it with: pip install 'tocsin[traces]'"
            ) from None
        settings = onnxruntime.SessionOptions()
        # Batches run in parallel, one thread each: no layer waits for another thread.
        settings.intra_op_num_threads = settings.inter_op_num_threads = 1
        settings.log_severity_level = 3
        return [
            onnxruntime.InferenceSession(
                build_graph(self.design, weights).SerializeToString(),
                settings,
                providers=["CPUExecutionProvider"],
            )
            for weights in self.members
        ]


def _batches(count: int, graphs: NDArray[np.int64] | None) -> Iterator[Rows]:
    if graphs is None:
        return (slice(first, first + _BATCH) for first in range(0, count, _BATCH))
    rows = np.arange(count, dtype=np.int64)
    sizes = np.bincount(graphs)[graphs] if count else rows
    return graph_batches(rows[np.argsort(sizes, kind="stable")], graphs, _BATCH)


def _file(member: int) -> str:
    return f"member-{member}.onnx"


def _parse(document: dict[str, Any]) -> tuple[Architecture, Scaling | None, Floats | None, list[int]]:
    channels = document["channels"]
    if not isinstance(channels, list) or not all(isinstance(name, str) for name in channels):
        raise ValueError("channels must be a list of names")
    for name in ("length", "embedding"):
        if type(document[name]) is not int:
            raise ValueError(f"{name} must be a whole number")
    architecture = Architecture(
        str(document["architecture"]), document["length"], tuple(channels), document["embedding"]
    )
    if document["outputs"] != list(architecture.outputs):
        raise ValueError(f"outputs must be {', '.join(architecture.outputs)}")
    seeds = document["seeds"]
    if not isinstance(seeds, list) or not 1 <= len(seeds) <= _MOST_MEMBERS:
        raise ValueError(f"seeds must be a list of 1 to {_MOST_MEMBERS} numbers")
    if not all(type(seed) is int for seed in seeds):
        raise ValueError("seeds must be whole numbers")
    if architecture.shares:
        if any(document[name] is not None for name in ("centre", "scale", "normal")):
            raise ValueError("rates of a CPU are never rescaled")
        return architecture, None, None, seeds
    centre, scale, normal = (
        _numbers(document, name, len(channels)) for name in ("centre", "scale", "normal")
    )
    if not ((scale > 0).all() and (normal > 0).all()):
        raise ValueError("scales and usual errors must be positive")
    return architecture, Scaling(centre, scale), normal, seeds


def _numbers(document: dict[str, Any], name: str, count: int) -> Floats:
    values = document[name]
    if not isinstance(values, list) or len(values) != count:
        raise ValueError(f"{name} must be a list of {count} numbers")
    if not all(type(value) in (int, float) for value in values):
        raise ValueError(f"{name} must be numbers")
    with np.errstate(over="ignore"):
        found = np.array(values, dtype=np.float32)
    if not np.isfinite(found).all():
        raise ValueError(f"{name} must be finite numbers")
    return found
