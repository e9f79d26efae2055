"""Real Slurm, agent and Prometheus: a job that waits for its disk rings within 30 s of its first bad window."""

import importlib.util
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tocsin.traces
from tests.conftest import unavailable
from tests.kits.command_line import Tocsin
from tests.services import missing
from tests.services.daemons import await_true
from tests.services.prometheus import Prometheus
from tests.services.slurm import SlurmLab
from tests.sources.test_live_prometheus import running_agent
from tocsin.store.windows import WindowStore

# A CPU that other tests keep busy never waits for I/O.
pytestmark = pytest.mark.quiet

WINDOW, STRIDE = 20, 1
RECORDED = 75
"""Seconds of normal jobs from which the model learns."""
PROGRAM = Path(tocsin.traces.__file__).parent / "programs" / "job.py"
NORMAL = "import time\nwhile True:\n    end = time.time() + 4\n    while time.time() < end: sum(range(10000))\n    time.sleep(0.6)"
"""Works and pauses, and shows within any window all that it ever does. The campaigns' `fit` also reads its input every
100 s or so: that came after most of the recording, so the held-back windows had it, the others did not, and the threshold
ended up anywhere, even above the error of a job that does nothing but wait.
"""
TOCSIN = [sys.executable, "-c", "from tocsin.cli.main import run; run()"]


class Watch:
    """`tocsin traces watch` as a process of its own."""

    def __init__(self, process: "subprocess.Popen[str]", output: Path) -> None:
        self.process, self.output = process, output

    def verdicts(self) -> list[dict[str, Any]]:
        lines = self.output.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]


@contextmanager
def watching(slurm: SlurmLab, folder: Path) -> Iterator[Watch]:
    with (folder / "verdicts").open("w") as out, (folder / "messages").open("w") as messages:
        command = [*TOCSIN, "traces", "watch", "-M", "lab", "--every", "2", "--json"]
        process = subprocess.Popen(
            command, env={**os.environ, **slurm.env}, stdout=out, stderr=messages, text=True
        )
        try:
            yield Watch(process, folder / "verdicts")
        finally:
            process.terminate()
            process.wait(30)


def submit(slurm: SlurmLab, name: str, cpu: int, *command: str) -> int:
    """A job that keeps to one CPU of this host, until it is cancelled."""
    line = shlex.join(["taskset", "-c", str(cpu), sys.executable, *command])
    return slurm.sbatch(f"#!/bin/bash\nexec {line}\n", f"--job-name={name}", "--mem=400", user="root")


def test_a_job_that_waits_for_its_disk_rings_and_the_others_do_not(
    slurm: SlurmLab, tocsin: Tocsin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sentence := missing("prometheus"):
        unavailable(sentence)
    if not slurm.cgroups:
        unavailable("control groups of version 1 are not ours to write here")
    for library in ("torch", "onnxruntime"):
        if not importlib.util.find_spec(library):
            unavailable(f"{library} is not installed: pip install 'tocsin[traces]'")
    cpus = sorted(os.sched_getaffinity(0))[:2]
    submitted: list[int] = []
    with running_agent(Path("/sys/fs/cgroup")) as address, Prometheus({"host": address}) as prometheus:
        for name, value in {
            "TOCSIN_TRACES__PROMETHEUS_URL": prometheus.url,
            "TOCSIN_TRACES__WINDOW": str(WINDOW),
            "TOCSIN_TRACES__STRIDE": str(STRIDE),
            "SLURM_CONF": str(slurm.conf),
        }.items():
            monkeypatch.setenv(name, value)
        try:
            with watching(slurm, tmp_path) as watch:
                normal = [submit(slurm, "steady", cpu, "-c", NORMAL) for cpu in cpus]
                submitted += normal
                kept = WindowStore(tmp_path / "home" / "windows")
                await_true("too few samples", lambda: _seconds(kept, normal) > RECORDED, 180, every=1.0)
                # Fewer windows than a site has: a lower rate would be an extrapolation too far.
                how = ("--seconds", "20", "--rate", "0.01")
                trained = tocsin("traces", "train", "-M", "lab", *how, "--json")
                assert trained.code == 0, trained.err
                slurm.run("scancel", str(normal[1]))
                bad = submit(slurm, "bad_io", cpus[1], str(PROGRAM), "bad_io", "600", "/var/tmp")
                submitted.append(bad)
                slurm.wait_state(bad, "RUNNING")
                began = time.time()
                await_true("no alarm", lambda: bool(watch.verdicts()), 90, _why(tocsin, tmp_path), every=0.5)
                rang = time.time()
                await_true("time stands still", lambda: time.time() > rang + 10, 30, every=0.5)
                verdicts = watch.verdicts()
        finally:
            slurm.run("scancel", *map(str, submitted))
    assert {verdict["job"].partition("@")[0] for verdict in verdicts} == {f"lab:{bad}"}
    first = verdicts[0]
    assert (first["stage"], first["level"]) == ("running", "warning")
    places = (f"CPU {cpus[1]} of host", f"job {bad} on host")
    assert all(finding["text"].startswith(places) for finding in first["findings"])
    assert rang - (began + WINDOW) <= 30, "the first window that is wholly of the job ends after its length"


def _seconds(kept: WindowStore, jobs: list[int]) -> int:
    """Seconds for which there are samples of all these jobs."""
    cpus = kept.samples("lab", int(time.time()) - 600, int(time.time())).cpus
    return min(cpus.filter(job=str(job))["at"].n_unique() for job in jobs)


def _why(tocsin: Tocsin, folder: Path) -> Callable[[], str]:
    """What explains a missing alarm: the messages, the thresholds, and how each job's windows scored."""

    def found() -> str:
        scored = tocsin("traces", "score", "-M", "lab", "--out", str(folder / "scores.parquet"), "--json")
        parts = [(folder / "messages").read_text()[-2000:], scored.out or scored.err]
        parts += [card.read_text() for card in (folder / "home" / "models").glob("traces/*/traces.json")]
        if (folder / "scores.parquet").exists():
            scores = pl.read_parquet(folder / "scores.parquet")
            by_place = scores.group_by("job", "node", "cpu", maintain_order=True)
            errors = (
                pl.col("error").min().alias("least"),
                pl.col("error").median(),
                pl.col("error").max().alias("most"),
            )
            about = by_place.agg(pl.len(), pl.col("at").max(), *errors, pl.col("threshold", "unusual").max())
            with pl.Config(tbl_rows=-1, tbl_cols=-1, fmt_str_lengths=60):
                parts.append(str(about))
        cpus = (
            WindowStore(folder / "home" / "windows")
            .samples("lab", int(time.time()) - 90, int(time.time()))
            .cpus
        )
        means = cpus.group_by("job", "cpu").agg(pl.len(), pl.col("user", "system", "iowait").mean())
        return "\n".join([*parts, str(means)])

    return found
