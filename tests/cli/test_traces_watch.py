"""`tocsin traces watch` against a Prometheus that answers late, partly, with garbage, or not at all."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kits.command_line import Tocsin
from tests.kits.pca_traces import PcaModel
from tests.kits.simulated_windows import WAITS, jobs
from tests.kits.trace_rounds import Nodes, trained
from tests.kits.watching import NOON
from tests.sources.trace_servers import Answer, failure, matrix, serving, success
from tocsin.app.app import App
from tocsin.app.heartbeat import read_heartbeats, traces_of
from tocsin.app.loop import Output
from tocsin.app.traces_watch import TraceWatchRequest, watch_traces
from tocsin.core.channels import CPU_CHANNELS
from tocsin.core.frames import SCHEMA
from tocsin.models.registry import Registry
from tocsin.sources import trace_http
from tocsin.store.database import open_store
from tocsin.store.home import Home
from tocsin.store.jobs import upsert
from tocsin.traces.detector import TracesDetector
from tocsin.traces.fitted import FittedTraces
from tocsin.traces.model_card import model_card


class FakePrometheus:
    """The metrics of nodes; `wrong` may answer instead."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.asked = 0
        self.wrong: Callable[[int], Answer | None] = lambda asked: None

    def __call__(self, path: str, query: dict[str, str]) -> Answer:
        if query["query"] != "tocsin_cpu_ratio":
            return success([])
        self.asked += 1
        if answer := self.wrong(self.asked):
            return answer
        [samples] = self.nodes(int(query["start"]) - 1, int(query["end"]))
        series: list[dict[str, Any]] = []
        for (node, cpu, job), rows in samples.cpus.group_by("node", "cpu", "job", maintain_order=True):
            for mode in CPU_CHANNELS:
                labels = {"instance": f"{node}:9814", "cpu": str(cpu), "mode": mode, "exported_job": str(job)}
                series.append(matrix(labels, dict(rows.select("at", mode).iter_rows())))
        return success(series)


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nodes:
    """Two jobs that run now, of which one waits for I/O; a model is trained and in use."""
    monkeypatch.setattr(TracesDetector, "load", lambda self, folder: FittedTraces.load(folder, PcaModel.load))
    monkeypatch.setattr(trace_http, "_FIRST_WAIT", 0.01)
    monkeypatch.setenv("TOCSIN_TRACES__WINDOW", "20")
    home = Home(tmp_path / "home").prepare()
    start = int(time.time()) - 300
    running = jobs(*({"job_id": n, "raw_id": n, "submit": start, "start": start} for n in (1, 2)))
    with open_store(home.url) as store:
        upsert(store, running.select(SCHEMA.names()))
    fitted, registry = trained(), Registry(home.models)
    registry.promote(
        "traces",
        registry.add("traces", fitted.save, model_card(fitted, created=NOON, data="test", parameters={})),
    )
    found = Nodes()
    first = start - NOON
    found.computes(1, first, first + 9000, cpus=(0,))
    found.computes(2, first, first + 9000, WAITS, cpus=(1,))
    return found


@pytest.fixture
def prometheus(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakePrometheus]:
    fake = FakePrometheus(nodes)
    with serving(fake) as url:
        monkeypatch.setenv("TOCSIN_TRACES__PROMETHEUS_URL", url)
        yield fake


def test_once_it_rings_for_the_bad_job_and_not_again(tocsin: Tocsin, prometheus: FakePrometheus) -> None:
    said = tocsin("traces", "watch", "-M", "lab", "--once", "--json")
    assert said.code == 0, said.err
    [verdict] = map(json.loads, said.out.splitlines())
    assert verdict["job"].startswith("lab:2@")
    assert (verdict["stage"], verdict["seq"], verdict["level"]) == ("running", 0, "warning")
    assert verdict["findings"][0]["text"].startswith("CPU 1 of n1 has waited for I/O")
    assert "scored" in said.err
    again = tocsin("traces", "watch", "-M", "lab", "--once")
    assert (again.code, again.out) == (0, "")
    shown = json.loads(tocsin("job", "2", "--json").out)
    assert "running" in [each["stage"] for each in shown["jobs"][0]["verdicts"]]


def test_a_prometheus_that_is_away_is_an_error_with_its_address(
    tocsin: Tocsin, nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOCSIN_TRACES__PROMETHEUS_URL", "http://127.0.0.1:9")
    said = tocsin("traces", "watch", "-M", "lab", "--once")
    assert said.code == 1
    assert "127.0.0.1:9" in said.err
    monkeypatch.delenv("TOCSIN_TRACES__PROMETHEUS_URL")
    assert "traces.prometheus_url" in tocsin("traces", "watch", "-M", "lab", "--once").err


FAULTS: dict[str, Answer] = {
    "garbage": (200, b"<html>not JSON", {}),
    "an error": failure(422, "query processing would load too much"),
    "half a document": (200, b'{"status":"success","data":{"resultType":"matrix","result":[{"met', {}),
    "another form": (200, b'{"status":"success","data":{"resultType":"vector","result":[]}}', {}),
    "values that are none": success([matrix({"cpu": "x", "mode": "user"}, {1: 2})]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_it_survives_what_prometheus_answers_and_rings_afterwards(
    fault: str, prometheus: FakePrometheus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prometheus.wrong = lambda asked: FAULTS[fault] if asked <= 2 else None
    messages: list[str] = []
    lines: list[str] = []

    def print_line(line: str) -> None:
        lines.append(line)
        os.kill(os.getpid(), signal.SIGTERM)

    too_long = threading.Timer(120, os.kill, (os.getpid(), signal.SIGTERM))
    too_long.start()
    try:
        with App(folder=str(tmp_path / "home"), environ=dict(os.environ), notify=messages.append) as app:
            watch_traces(app, TraceWatchRequest(cluster="lab", every=1), Output(print_line))
    finally:
        too_long.cancel()
    assert len(lines) == 1
    assert "lab:2@" in lines[0]
    [beat] = read_heartbeats(tmp_path / "home" / "cache")
    assert beat.cluster == traces_of("lab")
    assert beat.ended
    assert "tocsin traces watch -M lab" in beat.command
    if fault != "values that are none":
        assert any("Prometheus" in message for message in messages)
