#!/usr/bin/env python3
"""A labelled job of a campaign: `job.py TYPE SECONDS [FOLDER]`, submitted by `tocsin campaign run`.

Standard library only, because it runs on compute nodes. It ends after SECONDS, writes only to FOLDER (default:
/var/tmp), at most 256 MiB, and leaves nothing there: files lose their names as soon as they are open.
"""
# Single system calls are what some of these jobs are about.
# ruff: noqa: PTH102, PTH103, PTH104, PTH106, PTH108, PTH110, PTH116, PTH118, PTH120, PTH123, PTH208, S108, S311, UP031

import math
import mmap
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

MB = 1 << 20
NUMBERS = 1 << 17  # events of the fit
FILE_BYTES = 128 * MB
LEAK_BYTES = 700 * MB
TABLE_BYTES = 384 * MB  # larger than the caches of a node
ITERATION = 11.0  # seconds of work between two pauses of an undisturbed fit
PAUSE = 0.9  # seconds in which a fit waits for the others, as in a parallel one
CHUNKS = 9  # iterations until the next chunk of events is read: about 100 s
QUOTA = 0.4  # CPUs


def unnamed_file(folder: str, flags: int = 0) -> int:
    """An open file without a name: nothing is left of it, however the job ends."""
    for more in (flags, os.O_SYNC if flags else 0):  # a file system without O_DIRECT, or without O_TMPFILE
        try:
            return os.open(folder, os.O_TMPFILE | os.O_RDWR | more, 0o600)
        except OSError:
            continue
    handle, path = tempfile.mkstemp(prefix="tocsin-campaign-", dir=folder)
    os.unlink(path)
    return handle


