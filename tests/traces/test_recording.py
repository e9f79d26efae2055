"""From what an agent keeps to the samples of a campaign, and the programs of its jobs."""

import subprocess
import sys
import threading
from itertools import count
from pathlib import Path

import polars as pl
import pytest

from tests.kits.fake_node import FakeNode
from tocsin import traces
from tocsin.agent.sampler import Sampler
from tocsin.agent.server import AgentServer
from tocsin.core.errors import ClusterError
from tocsin.core.frames import CPU_SAMPLES, JOB_SAMPLES
from tocsin.traces.job_types import JOB_TYPES, ranks
from tocsin.traces.recording import RemoteRecorder, cpu_samples, job_samples

PROGRAMS = Path(traces.__file__).parent / "programs"
AT = 1_000_000.4


def sample(second: int, jobs: dict[str, str], **counters: dict[str, float]) -> dict[str, object]:
    cpus = {"0": [0.9, 0.05, 0.0], "1": [0.0, 0.1, 0.8]}
    return {"at": AT + second, "cpus": cpus, "jobs": jobs, "counters": counters}


def test_rows_of_cpus_carry_the_raw_job_id_and_the_whole_second() -> None:
    found = cpu_samples("n1", [sample(0, {"1": "17"}), sample(1, {})])
    assert found.schema == CPU_SAMPLES
    assert found.rows()[2][:4] == ("n1", 1, 1_000_000, "17")
    assert found["job"].to_list() == [None, None, "17", None]
    assert found["iowait"].to_list() == pytest.approx([0, 0, 0.8, 0.8])


def test_counters_become_rates_and_the_first_sample_of_a_job_has_none() -> None:
    rows = [
        sample(n, {}, **{"17": {"cpu_user_seconds_total": 5 + 0.5 * n, "memory_bytes": 100.0 * n}})
        for n in range(4)
    ]
    found = job_samples("n1", rows)
    assert found.schema == JOB_SAMPLES
    assert found["cpu_user"].to_list() == pytest.approx([0.5, 0.5, 0.5])
    assert found["memory"].to_list() == [100, 200, 300]
    assert found["pressure_io"].to_list() == [None, None, None]


def test_a_counter_that_moves_every_few_samples_is_spread_over_them() -> None:
    values = [0, 0, 0, 30, 30, 30, 90, 90]
    rows = [sample(n, {}, **{"17": {"context_switches_total": value}}) for n, value in enumerate(values)]
    found = job_samples("n1", rows)
    assert found["context_switches"].to_list() == pytest.approx([10, 10, 10, 20, 20, 20, 20])


def test_a_counter_that_starts_again_is_no_negative_rate() -> None:
    rows = [sample(n, {}, **{"17": {"io_written_bytes_total": v}}) for n, v in enumerate([50, 80, 10])]
    assert job_samples("n1", rows)["io_written"].to_list() == [30, 0]


def test_no_sample_is_an_empty_frame() -> None:
    assert cpu_samples("n1", []).schema == CPU_SAMPLES
    assert job_samples("n1", [sample(0, {})]).schema == JOB_SAMPLES


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
    found = cpu_samples(recorder.node, recorder.samples).filter(pl.col("cpu") == 0)
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
    storm.terminate()
    assert storm.wait(30) == 143
    assert list(tmp_path.iterdir()) == []
