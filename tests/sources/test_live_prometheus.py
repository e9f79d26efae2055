"""A real Prometheus that scrapes a real tocsin-agent once a second."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tests.conftest import unavailable
from tests.kits.command_line import Tocsin
from tests.kits.fake_node import FakeNode
from tests.services import missing
from tests.services.daemons import await_true
from tests.services.prometheus import Prometheus
from tocsin.core.channels import CPU_CHANNELS
from tocsin.store.windows import WindowStore

AGENT = [sys.executable, "-c", "import sys; from tocsin.agent.main import run; sys.exit(run())"]
SECONDS = 8


@contextmanager
def running_agent(cgroup: Path) -> Iterator[str]:
    """The address of an agent that reads this machine's CPUs, and jobs from a folder of control groups."""
    line = [*AGENT, "--listen", "127.0.0.1:0", "--cgroup", str(cgroup)]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        found = re.search(r"http://(\S+?)/metrics", process.stderr.readline())
        assert found
        try:
            yield found[1]
        finally:
            process.terminate()


def test_what_prometheus_scraped_from_an_agent_is_imported(tocsin: Tocsin, tmp_path: Path) -> None:
    if sentence := missing("prometheus"):
        unavailable(sentence)
    first, *others = sorted(os.sched_getaffinity(0))
    if not others:
        unavailable("a job that has all CPUs is not bound to them; this needs two CPUs")
    node = FakeNode(tmp_path / "node", cpus=0)
    node.add_job(17, str(first), memory__current="4096\n")
    with running_agent(node.cgroup) as address, Prometheus({"n1": address}) as prometheus:
        await_true("no scrape", lambda: prometheus.samples("tocsin_cpu_ratio") > 0, 30)
        scraped = time.monotonic()
        await_true("time stands still", lambda: time.monotonic() - scraped > SECONDS, 60, every=0.2)
        by_prometheus = tocsin("traces", "import", "--prometheus", prometheus.url, "-M", "scraped", "--json")
        by_agent = tocsin("traces", "import", "--agent", f"http://{address}", "-M", "asked", "--json")
    read, asked = json.loads(by_prometheus.out), json.loads(by_agent.out)
    assert read["cpu_samples"] + read["job_samples"] == read["new"] > 0
    assert (read["dropped"], read["failed"]) == ({}, False)
    assert asked["new"] > 0
    store = WindowStore(tmp_path / "home" / "windows")
    scraped_cpus, asked_cpus = (store.samples(name, 0, 10**11).cpus for name in ("scraped", "asked"))
    assert set(scraped_cpus["node"]) == {"n1"}
    assert set(scraped_cpus["cpu"]) == set(asked_cpus["cpu"])
    assert scraped_cpus["at"].n_unique() >= SECONDS - 2
    for cpus in (scraped_cpus, asked_cpus):  # Prometheus renames the label of the job
        assert set(cpus.filter(cpu=first)["job"]) == {"17"}
        assert set(cpus.filter(cpu=others[0])["job"]) == {None}
    jobs = store.samples("scraped", 0, 10**11).jobs
    assert set(jobs["job"]) == {"17"}
    assert set(jobs["memory"]) == {4096.0}
    for cpu in set(asked_cpus["cpu"]):  # each scraped sample is one that the agent took
        shares, taken = (
            frame.filter(cpu=cpu).select(CPU_CHANNELS).to_numpy() for frame in (scraped_cpus, asked_cpus)
        )
        nearest = np.abs(shares[:, None] - taken[None]).max(axis=2).min(axis=1)
        assert nearest.max() < 1e-3
