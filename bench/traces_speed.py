"""Scoring 128,000 windows of 100 s with ONNX Runtime, and the same network in eager PyTorch in the same run."""

import os
import time
from typing import Any

import numpy as np
import polars as pl

from tocsin.core.channels import CPU_CHANNELS
from tocsin.traces.architecture import Architecture
from tocsin.traces.autoencoder import Autoencoder
from tocsin.traces.onnx_model import OnnxModel
from tocsin.traces.windows import Windows

__all__ = ["run"]

WINDOWS = 128_000  # 1,000 nodes × 128 threads
BATCHES = (64, 128, 256, 512, 1024, 4096)  # PyTorch may take its best
ROUNDS = 3


def run() -> dict[str, Any]:
    """The best of some rounds of each, in turn; both use every core and compute errors and embeddings.

    Two threads of PyTorch wait for each other, so the machine must have nothing else to do.
    """
    import torch

    cores = len(os.sched_getaffinity(0))
    before = torch.get_num_threads()
    torch.set_num_threads(cores)
    try:
        design = Architecture("vanilla", 100, CPU_CHANNELS)
        network = Autoencoder(design).eval()
        model = OnnxModel(design, [network.weights()], [0])
        random = np.random.default_rng(0)
        values = random.dirichlet([1] * 4, (WINDOWS, 100))[..., :3].astype(np.float32)
        windows = Windows(values, pl.DataFrame({"at": np.zeros(WINDOWS)}), CPU_CHANNELS)

        def eager(batch: int, count: int) -> float:
            start = time.perf_counter()
            with torch.inference_mode():
                for first in range(0, count, batch):
                    errors, embedding, _ = network(torch.from_numpy(values[first : first + batch]))
                    errors.mean(dim=1).numpy(), embedding.numpy()
            return time.perf_counter() - start

        def ours() -> float:
            start = time.perf_counter()
            model.score(windows)
            return time.perf_counter() - start

        model.score(windows[:1000])
        eager(256, 1000)
        trials = {batch: min(eager(batch, 8192) for _ in range(2)) for batch in BATCHES}
        batch = min(trials, key=lambda each: trials[each])
        rounds = [(ours(), eager(batch, WINDOWS)) for _ in range(ROUNDS)]
        torch.set_num_threads(1)
        cheaper = _cpu_ratio(network, model, values[:8192])
    finally:
        torch.set_num_threads(before)
    seconds, eager_seconds = (min(each) for each in zip(*rounds, strict=True))
    return {
        "windows": WINDOWS,
        "cores": cores,
        "seconds": round(seconds, 2),
        "eager_pytorch_seconds": round(eager_seconds, 2),
        "eager_pytorch_batch": batch,
        "times_faster": round(eager_seconds / seconds, 2),
        "times_faster_by_round": [round(theirs / mine, 2) for mine, theirs in rounds],
        "times_less_cpu": round(cheaper, 2),
        "load_average": round(os.getloadavg()[0], 1),
    }


def _cpu_ratio(network: Any, model: OnnxModel, values: Any) -> float:
    """CPU time of eager PyTorch over ours, both on one thread and with their best batch: other load matters little."""
    import torch

    def eager(batch: int) -> float:
        start = time.process_time()
        with torch.inference_mode():
            for first in range(0, len(values), batch):
                network(torch.from_numpy(values[first : first + batch]))
        return time.process_time() - start

    def ours() -> float:
        start = time.process_time()
        model.score(Windows(values, pl.DataFrame({"at": np.zeros(len(values))}), CPU_CHANNELS))
        return time.process_time() - start

    rounds = [(min(map(eager, (128, 256, 512))), ours()) for _ in range(ROUNDS)]
    theirs, mine = (min(each) for each in zip(*rounds, strict=True))
    return theirs / mine
