"""Trains autoencoders on windows that are mostly normal: seeded, with early stopping and a limit on CPU time."""

import copy
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.core.errors import ModelError
from tocsin.traces.architecture import Architecture
from tocsin.traces.batches import PaddedGraphs, graph_batches, plain_batches
from tocsin.traces.onnx_graph import Weights, import_onnx
from tocsin.traces.onnx_model import OnnxModel
from tocsin.traces.scaling import Scaling, shares
from tocsin.traces.windows import Windows

__all__ = ["train"]

_FEWEST = 20  # windows
_HELD_BACK = 0.2  # share of the time at the end, if no validation windows are given
_TRIM = (
    0.02  # share of the windows with the largest error that each epoch leaves out: they may be contaminated
)
_BATCH = 64
_EPOCHS = 100
_EPOCH = (2048, 8192)  # windows in an epoch: fewer are used several times, more are drawn anew each time
_VALIDATION = 4096
_PATIENCE = 12  # epochs without a better validation error
_RATE = 4e-3  # Adam's step, halved after a third of the patience
_STEEPEST = 0.1  # norm of a gradient: one steep step at the start can saturate the softmax for good
_BETTER = 0.005  # relative
_MIXED = 0.5  # share of the batches in which graphs are made of random windows: a CPU may have any neighbours
_THREADS = 1  # identical results on any machine with the same processor; seeds run in parallel processes


