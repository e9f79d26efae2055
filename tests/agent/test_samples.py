"""What the agent reads off a node: rates of each CPU, the job on it, and what each job has used."""

from collections.abc import Callable
from itertools import count, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.fake_node import FakeNode
from tocsin.agent.cpus import CpuRates, Ticks, ticks
from tocsin.agent.sampler import Sampler


def _sampler(node: FakeNode, name: str | None = None, clock: Callable[[], float] | None = None) -> Sampler:
    seconds = count(1_000_000)
    return Sampler(
        proc=str(node.proc),
        cgroup=str(node.cgroup),
        node=name,
        clock=clock or (lambda: float(next(seconds))),
    )


def test_rates_are_shares_of_the_interval(tmp_path: Path) -> None:
    node = FakeNode(tmp_path, 2)
    sampler = _sampler(node)
    assert sampler.sample() is None, "one reading gives no rates"
    node.spend({0: {"user": 40, "nice": 10, "system": 20, "iowait": 20, "idle": 5, "softirq": 5}})
    sample = sampler.sample()
    assert sample is not None
    assert sample.rates[0] == (0.5, 0.2, 0.2, 0.1)
    assert sample.rates[1] == (0, 0, 0, 1)


counts = st.lists(st.integers(0, 1000), min_size=4, max_size=4).map(lambda row: Ticks(*row))


@given(st.lists(st.dictionaries(st.integers(0, 3), counts), max_size=6))
def test_rates_sum_to_one_whatever_the_counters_do(readings: list[dict[int, Ticks]]) -> None:
    rates = CpuRates()
    for reading in readings:
        for found in rates.update(reading).values():
            assert sum(found) == pytest.approx(1)
            assert min(found) >= 0


@given(st.binary(max_size=200))
def test_garbage_for_stat_is_survived(content: bytes) -> None:
    ticks(content)
    ticks(b"cpu0 " + content)


def test_a_reset_and_a_vanished_cpu_are_counted_gaps(tmp_path: Path) -> None:
    node = FakeNode(tmp_path, 2)
    sampler = _sampler(node)
    node.spend({0: {"user": 50, "idle": 50}})
    sampler.sample()
    node.ticks[0] = [0] * 10  # the counters start again
    node.show()
    sample = sampler.sample()
    assert sample is None or 0 not in sample.rates
    del node.ticks[1]
    node.spend({0: {"user": 100}})
    sample = sampler.sample()
    assert sample is not None
    assert set(sample.rates) == {0}
    assert sampler.gaps >= 2


@pytest.mark.parametrize("version", [1, 2])
def test_a_bound_job_has_the_cpus_of_its_set(tmp_path: Path, version: int) -> None:
    node = FakeNode(tmp_path, 8, version=version)
    node.add_job(17, "0-2,5")
    node.add_job(18, "6")
    sampler = _sampler(node)
    sampler.sample()
    node.spend({})
    sample = sampler.sample()
    assert sample is not None
    assert sample.jobs == {0: "17", 1: "17", 2: "17", 5: "17", 6: "18"}


@pytest.mark.parametrize("version", [1, 2])
def test_an_unbound_job_is_where_its_threads_work(tmp_path: Path, version: int) -> None:
    node = FakeNode(tmp_path, 4, version=version)
    node.add_job(17, "0-3", processes=[100])
    node.set_thread(100, 100, 0)  # a shell that sleeps
    node.set_thread(100, 101, 2, state="R")
    node.set_thread(100, 102, 3, state="D")  # waits for a disk
    sampler = _sampler(node)
    sampler.sample()
    node.spend({})
    sample = sampler.sample()
    assert sample is not None
    assert sample.jobs == {2: "17", 3: "17"}


def test_of_two_unbound_jobs_on_one_cpu_the_busier_one_has_it(tmp_path: Path) -> None:
    node = FakeNode(tmp_path, 2)
    node.add_job(17, "0-1", processes=[100])
    node.add_job(18, "0-1", processes=[200])
    node.set_thread(100, 100, 1, state="R")
    node.set_thread(200, 200, 1, state="R")
    sampler = _sampler(node)
    for seconds in range(1, 8):  # placements are read every few samples
        sampler.sample()
        node.spend({})
        node.set_thread(100, 100, 1, state="R", ticks=90 * seconds)
        node.set_thread(200, 200, 1, state="R", ticks=10 * seconds)
    assert sampler.newest is not None
    assert sampler.newest.jobs == {1: "17"}


def test_only_the_jobs_of_the_named_slurmd_count(tmp_path: Path) -> None:
    node = FakeNode(tmp_path, 4, scope="n1_slurmstepd.scope")
    node.add_job(17, "0")
    for name, jobs in (("n1", {"17"}), ("n2", set()), (None, {"17"})):
        sampler = _sampler(node, name)
        sampler.sample()
        node.spend({})
        sample = sampler.sample()
        assert sample is not None
        assert set(sample.counters) == jobs, name


