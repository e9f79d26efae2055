"""From what an agent keeps to the samples of a campaign, and the programs of its jobs."""

import subprocess
import sys
import threading
from collections import Counter
from itertools import count
from pathlib import Path

import pytest

from tests.kits.fake_node import FakeNode
from tocsin import traces
from tocsin.agent.sampler import Sampler
from tocsin.agent.server import AgentServer
from tocsin.core.errors import ClusterError
from tocsin.sources.trace_agent import agent_samples
from tocsin.traces.job_types import JOB_TYPES, ranks
from tocsin.traces.recording import RemoteRecorder

PROGRAMS = Path(traces.__file__).parent / "programs"


def test_an_agent_is_read_over_http_and_nothing_twice(tmp_path: Path) -> None:
    node = FakeNode(tmp_path, 2)
    node.add_job(17, "0")
    seconds = count(1_000_000)
    sampler = Sampler(proc=str(node.proc), cgroup=str(node.cgroup), clock=lambda: float(next(seconds)))
    server = AgentServer(("127.0.0.1", 0), sampler, "n1")
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def take(number: int) -> None:
        for _ in range(number):
            node.spend({0: {"user": 100}})
            sampler.sample()

    try:
        take(3)
        with RemoteRecorder(f"127.0.0.1:{server.server_address[1]}") as recorder:
            assert (recorder.node, recorder.samples) == ("n1", [])
            for number in (2, 0, 3):
                take(number)
                recorder.poll()
    finally:
        server.shutdown()
        server.server_close()
    at = [each["at"] for each in recorder.samples]
    assert at == sorted(set(at))
    assert len(at) == 5, "what was before the recording is not part of it"
    found = agent_samples(recorder.node, recorder.samples, Counter()).cpus.filter(cpu=0)
    assert found["job"].unique().to_list() == ["17"]
    assert found["user"].unique().to_list() == [1]


def test_an_agent_that_is_not_there_is_named() -> None:
    with pytest.raises(ClusterError, match=r"no tocsin-agent answers at http://127\.0\.0\.1:1"):
        RemoteRecorder("127.0.0.1:1")


@pytest.mark.parametrize("label", [each for each in JOB_TYPES if not ranks(each)])
def test_a_program_ends_by_itself_and_leaves_nothing(label: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAMS / "job.py"), label, "0.5", str(tmp_path)],
        capture_output=True,
        timeout=200,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_is_stopped_leaves_nothing(tmp_path: Path) -> None:
    storm = subprocess.Popen(
        [sys.executable, str(PROGRAMS / "job.py"), "metadata_storm", "60", str(tmp_path)]
    )
    while not list(tmp_path.glob("*/*")):
        assert storm.poll() is None
    for _ in range(50):  # slurmctld repeats a signal
        storm.terminate()
    assert storm.wait(30) == 143
    assert list(tmp_path.iterdir()) == []
