"""The CPU usage of simulated jobs, second by second: one function for each job type.

Shares of a CPU's time are in ticks of 1/100 s, as in /proc/stat. The shapes follow the paper if it shows them (likelihood
fit with structure of 100 s, iowait that dominates bad I/O, some fits with moderate iowait); the others are
assumptions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tocsin.core.channels import JOB_CHANNELS

__all__ = ["BEHAVIOURS", "Behaviour"]

Floats = NDArray[np.float64]
Random = np.random.Generator
_MB = float(1 << 20)


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A job's CPUs (seconds × threads × user, system, iowait) and its counters, by the names of JOB_CHANNELS."""

    cpus: Floats
    counters: Mapping[str, Floats]


def _behaviour(random: Random, cpus: Floats, **counters: "Floats | float") -> Behaviour:
    """Round the shares to ticks, and add the counters that follow from the CPUs."""
    shares = np.clip(cpus, 0.0, 1.0)
    shares /= np.maximum(1.0, shares.sum(axis=2, keepdims=True))
    ticks = np.floor(shares * 100 + random.random(shares.shape))
    excess = np.maximum(0.0, ticks.sum(axis=2) - 100)
    largest = ticks.argmax(axis=2)[..., None]
    np.put_along_axis(ticks, largest, np.take_along_axis(ticks, largest, 2) - excess[..., None], 2)
    shares = ticks / 100
    seconds, threads, _ = shares.shape
    waits = shares[..., 2].mean(axis=1)
    known: dict[str, Floats | float] = {
        "cpu_user": shares[..., 0].sum(axis=1),
        "cpu_system": shares[..., 1].sum(axis=1),
        "cpu_throttled": 0.0,
        "memory": 200 * _MB * threads,
        "page_faults": random.poisson(20 * threads, seconds).astype(np.float64),
        "major_page_faults": 0.0,
        "context_switches": random.poisson(15 * threads, seconds).astype(np.float64),
        "io_read": 0.0,
        "io_written": 0.0,
        "pressure_cpu": np.abs(random.normal(0.0, 0.003, seconds)),
        "pressure_memory": 0.0,
        "pressure_io": np.minimum(1.0, waits * 1.1),
    } | counters
    return Behaviour(
        shares,
        {name: np.broadcast_to(known[name], seconds) for name in JOB_CHANNELS if name in known},
    )


def _noise(random: Random, seconds: int, threads: int, spread: float, smooth: int = 1) -> Floats:
    """Noise of each thread, correlated over `smooth` seconds."""
    white = random.normal(0.0, spread, (seconds + smooth - 1, threads))
    if smooth == 1:
        return white
    sums = np.cumsum(np.vstack([np.zeros((1, threads)), white]), axis=0)
    return np.asarray((sums[smooth:] - sums[:-smooth]) / np.sqrt(smooth))


def _pulses(random: Random, seconds: int, period: float, length: float, jitter: float = 0.1) -> Floats:
    """The share of each second that lies in a pulse of some length, about every `period` seconds."""
    count = int(seconds / period * 2) + 3
    gaps = period * np.maximum(0.2, random.normal(1.0, jitter, count))
    starts = np.cumsum(gaps) - random.uniform(0, period)
    ends = starts + length * random.uniform(0.7, 1.3, count)
    second = np.arange(seconds)[:, None]
    inside = np.minimum(ends, second + 1) - np.maximum(starts, second)
    return np.asarray(np.minimum(1.0, np.maximum(0.0, inside).sum(axis=1)))


def _stack(user: Floats, system: Floats, iowait: Floats) -> Floats:
    return np.stack(np.broadcast_arrays(user, system, iowait), axis=2).astype(np.float64)


