"""The node agent's cost: a simulated node of 128 CPUs and 256 threads, sampled and scraped at 1 Hz."""

import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from tests.kits.fake_node import FakeNode

__all__ = ["run"]

CPUS = 128
JOBS = 8
THREADS = 256
SECONDS = 60
CODE = "import sys; from tocsin.agent.main import run; sys.exit(run())"


def run() -> dict[str, Any]:
    """Half of the jobs are bound to their CPUs, the others run anywhere; each second every CPU moves on."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        node = _node(Path(folder))
        line = [sys.executable, "-c", CODE, "--listen", "127.0.0.1:0"]
        line += ["--proc", str(node.proc), "--cgroup", str(node.cgroup)]
        with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as process:
            try:
                assert process.stderr is not None
                address = re.findall(r"http://\S+", process.stderr.readline())[0]
                _live(node, address, 5)
                before = _cpu_seconds(process.pid)
                start = time.perf_counter()
                scraped = _live(node, address, SECONDS)
                cpu = (_cpu_seconds(process.pid) - before) / (time.perf_counter() - start)
                memory = _peak_mib(process.pid)
            finally:
                process.terminate()
    return {
        "cpus": CPUS,
        "jobs": JOBS,
        "threads": THREADS,
        "seconds": SECONDS,
        "metrics_bytes": scraped,
        "core_percent": round(100 * cpu, 3),
        "peak_mib": round(memory, 1),
    }


def _node(folder: Path) -> FakeNode:
    node = FakeNode(folder, CPUS)
    for job in range(JOBS):
        width = CPUS // JOBS
        bound = f"{job * width}-{job * width + width - 1}" if job % 2 else f"0-{CPUS - 1}"
        node.add_job(
            100 + job,
            bound,
            processes=[1000 + job],
            cpu__stat="usage_usec 9\nuser_usec 5000000\nsystem_usec 1000000\nthrottled_usec 0\n",
            memory__current="1048576\n",
            memory__peak="2097152\n",
            memory__stat="".join(f"field_{number} {number}\n" for number in range(40))
            + "pgfault 7\npgmajfault 1\n",
            io__stat="8:0 rbytes=100 wbytes=200 rios=1 wios=2\n",
            cpu__pressure="some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n",
            memory__pressure="some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
            io__pressure="some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
        )
        for thread in range(THREADS // JOBS):
            node.set_thread(1000 + job, 10_000 + 100 * job + thread, job * width + thread % width, state="R")
    return node


def _live(node: FakeNode, address: str, seconds: int) -> int:
    size = 0
    due = time.monotonic()
    for second in range(seconds):
        node.spend({cpu: {"user": 60 + (cpu + second) % 40, "idle": 5} for cpu in range(CPUS)})
        with urllib.request.urlopen(address, timeout=5) as reply:
            size = len(reply.read())
        due += 1
        time.sleep(max(0.0, due - time.monotonic()))
    return size


def _cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak_mib(process: int) -> float:
    return int(re.findall(r"VmHWM:\s+(\d+)", Path(f"/proc/{process}/status").read_text())[0]) / 1024