def train(
    windows: Windows,
    *,
    architecture: str = "vanilla",
    seed: int = 0,
    ensemble: int = 1,
    validation: Windows | None = None,
    seconds: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> OnnxModel:
    """Train `ensemble` members with the seeds from `seed` on; the same arguments give identical results.

    `seconds` limits the CPU time of all members (one thread, so a busy machine trains no worse); if the limit ends the
    training, the results depend on the machine.
    """
    torch = _import_torch()
    import_onnx()
    if len(windows) < _FEWEST:
        raise ModelError(f"{len(windows)} windows are too few to learn from; {_FEWEST} are needed")
    if ensemble < 1:
        raise ModelError(f"an ensemble has {ensemble} members; at least one is needed")
    design = Architecture(architecture, windows.length, tuple(windows.channels))
    learned, held = (windows, validation) if validation is not None else _split(windows)
    if not len(held) or held.length != windows.length or tuple(held.channels) != design.channels:
        raise ModelError("validation windows must have the length and the channels of the training windows")
    scaling = None if design.shares else Scaling.fit(learned.values)
    sets = [_Set.of(part, design, scaling) for part in (learned, held)]
    members: list[Weights] = []
    for member in range(ensemble):
        end = None if seconds is None else time.thread_time() + seconds / ensemble

        def report(epoch: int, member: int = member) -> None:
            if progress is not None:
                progress(member * _EPOCHS + epoch, ensemble * _EPOCHS)

        with _fixed(torch, seed + member):
            members.append(_Training(torch, design, sets[0], sets[1], seed + member).run(end, report))
    model = OnnxModel(design, members, list(range(seed, seed + ensemble)), scaling)
    return model.calibrated(held)


def _import_torch() -> Any:
    try:
        import torch
    except ImportError:
        raise ModelError(
            "training on traces needs PyTorch; install it with: pip install 'tocsin[traces]'"
        ) from None
    return torch


@contextmanager
def _fixed(torch: Any, seed: int) -> Iterator[None]:
    """Use this seed and number of threads, and restore the caller's afterwards."""
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_num_threads(_THREADS)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


def _split(windows: Windows) -> tuple[Windows, Windows]:
    """The earlier windows, and the last ones, which do not overlap with them if there is enough time.

    What ran last may be of a single kind, so some of the earlier instants are used for validation as well.
    """
    ends = windows.index["at"].to_numpy()
    cut = np.quantile(ends, 1 - _HELD_BACK, method="lower")
    late = ends > cut
    if not late.any():  # all end at one instant
        return windows, windows
    apart = ends <= cut - windows.length
    early = apart if apart.sum() >= max(_FEWEST, len(windows) // 2) else ~late
    every = max(1, round(float(early.sum() / late.sum())))
    checked = early & np.isin(ends, np.unique(ends[early])[::every])
    return windows[early], windows[late | checked]


@dataclass(frozen=True, slots=True)
class _Set:
    """Windows as the model reads them, with the graph of each."""

    values: NDArray[np.float32]
    graphs: NDArray[np.int64] | None

    @classmethod
    def of(cls, windows: Windows, design: Architecture, scaling: Scaling | None) -> "_Set":
        values = shares(windows.values) if scaling is None else scaling.scaled(windows.values)
        return cls(values, windows.graphs(by_job=design.name == "job_graph") if design.graph else None)

    def draw(self, random: np.random.Generator, most: int) -> NDArray[np.int64]:
        """Different rows in random order, at most `most`; for graphs, whole ones."""
        if self.graphs is None:
            return random.permutation(len(self.values))[:most]
        rank = random.permutation(int(self.graphs.max()) + 1)[self.graphs]
        order = np.argsort(rank, kind="stable")
        last = rank[order[min(most, len(order)) - 1]]
        whole: NDArray[np.int64] = order[rank[order] <= last]
        return whole

    def batches(self, order: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        if self.graphs is None:
            return plain_batches(order, _BATCH)
        return graph_batches(order, self.graphs, _BATCH)


class _Training:
    """One member."""

    def __init__(self, torch: Any, design: Architecture, learned: _Set, held: _Set, seed: int) -> None:
        from tocsin.traces.autoencoder import Autoencoder

        self.torch, self.learned, self.held = torch, learned, held
        self.random = np.random.default_rng(seed)
        self.network = Autoencoder(design)
        self.rate, self.started = _RATE, time.thread_time()
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=_RATE)
        self.last = np.full(len(learned.values), np.nan, dtype=np.float32)
        self.checked = held.draw(np.random.default_rng(0), _VALIDATION)

    def run(self, end: float | None, report: Callable[[int], None]) -> Weights:
        best, since = np.inf, 0
        kept = copy.deepcopy(self.network.state_dict())
        for epoch in range(_EPOCHS):
            report(epoch)
            finished = self.epoch(end)
            error = self.validation_error()
            if error < best * (1 - _BETTER):
                best, since, kept = error, 0, copy.deepcopy(self.network.state_dict())
            else:
                since += 1
                if since % (_PATIENCE // 3) == 0:
                    self.rate /= 2
            if since >= _PATIENCE or not finished:
                break
        report(_EPOCHS)
        self.network.load_state_dict(kept)
        return self.network.weights()

    def epoch(self, end: float | None) -> bool:
        """Whether it was finished in time. Windows with the largest errors so far are left out."""
        limit = np.inf if np.isnan(self.last).all() else np.nanquantile(self.last, 1 - _TRIM)
        self.network.train()
        for rows in self.rows():
            errors = self.errors(self.learned, rows, mixed=self.random.random() < _MIXED)
            counted = ~(self.last[rows] > limit)
            self.last[rows] = errors.detach().numpy()
            if counted.any():
                self.optimiser.zero_grad()
                errors[self.torch.from_numpy(counted)].mean().backward()
                self.torch.nn.utils.clip_grad_norm_(self.network.parameters(), _STEEPEST)
                self.step(end)
            if end is not None and time.thread_time() > end:
                return False
        return True

    def step(self, end: float | None) -> None:
        """One step of the optimiser; the step size falls to zero in the second half of the time limit."""
        left = 1.0 if end is None else (end - time.thread_time()) / (end - self.started)
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate * min(1.0, 2 * max(left, 0.0))
        self.optimiser.step()

    def rows(self) -> Iterator[NDArray[np.int64]]:
        """The batches of an epoch."""
        for _ in range(max(1, _EPOCH[0] // len(self.learned.values))):
            yield from self.learned.batches(self.learned.draw(self.random, _EPOCH[1]))

    def validation_error(self) -> float:
        """The mean without the largest errors, as held-back windows may be contaminated too."""
        self.network.eval()
        with self.torch.inference_mode():
            errors = np.concatenate(
                [self.errors(self.held, rows).numpy() for rows in self.held.batches(self.checked)]
            )
        return float(errors[errors <= np.quantile(errors, 1 - _TRIM)].mean())

    def errors(self, windows: _Set, rows: NDArray[np.int64], *, mixed: bool = False) -> Any:
        given: list[NDArray[Any]] = [windows.values[rows]]
        if windows.graphs is not None:
            graphs = windows.graphs[rows]
            given += PaddedGraphs.of(self.random.permutation(graphs) if mixed else graphs)
        return self.network(*map(self.torch.from_numpy, given))[0].mean(dim=1)