def _fit_cpus(random: Random, seconds: int, threads: int, slow_disk: float = 0.0) -> Floats:
    """Iterations, each followed by a short serial part; about every 100 s, the next chunk of events is read."""
    serial = _pulses(random, seconds, random.uniform(8, 25), random.uniform(0.3, 1.2))[:, None]
    reading = _pulses(random, seconds, random.uniform(90, 110), 3 + 25 * slow_disk, jitter=0.03)[:, None]
    depth = random.uniform(0.3, 0.8)
    waits = reading * (0.05 + 0.75 * slow_disk) * np.abs(1 + _noise(random, seconds, threads, 0.15, 3))
    busy = 0.985 + _noise(random, seconds, threads, 0.006)
    lead = np.arange(threads) == 0  # the serial part runs on the first thread only
    user = busy * (1 - np.where(lead, 0.2, 1.0) * depth * serial) * (1 - 0.6 * reading) - 0.5 * waits
    system = 0.006 + 0.12 * reading + np.abs(_noise(random, seconds, threads, 0.003))
    return _stack(user, system, waits)


def _fit(random: Random, seconds: int, threads: int) -> Behaviour:
    """Three fits in ten read from a slow disk to some extent: the samples near bad I/O in the paper's Fig. 4."""
    slow = float(random.beta(1.2, 2.0)) if random.random() < 0.3 else 0.0
    cpus = _fit_cpus(random, seconds, threads, slow)
    read = cpus[..., 1].sum(axis=1) * 40 * _MB
    return _behaviour(random, cpus, io_read=read, memory=_memory(random, seconds, threads, 300))


def _memory(random: Random, seconds: int, threads: int, megabytes: float) -> Floats:
    level = megabytes * _MB * threads * random.uniform(0.7, 1.3)
    warm = 1 - np.exp(-(np.arange(seconds) + 1) / 4)  # fills up in the first seconds
    return np.asarray(np.round(level * warm * (1 + random.normal(0, 0.002, seconds))))


def _good_io(random: Random, seconds: int, threads: int) -> Behaviour:
    flush = _pulses(random, seconds, 5.0, 0.8, jitter=0.05)[:, None]
    share = random.uniform(0.4, 0.55)
    level = 0.9 + _noise(random, seconds, threads, 0.03, 4)
    user = share * level * (1 - 0.35 * flush)
    system = (1 - share) * level * (1 + 0.1 * flush)
    cpus = _stack(user, system, 0.015 + 0.25 * flush * random.uniform(0.3, 1.0, (seconds, threads)))
    written = threads * 60 * _MB * (0.2 + 4 * flush[:, 0]) * np.abs(1 + random.normal(0, 0.2, seconds))
    return _behaviour(
        random,
        cpus,
        io_written=written,
        memory=_memory(random, seconds, threads, 800),
        page_faults=random.poisson(200 * threads, seconds).astype(np.float64),
        context_switches=random.poisson(60 * threads, seconds).astype(np.float64),
    )


def _bad_io(random: Random, seconds: int, threads: int) -> Behaviour:
    waits = random.uniform(0.65, 0.85) + _noise(random, seconds, threads, 0.05, 5)
    system = random.uniform(0.08, 0.18) + _noise(random, seconds, threads, 0.02, 2)
    cpus = _stack(0.02 + np.abs(_noise(random, seconds, threads, 0.008)), system, waits)
    operations = random.normal(900, 60, seconds).clip(1) * threads
    return _behaviour(random, cpus, io_written=operations * 8192, context_switches=operations * 3)


def _mpi(random: Random, seconds: int, threads: int) -> Behaviour:
    """Each rank works for a random time and then polls until the slowest arrives, so ranks restart in step."""
    longest = random.uniform(6, 20)
    rounds = int(seconds / (longest / 3)) + 4
    work = random.uniform(0.5, longest, (rounds, threads))
    begin = np.concatenate([[0.0], np.cumsum(work.max(axis=1) + 0.05)]) - random.uniform(0, longest)
    second = np.arange(seconds)[:, None, None]
    arrive = begin[:-1, None] + work
    polls = np.minimum(begin[1:, None], second + 1) - np.maximum(arrive, second)
    waiting = np.minimum(1.0, np.maximum(0.0, polls).sum(axis=1))
    yields = random.uniform(0.25, 0.45)  # share of polling that is system calls (sched_yield)
    user = (0.99 + _noise(random, seconds, threads, 0.004)) * (1 - yields * waiting)
    system = 0.004 + yields * waiting + np.abs(_noise(random, seconds, threads, 0.003))
    switches = random.poisson(20 * threads + 3000 * waiting.sum(axis=1)).astype(np.float64)
    cpus = _stack(user, system, np.zeros((seconds, threads)))
    return _behaviour(random, cpus, context_switches=switches, memory=_memory(random, seconds, threads, 60))


