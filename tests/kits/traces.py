"""Windows of CPUs that run jobs of a few kinds, for tests of trace models."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.channels import CPU_CHANNELS, JOB_CHANNELS
from tocsin.core.frames import WINDOWS
from tocsin.traces.windows import Windows

__all__ = ["KINDS", "counters", "windows"]

KINDS = ("fit", "good_io", "mpi", "idle")
"""The normal ones; `bad_io` is the other."""


def windows(
    seed: int, *, kinds: tuple[str, ...] = KINDS, cpus: int = 4, instants: int = 40, length: int = 40
) -> Windows:
    """For each instant a node whose CPUs run these kinds in turn; the job of a window is its kind."""
    random = np.random.default_rng(seed)
    rows = [
        {"job": None if kind == "idle" else kind, "node": "n1", "cpu": cpu, "at": 1000 + 10 * n, "gaps": 0}
        for n in range(instants)
        for cpu in range(cpus)
        for kind in [kinds[cpu % len(kinds)]]
    ]
    names = [kinds[cpu % len(kinds)] for _ in range(instants) for cpu in range(cpus)]
    values = np.stack([_trace(name, length, random) for name in names])
    schema = pl.Schema({name: kind for name, kind in WINDOWS.items() if name != "values"})
    return Windows(values, pl.DataFrame(rows, schema=schema), CPU_CHANNELS)


def counters(seed: int, *, instants: int = 120, length: int = 40, leak: bool = False) -> Windows:
    """Counters of one job in their own units; with `leak` its memory grows."""
    random = np.random.default_rng(seed)
    values = np.zeros((instants, length, len(JOB_CHANNELS)), dtype=np.float32)
    wave = np.sin(np.arange(length) / 4 + random.uniform(0, 6, (instants, 1)))
    values[:, :, JOB_CHANNELS.index("cpu_user")] = 3 + 0.5 * wave
    memory = 4e9 + 1e8 * random.normal(size=(instants, 1)) + np.zeros(length)
    values[:, :, JOB_CHANNELS.index("memory")] = memory + (3e7 * np.arange(length) if leak else 0)
    values[:, :, JOB_CHANNELS.index("page_faults")] = 1e3 + 50 * random.normal(size=(instants, length))
    values[:, :, JOB_CHANNELS.index("gpu")] = np.nan
    index = pl.DataFrame(
        {"job": "a", "node": "n1", "cpu": None, "at": 1000 + 10 * np.arange(instants), "gaps": 0}
    )
    schema = {name: kind for name, kind in WINDOWS.items() if name != "values"}
    return Windows(values, index.cast(schema), JOB_CHANNELS)  # type: ignore[arg-type]


def _trace(kind: str, length: int, random: np.random.Generator) -> NDArray[np.float32]:
    """User, system and iowait."""
    time = np.arange(length) + random.uniform(0, 100)
    noise = 0.01 * np.abs(random.normal(size=(length, 3)))
    user, system, iowait = np.zeros((3, length))
    if kind == "fit":
        user = np.full(length, 0.95)
    elif kind == "good_io":
        user, system = np.full(length, 0.5), 0.3 + 0.1 * np.sin(time / 3)
    elif kind == "mpi":
        user = np.where(time % 20 < 15, 0.95, 0.1)
    elif kind == "bad_io":
        iowait, system = 0.7 + 0.2 * np.sin(time / 2), np.full(length, 0.1)
    shares = np.stack([user, system, iowait], axis=1) + noise
    return (shares / np.maximum(1, shares.sum(axis=1, keepdims=True))).astype(np.float32)
