"""Metrics of known exporters become the same samples."""

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.sources.trace_servers import matrix
from tocsin.core.errors import SourceError
from tocsin.core.frames import Samples
from tocsin.sources.trace_mapping import read_trace_mapping, shipped
from tocsin.sources.trace_series import samples_of, series_of

SECONDS = range(100, 111)


def samples(mapping: str, metrics: dict[str, Any], counts: Counter[str] | None = None) -> Samples:
    counts = Counter() if counts is None else counts
    return samples_of(
        lambda name: series_of(metrics.get(name, []), counts),
        read_trace_mapping(mapping),
        step=1,
        counts=counts,
    )


def node_exporter(instance: str = "n1.example.org:9100", cpu: str = "0") -> list[Any]:
    """Of each second 0.5 user, 0.1 nice, 0.2 system, 0.05 iowait, the rest idle."""
    speed = {"user": 0.5, "nice": 0.1, "system": 0.2, "iowait": 0.05, "idle": 0.15}
    return [
        matrix({"cpu": cpu, "mode": mode, "instance": instance}, {at: at * rate for at in SECONDS})
        for mode, rate in speed.items()
    ]


def test_node_exporter_gives_shares_that_add_up_to_one_and_no_job() -> None:
    cpus = samples("node_exporter", {"node_cpu_seconds_total": node_exporter()}).cpus
    assert cpus["at"].to_list() == list(SECONDS)[1:]
    assert cpus.row(0) == pytest.approx(("n1", 0, 101, None, 0.6, 0.2, 0.05))


def test_a_restart_of_the_node_is_a_reset_and_no_sample() -> None:
    metrics = node_exporter()
    for series in metrics:
        series["values"][5:] = [[at, str(float(value) - 50)] for at, value in series["values"][5:]]
    counts: Counter[str] = Counter()
    cpus = samples("node_exporter", {"node_cpu_seconds_total": metrics}, counts).cpus
    assert 105 not in cpus["at"].to_list()
    assert cpus.height == 9
    assert counts["resets"] == 3, "user, nice and system"
    assert counts["incomplete"] == 1


def test_a_scrape_that_was_repeated_is_no_sample() -> None:
    metrics = node_exporter()
    for series in metrics:
        series["values"][5][1] = series["values"][4][1]
    assert 105 not in samples("node_exporter", {"node_cpu_seconds_total": metrics}).cpus["at"].to_list()


def test_cgroup_exporter_gives_node_exporter_its_jobs() -> None:
    cgroup = {"cgroup": "/slurm/uid_20821/job_12", "instance": "n1:9306"}
    metrics = {
        "node_cpu_seconds_total": [*node_exporter(), *node_exporter(cpu="7")],
        "cgroup_cpu_info": [matrix({**cgroup, "cpus": "0-1,4"}, dict.fromkeys(SECONDS, 1))],
        "cgroup_cpu_user_seconds": [matrix(cgroup, {at: 2 * at for at in SECONDS})],
        "cgroup_memory_used_bytes": [matrix(cgroup, dict.fromkeys(SECONDS, 315392))],
    }
    found = samples("node_exporter,cgroup_exporter", metrics)
    assert set(found.cpus.filter(cpu=0)["job"]) == {"12"}
    assert set(found.cpus.filter(cpu=7)["job"]) == {None}
    job = found.jobs.filter(at=105).row(0, named=True)
    assert (job["node"], job["job"], job["cpu_user"], job["memory"]) == ("n1", "12", 2.0, 315392.0)
    assert job["io_read"] is None


def test_slurm_job_exporter_counts_nanoseconds_of_each_core() -> None:
    place = {"slurmjobid": "77", "instance": "n2:9798"}
    metrics = {
        "node_cpu_seconds_total": node_exporter("n2:9100", cpu="3"),
        "slurm_job_core_usage_total": [
            matrix({**place, "core": core}, {at: at * 5e8 for at in SECONDS}) for core in ("2", "3")
        ],
        "slurm_job_utilization_gpu": [
            matrix({**place, "gpu": gpu}, dict.fromkeys(SECONDS, use)) for gpu, use in (("0", 20), ("1", 40))
        ],
    }
    found = samples("node_exporter,slurm-job-exporter", metrics)
    assert set(found.cpus["job"]) == {"77"}
    job = found.jobs.filter(at=105).row(0, named=True)
    assert job["cpu_user"] == pytest.approx(1.0)
    assert job["gpu"] == pytest.approx(0.3)


def test_a_sum_without_one_of_its_series_is_unknown() -> None:
    cores = [
        matrix({"slurmjobid": "7", "instance": "n1", "core": core}, {at: at * 1e9 for at in SECONDS})
        for core in "01"
    ]
    del cores[1]["values"][5]
    jobs = samples("slurm-job-exporter", {"slurm_job_core_usage_total": cores}).jobs
    assert dict(jobs.select("at", "cpu_user").rows())[105] is None
    assert dict(jobs.select("at", "cpu_user").rows())[104] == pytest.approx(2.0)