def _idle(random: Random, seconds: int, threads: int) -> Behaviour:
    daemons = (random.random((seconds, threads)) < 0.06) * random.exponential(0.015, (seconds, threads))
    cpus = _stack(0.002 + daemons, 0.003 + 0.7 * daemons, np.zeros((seconds, threads)))
    return _behaviour(random, cpus, memory=8 * _MB, page_faults=0.0, context_switches=1.0 * threads)


def _memory_leak(random: Random, seconds: int, threads: int) -> Behaviour:
    rate = random.uniform(8, 30) * threads  # MB per second
    cpus = _fit_cpus(random, seconds, threads)
    cpus[..., 1] += 0.01 + rate / threads * 4e-4  # the kernel clears each new page
    leaked = rate * _MB * np.cumsum(np.abs(1 + random.normal(0, 0.1, seconds)))
    return _behaviour(
        random,
        cpus,
        memory=np.round(_memory(random, seconds, threads, 300) + leaked),
        page_faults=random.poisson(rate * 256 + 20, seconds).astype(np.float64),
    )


def _cpu_hog(random: Random, seconds: int, threads: int) -> Behaviour:
    """The other process takes what the fit leaves: there are no pauses."""
    user = 0.995 + _noise(random, seconds, threads, 0.003)
    cpus = _stack(user, np.full_like(user, 0.004), np.zeros_like(user))
    switches = random.poisson(330 * threads, seconds).astype(np.float64)
    waits = np.clip(random.normal(0.97, 0.02, seconds), 0, 1)
    return _behaviour(
        random,
        cpus,
        context_switches=switches,
        pressure_cpu=waits,
        memory=_memory(random, seconds, threads, 300),
    )


def _cache_thrashing(random: Random, seconds: int, threads: int) -> Behaviour:
    """A CPU that waits for memory counts as busy: the fit only gets slower, and its pauses rarer."""
    slowdown = random.uniform(3, 8)
    serial = _pulses(random, seconds, slowdown * random.uniform(8, 25), 0.4)[:, None]
    user = (0.99 + _noise(random, seconds, threads, 0.004)) * (1 - 0.3 * serial)
    cpus = _stack(user, np.full_like(user, 0.006), np.zeros_like(user))
    return _behaviour(random, cpus, memory=_memory(random, seconds, threads, 1500))


def _metadata_storm(random: Random, seconds: int, threads: int) -> Behaviour:
    journal = _pulses(random, seconds, 5.0, 1.0)[:, None]
    system = random.uniform(0.55, 0.7) + _noise(random, seconds, threads, 0.04, 3) - 0.2 * journal
    user = 0.12 + np.abs(_noise(random, seconds, threads, 0.02))
    cpus = _stack(user, system, 0.06 + 0.35 * journal * random.uniform(0.5, 1.0, (seconds, threads)))
    return _behaviour(
        random,
        cpus,
        io_written=8 * _MB * threads * (0.2 + 4 * journal[:, 0]),
        context_switches=random.poisson(700 * threads, seconds).astype(np.float64),
    )


def _throttling(random: Random, seconds: int, threads: int) -> Behaviour:
    quota = random.uniform(0.25, 0.55)
    cpus = _fit_cpus(random, seconds, threads)
    cpus[..., 0] = np.minimum(cpus[..., 0], quota + _noise(random, seconds, threads, 0.01))
    held = threads * (1 - quota) * np.clip(1 + random.normal(0, 0.03, seconds), 0, None)
    return _behaviour(random, cpus, cpu_throttled=held, memory=_memory(random, seconds, threads, 300))


BEHAVIOURS: Mapping[str, Callable[[Random, int, int], Behaviour]] = {
    "fit": _fit,
    "good_io": _good_io,
    "mpi": _mpi,
    "idle": _idle,
    "bad_io": _bad_io,
    "memory_leak": _memory_leak,
    "cpu_hog": _cpu_hog,
    "cache_thrashing": _cache_thrashing,
    "metadata_storm": _metadata_storm,
    "throttling": _throttling,
}
