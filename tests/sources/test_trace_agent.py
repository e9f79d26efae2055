"""What a tocsin-agent kept becomes samples."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.kits.fake_node import FakeNode
from tests.sources.trace_servers import serving
from tocsin.agent.sampler import Sampler
from tocsin.agent.server import AgentServer
from tocsin.core.errors import SourceError
from tocsin.core.frames import Samples
from tocsin.sources.trace_agent import AgentSource
from tocsin.sources.trace_http import TraceHttp

START = 1_794_916_800


def read(url: str, since: int = 0, until: int = START + 1000) -> tuple[Samples, AgentSource, int]:
    http = TraceHttp(url, "the agent", seconds=5, tries=1)
    source = AgentSource(http)
    try:
        [batch] = source.batches(since, until)
    finally:
        http.close()
    return batch.samples, source, batch.until


def body(samples: Any, **more: Any) -> bytes:
    whole = {
        "schema": 1,
        "node": "n1",
        "interval": 1.0,
        "gaps": 2,
        "clock_jumps": 1,
        "samples": samples,
        **more,
    }
    return json.dumps(whole).encode()


def one(at: float, used: float = 0.0) -> dict[str, Any]:
    counters = {"17": {"cpu_user_seconds_total": used, "memory_bytes": 5e6}}
    return {
        "at": at,
        "cpus": {"0": [0.5, 0.1, 0.0], "3": [0, 0, 0]},
        "jobs": {"0": "17"},
        "counters": counters,
    }


def test_samples_of_cpus_and_rates_of_jobs() -> None:
    found = [one(START + second, 2.0 * second) for second in range(5)]
    with serving(lambda path, query: (200, body(found), {})) as url:
        samples, source, until = read(url, START)
    assert samples.cpus.filter(cpu=0).row(0) == pytest.approx(("n1", 0, START + 1, "17", 0.5, 0.1, 0.0))
    assert set(samples.cpus.filter(cpu=3)["job"]) == {None}
    assert samples.jobs["cpu_user"].to_list() == [2.0] * 4
    assert samples.jobs["memory"].to_list() == [5e6] * 4
    assert samples.jobs["io_read"].to_list() == [None] * 4
    assert until == START + 4
    assert "1 jumps of the clock" in source.notes[0]


def test_a_jump_of_the_clock_between_two_looks_is_counted() -> None:
    jumps = iter([4, 6])
    with serving(lambda path, query: (200, body([one(START)], clock_jumps=next(jumps)), {})) as url:
        http = TraceHttp(url, "the agent")
        source = AgentSource(http)
        for _ in range(2):
            list(source.batches(0, START + 9))
        http.close()
    assert source.counts["clock jumps"] == 2


def test_a_counter_that_begins_again_is_counted() -> None:
    found = [one(START + 1, 50), one(START + 2, 51), one(START + 3, 0.5), one(START + 4, 1.5)]
    with serving(lambda path, query: (200, body(found), {})) as url:
        samples, source, _ = read(url)
    assert samples.jobs["cpu_user"].to_list() == [None, 1.0, None, 1.0]
    assert source.counts["resets"] == 1


@pytest.mark.parametrize(
    "wrong", [7, {"at": "x"}, {"at": 1e300}, {**one(START), "cpus": {"a": [1]}}, {**one(START), "jobs": 3}]
)
def test_a_sample_that_is_none_is_counted_and_left_out(wrong: Any) -> None:
    with serving(lambda path, query: (200, body([wrong, one(START + 1)]), {})) as url:
        samples, source, _ = read(url)
    assert set(samples.cpus["at"]) == {START + 1}
    assert source.counts["invalid points"] == 1


@pytest.mark.parametrize("reply", [b"<html>", b"{}", body(7), body([], schema=9), body([], node=None)])
def test_what_is_no_agent_is_refused(reply: bytes) -> None:
    with (
        serving(lambda path, query: (200, reply, {})) as url,
        pytest.raises(SourceError, match="the agent at"),
    ):
        read(url)


@contextmanager
def agent(sampler: Sampler) -> Iterator[str]:
    server = AgentServer(("127.0.0.1", 0), sampler, "n1")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_real_agents_page_is_read(tmp_path: Path) -> None:
    node = FakeNode(tmp_path, cpus=4)
    clock = iter(START + second + 0.01 for second in range(20))
    sampler = Sampler(proc=str(node.proc), cgroup=str(node.cgroup), clock=lambda: next(clock))
    for second in range(6):
        node.add_job(17, "1", cpu__stat=f"user_usec {second * 1_500_000}\n", memory__current="4096\n")
        node.spend({1: {"user": 60, "system": 30, "idle": 10}})
        sampler.sample()
    with agent(sampler) as url:
        samples, _, until = read(url)
    job = samples.cpus.filter(cpu=1)
    assert job["at"].to_list() == [START + second for second in range(1, 6)]
    assert set(job["job"]) == {"17"}
    assert job["user"].to_list() == pytest.approx([0.6] * 5)
    assert samples.jobs["cpu_user"].to_list() == pytest.approx([None, *[1.5] * 4])
    assert samples.jobs["memory"].to_list() == [4096.0] * 5
    assert until == START + 5