V2_FILES = {
    "cpu__stat": "usage_usec 9\nuser_usec 5000000\nsystem_usec 1000000\nnr_periods 0\nthrottled_usec 250000\n",
    "memory__current": "1048576\n",
    "memory__peak": "2097152\n",
    "memory__stat": "anon 12\npgfault 70\npgmajfault 3\n",
    "io__stat": "8:0 rbytes=100 wbytes=200 rios=1 wios=2\n8:16 rbytes=1 wbytes=2 rios=1 wios=2\n",
    "cpu__pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n"
    "full avg10=0.00 avg60=0.00 avg300=0.00 total=9\n",
    "io__pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=500000\n",
}
V1_FILES = {
    "cpuacct__stat": "user 500\nsystem 100\n",
    "cpu__stat": "nr_periods 5\nnr_throttled 1\nthrottled_time 250000000\n",
    "memory__usage_in_bytes": "1048576\n",
    "memory__max_usage_in_bytes": "2097152\n",
    "memory__stat": "pgfault 1\ntotal_pgfault 70\ntotal_pgmajfault 3\n",
    "blkio__throttle__io_service_bytes_recursive": "8:0 Read 101\n8:0 Write 200\n8:16 Write 2\nTotal 303\n",
}


@pytest.mark.parametrize(("version", "files"), [(2, V2_FILES), (1, V1_FILES)])
def test_a_jobs_counters_are_in_seconds_and_bytes(
    tmp_path: Path, version: int, files: dict[str, str]
) -> None:
    node = FakeNode(tmp_path, 2, version=version)
    node.add_job(17, "0", **files)
    sampler = _sampler(node)
    sampler.sample()
    node.spend({})
    sample = sampler.sample()
    assert sample is not None
    used = sample.counters["17"]
    expected = {
        "cpu_user_seconds_total": 5.0,
        "cpu_system_seconds_total": 1.0,
        "cpu_throttled_seconds_total": 0.25,
        "memory_bytes": 1 << 20,
        "memory_peak_bytes": 1 << 21,
        "page_faults_total": 70,
        "major_page_faults_total": 3,
        "io_read_bytes_total": 101,
        "io_written_bytes_total": 202,
    }
    assert {name: used[name] for name in expected} == pytest.approx(expected)
    assert ("pressure_io_seconds_total" in used) == (version == 2)


def test_switches_of_ended_threads_stay_counted(tmp_path: Path) -> None:
    node = FakeNode(tmp_path, 2)
    node.add_job(17, "0", processes=[100])
    node.set_thread(100, 100, 0, switches=10)
    node.set_thread(100, 101, 0, switches=20)
    sampler = _sampler(node)
    counted = []
    for second in range(47):
        node.spend({})
        if second == 20:
            (node.proc / "100" / "task" / "101" / "status").unlink()
        if sample := sampler.sample():
            counted.append(sample.counters["17"]["context_switches_total"])
    assert counted == sorted(counted)
    assert counted[-1] == pytest.approx(32, abs=0.1)


def test_switches_that_are_counted_now_and_then_grow_with_every_sample(tmp_path: Path) -> None:
    node = FakeNode(tmp_path, 2)
    node.add_job(17, "0", processes=[100])
    sampler = _sampler(node)
    counted = []
    for second in range(62):
        node.spend({})
        node.set_thread(100, 100, 0, switches=30 * second)
        if sample := sampler.sample():
            counted.append(sample.counters["17"]["context_switches_total"])
    steps = [after - before for before, after in pairwise(counted)]
    assert steps[15:] == pytest.approx([30] * len(steps[15:]), abs=0.01)


def test_a_clock_that_jumps_is_counted_and_survived(tmp_path: Path) -> None:
    node = FakeNode(tmp_path, 1)
    times = iter([100.0, 101.0, 102.0, 50.0, 51.0, 5000.0])
    sampler = _sampler(node, clock=lambda: next(times))
    for _ in range(6):
        node.spend({})
        sampler.sample()
    assert sampler.clock_jumps == 2
    assert [sample.at for sample in sampler.since(0)] == [50.0, 51.0, 5000.0]


def test_ten_minutes_are_kept(tmp_path: Path) -> None:
    node = FakeNode(tmp_path, 1)
    sampler = _sampler(node)
    for _ in range(700):
        node.spend({})
        sampler.sample()
    kept = sampler.since(0)
    assert len(kept) == 600
    assert [sample.at for sample in sampler.since(kept[-3].at)] == [kept[-2].at, kept[-1].at]


@given(at=st.floats(1e9, 2e9), interval=st.sampled_from([0.2, 1.0, 5.0]))
def test_samples_are_taken_at_whole_intervals_of_the_clock(at: float, interval: float) -> None:
    wait = Sampler(interval=interval, clock=lambda: at).until_next()
    assert interval / 10 <= wait <= 1.1 * interval
    nearest = round((at + wait) / interval) * interval
    assert at + wait == pytest.approx(nearest, abs=1e-5)