def test_ceems_and_dcgm_feed_jobs_and_unknown_ids_are_left_out() -> None:
    metrics = {
        "ceems_compute_unit_cpu_user_seconds_total": [
            matrix(
                {"uuid": uuid, "hostname": "n1", "instance": "10.0.0.1:9010"}, {at: 3 * at for at in SECONDS}
            )
            for uuid in ("1009248", "0f0ac288-dbd4-a9a3-df3a-ab14ef9d51d5")
        ],
        "DCGM_FI_DEV_GPU_UTIL": [
            matrix({"hpc_job": job, "Hostname": "n1", "gpu": "0"}, dict.fromkeys(SECONDS, 50))
            for job in ("1009248", "0")
        ],
    }
    jobs = samples("ceems,dcgm", {**metrics}).jobs
    assert jobs["job"].unique().to_list() == ["1009248"]
    assert set(jobs["node"]) <= {"n1", None}
    assert jobs.filter(at=105)["cpu_user"].to_list() == [3.0]


def test_the_agents_job_label_is_found_under_both_names_and_the_scrapes_name_is_no_job() -> None:
    def ratio(labels: dict[str, str], cpu: str) -> list[Any]:
        shares = {"user": 0.7, "system": 0.1, "iowait": 0.0, "other": 0.2}
        place = {"cpu": cpu, "instance": "n1:9814", "job": "tocsin", **labels}
        return [
            matrix({**place, "mode": mode}, dict.fromkeys(SECONDS, share)) for mode, share in shares.items()
        ]

    metrics = {
        "tocsin_cpu_ratio": [*ratio({"exported_job": "17"}, "0"), *ratio({"job": "18"}, "1"), *ratio({}, "2")]
    }
    cpus = samples("tocsin", metrics).cpus
    assert dict(cpus.select("cpu", "job").unique().rows()) == {0: "17", 1: "18", 2: None}
    assert cpus["user"].to_list() == pytest.approx([0.7] * 33)
    lost = {"tocsin_cpu_ratio": metrics["tocsin_cpu_ratio"][:2]}  # no iowait: half a CPU is no sample
    assert samples("tocsin", lost).cpus.is_empty()


def test_every_shipped_mapping_can_be_read() -> None:
    assert set(shipped()) == {
        "ceems", "cgroup_exporter", "dcgm", "node_exporter", "slurm-job-exporter", "tocsin",
    }  # fmt: skip
    for name in shipped():
        assert read_trace_mapping(name).jobs or read_trace_mapping(name).cpus


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("x = 1", '"x" is unknown'),
        ("[jobs]\nspeed = {}", "jobs.speed is unknown"),
        ('[jobs]\nmemory = { metric = "a b", job = { label = "j" } }', "not the name of a metric"),
        ('[jobs]\nmemory = { metric = "m" }', "jobs.memory needs job"),
        ('[jobs]\nmemory = { metric = "m", job = { label = "j", pattern = "x" } }', "one group"),
        ('[jobs]\nmemory = { metric = "m", job = { label = "j", pattern = "(" } }', "pattern"),
        ('[jobs]\nmemory = { metric = "m", factor = "2", job = { label = "j" } }', "factor cannot be"),
        ('[cpus]\nmetric = "m"', "cpus needs the modes"),
        ("[cpus", "cannot be read"),
    ],
)
def test_a_wrong_mapping_is_refused_in_a_sentence(tmp_path: Path, text: str, part: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(SourceError, match=part) as found:
        read_trace_mapping(str(file))
    assert "mine.toml" in str(found.value)


def test_an_unknown_mapping_names_those_there_are() -> None:
    with pytest.raises(SourceError, match="node_exporter"):
        read_trace_mapping("nodexporter")


def test_a_mapping_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'node = "host"\n[jobs]\nmemory = { metric = "m", job = { label = "j" }, factor = 1024 }\n'
    )
    found = samples(str(file), {"m": [matrix({"host": "n1", "j": "5"}, {100: 2})]})
    assert found.jobs.select("node", "job", "at", "memory").rows() == [("n1", "5", 100, 2048.0)]
    assert found.cpus.equals(pl.DataFrame(schema=found.cpus.schema))


def test_the_mapping_in_the_documents_can_be_read(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "node-agent.md").read_text()
    [text] = [part.partition("```")[0] for part in page.split("```toml\n") if part.startswith("node =")]
    file = tmp_path / "mine.toml"
    file.write_text(text)
    assert read_trace_mapping(str(file)).cpu_jobs