class Fit:
    """A likelihood fit: iterations over events, a pause after each, and about every 100 s the next chunk is read."""

    def __init__(self, folder: str, end: float) -> None:
        self.end = end
        self.events = [random.expovariate(1.0) for _ in range(NUMBERS)]
        self.file = unnamed_file(folder)
        block = os.urandom(MB)
        for _ in range(64):
            os.write(self.file, block)
        os.fsync(self.file)
        begin = time.process_time()  # not disturbed by others on the CPU
        self.likelihood(20000)
        self.work = int(20000 * ITERATION * random.uniform(0.85, 1.15) / (time.process_time() - begin))

    def likelihood(self, count: int, first: int = 0) -> float:
        total, scale, log, events = 0.0, 1.3, math.log, self.events
        for place in range(first, first + count):
            value = events[place % NUMBERS]
            total += log(math.exp(-value / scale) / scale + 1e-9) + 0.1 * value * value
        return total

    def read_chunk(self, seconds: float) -> None:
        """Single blocks from a disk, not from memory."""
        until = min(self.end, time.time() + seconds)
        os.posix_fadvise(self.file, 0, 0, os.POSIX_FADV_DONTNEED)
        while time.time() < until:
            os.pread(self.file, 4096, 4096 * random.randrange(64 * MB // 4096))

    def run(self, each_step: Callable[[], None] = lambda: None) -> None:
        done = 0
        while time.time() < self.end:
            for first in range(0, self.work, 5000):
                self.likelihood(5000, first)
                each_step()
                if time.time() >= self.end:
                    return
            time.sleep(max(0.0, min(PAUSE, self.end - time.time())))
            done += 1
            if done % CHUNKS == CHUNKS // 2:
                self.read_chunk(3.0)


def fit(folder: str, end: float) -> None:
    Fit(folder, end).run()


def memory_leak(folder: str, end: float) -> None:
    """Grows to its bound at the end of its time."""
    leaked: list[bytearray] = []
    begin = time.time()
    step = 256 * 1024

    def leak() -> None:
        wanted = LEAK_BYTES * min(1.0, (time.time() - begin) / (end - begin))
        while len(leaked) * step < wanted and time.time() < end:
            leaked.append(bytearray(os.urandom(64) * (step // 64)))

    Fit(folder, end).run(leak)


def cpu_hog(folder: str, end: float) -> None:
    job = Fit(folder, end)
    hog = subprocess.Popen([sys.executable, __file__, "busy", str(end - time.time())])
    try:
        job.run()
    finally:
        hog.kill()
        hog.wait()


def busy(_folder: str, end: float) -> None:
    """The hog itself."""
    while time.time() < end:
        sum(range(10000))


class FitOutOfCache(Fit):
    """The same events, but spread over a table that no cache holds, in an order that no prefetcher guesses."""

    def __init__(self, folder: str, end: float) -> None:
        super().__init__(folder, end)
        self.table = mmap.mmap(-1, TABLE_BYTES)
        for place in range(0, TABLE_BYTES, MB):
            self.table[place : place + MB] = b"\x40" * MB

    def likelihood(self, count: int, first: int = 0) -> float:
        if not hasattr(self, "table"):  # the work is measured as it would be in the caches
            return super().likelihood(count, first)
        total, table, place = 0.0, self.table, first * 7919 + 1
        for _ in range(count):
            for _ in range(4):
                place = (place * 6364136223846793005 + 1442695040888963407) % TABLE_BYTES
                total += table[place]
            total += math.log(total)
        return total


def cache_thrashing(folder: str, end: float) -> None:
    FitOutOfCache(folder, end).run()


def throttling(folder: str, end: float) -> None:
    """The kernel's quota where the job may set it (as root); otherwise stopped and continued ten times a second."""
    job = Fit(folder, end)
    group = quota_group()
    if group:
        try:
            job.run()
        finally:
            leave_group(group)
        return
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        while time.time() < end and os.getppid() == parent:
            os.kill(parent, signal.SIGSTOP)
            time.sleep(0.1 * (1 - QUOTA))
            os.kill(parent, signal.SIGCONT)
            time.sleep(0.1 * QUOTA)
        os.kill(parent, signal.SIGCONT)
        os._exit(0)
    job.run()


def quota_group() -> str | None:
    """The folder of a control group with a quota, with this process in it; None where that is not allowed."""
    try:
        with open("/proc/self/cgroup") as lines:
            paths = dict(line.strip().split(":", 2)[1:] for line in lines)
        if "" in paths and os.path.exists("/sys/fs/cgroup" + paths[""] + "/cpu.max"):
            with open("/sys/fs/cgroup" + paths[""] + "/cpu.max", "w") as limit:
                limit.write("%d 100000" % (QUOTA * 100000))
            return "/sys/fs/cgroup" + paths[""]
        job = next(path for path in paths.values() if "/job_" in path).partition("/step_")[0]
        group = "/sys/fs/cgroup/cpu" + job
        os.makedirs(group, exist_ok=True)
        with open(group + "/cpu.cfs_quota_us", "w") as limit:
            limit.write("%d" % (QUOTA * 100000))
        with open(group + "/cgroup.procs", "w") as members:
            members.write(str(os.getpid()))
        return group
    except (OSError, StopIteration, ValueError):
        return None


def leave_group(group: str) -> None:
    try:
        if os.path.exists(group + "/cpu.max"):
            with open(group + "/cpu.max", "w") as limit:
                limit.write("max 100000")
            return
        with open("/sys/fs/cgroup/cpu/cgroup.procs", "w") as members:
            members.write(str(os.getpid()))
        while "/job_" in group or "/uid_" in group:
            os.rmdir(group)
            group = os.path.dirname(group)
    except OSError:
        pass  # another job of this user has its group there


def good_io(folder: str, end: float) -> None:
    """Records are formatted, put together and written; the operating system decides when they reach the disk."""
    handle = unnamed_file(folder)
    block = os.urandom(MB)
    while time.time() < end:
        for _ in range(FILE_BYTES // MB):
            header = "".join("%08d,%.6f\n" % (n, n / 7) for n in range(1200)).encode()
            os.write(handle, header + block[len(header) :])
            if time.time() >= end:
                break
        os.lseek(handle, 0, os.SEEK_SET)


def bad_io(folder: str, end: float) -> None:
    """Small writes at random places, each forced to the disk before the next."""
    handle = unnamed_file(folder, getattr(os, "O_DIRECT", 0) | os.O_DSYNC)
    os.ftruncate(handle, 64 * MB)
    block = mmap.mmap(-1, 8192)
    while time.time() < end:
        os.lseek(handle, 8192 * random.randrange(64 * MB // 8192), os.SEEK_SET)
        block[:8] = b"%08d" % random.randrange(10**8)
        os.write(handle, block)
        os.fsync(handle)


def metadata_storm(folder: str, end: float) -> None:
    """Thousands of file operations a second, and hardly any data."""
    top = os.path.join(folder, "tocsin-campaign-%d-%08x" % (os.getpid(), random.randrange(1 << 32)))
    try:  # before the folder exists: a signal may come at any time
        os.mkdir(top, 0o700)
        while time.time() < end:
            names = [os.path.join(top, "%04x.%d" % (random.randrange(1 << 16), n)) for n in range(200)]
            for name in names:
                os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o600))
                os.rename(name, name + ".new")
                os.stat(name + ".new")
            os.listdir(top)
            for name in names:
                os.unlink(name + ".new")
    finally:
        shutil.rmtree(top, ignore_errors=True)


def idle(_folder: str, end: float) -> None:
    time.sleep(max(0.0, end - time.time()))


PROGRAMS = {
    program.__name__: program
    for program in (
        fit,
        good_io,
        idle,
        bad_io,
        memory_leak,
        cpu_hog,
        busy,
        cache_thrashing,
        metadata_storm,
        throttling,
    )
}


def stop(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # slurmctld repeats it; a second one would end the clean-up
    sys.exit(143)  # through all `finally`


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    program, seconds = PROGRAMS[sys.argv[1]], float(sys.argv[2])
    program(sys.argv[3] if len(sys.argv) > 3 else "/var/tmp", time.time() + seconds)
