"""Prometheus that answers late, partly, with garbage or not at all: counted, reported, survived."""

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.sources.trace_servers import Answer, failure, matrix, serving, success
from tocsin.core.errors import SettingsError, SourceError
from tocsin.sources import trace_http
from tocsin.sources.prometheus import PrometheusSource
from tocsin.sources.trace_http import TraceHttp
from tocsin.sources.trace_mapping import read_trace_mapping

MODES = {"user": 0.5, "system": 0.2, "iowait": 0.1, "idle": 0.2}


def cpu_seconds(start: int, end: int) -> list[dict[str, Any]]:
    return [
        matrix(
            {"cpu": "0", "mode": mode, "instance": "n1:9100"}, {at: at * rate for at in range(start, end + 1)}
        )
        for mode, rate in MODES.items()
    ]


class Fake:
    """A Prometheus with one CPU; `wrong` may answer instead."""

    def __init__(self, wrong: Callable[[int, int], Answer | None] = lambda start, end: None) -> None:
        self.asked: list[tuple[int, int]] = []
        self.wrong = wrong

    def __call__(self, path: str, query: dict[str, str]) -> Answer:
        assert path == "/api/v1/query_range"
        start, end = int(query["start"]), int(query["end"])
        self.asked.append((start, end))
        return self.wrong(start, end) or success(cpu_seconds(start, end))


def read(
    url: str, since: int = 1000, until: int = 1100, *, chunk: int = 25
) -> tuple[list[int], PrometheusSource]:
    http = TraceHttp(url, "Prometheus", seconds=2, tries=2, sleep=lambda seconds: None)
    source = PrometheusSource(http, read_trace_mapping("node_exporter"), chunk=chunk)
    try:
        seconds: Iterator[int] = (
            at for batch in source.batches(since, until) for at in batch.samples.cpus["at"]
        )
        return list(seconds), source
    finally:
        http.close()


def test_all_seconds_come_once_in_parts_of_bounded_size() -> None:
    fake = Fake()
    with serving(fake) as url:
        seconds, source = read(url)
    assert seconds == list(range(1001, 1101))
    assert max(end - start for start, end in fake.asked) <= 26
    assert not +source.counts


@pytest.mark.parametrize(
    "error",
    [
        "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution",
        "query processing would load too many samples into memory in query execution",
        "query timed out in expression evaluation",
    ],
)
def test_too_many_points_are_asked_for_in_smaller_parts(error: str) -> None:
    fake = Fake(lambda start, end: failure(422, error) if end - start > 8 else None)
    with serving(fake) as url:
        seconds, source = read(url)
    assert seconds == list(range(1001, 1101))
    assert source.counts["split parts"] == 2


def test_a_reply_that_is_too_large_is_asked_for_in_smaller_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_http, "MAX_REPLY", 1500)
    with serving(Fake()) as url:
        seconds, source = read(url)
    assert seconds == list(range(1001, 1101))
    assert source.counts["split parts"] > 0


def test_one_second_that_is_too_large_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_http, "MAX_REPLY", 100)
    with serving(Fake()) as url, pytest.raises(SourceError, match="a single second is too much"):
        read(url)


GARBAGE = [
    (200, b"<html>It works!</html>", {}),
    (200, b"[1, 2", {}),
    (200, b"[" * 100_000, {}),
    (200, b'{"status": "success"}', {}),
    (200, b'{"status": "success", "data": {"resultType": "vector", "result": []}}', {}),
    failure(503, "the server is starting"),
    failure(400, "parse error"),
    (502, b"bad gateway", {}),
]


@pytest.mark.parametrize("answer", GARBAGE)
def test_a_part_that_cannot_be_had_is_counted_and_the_others_are_read(answer: Answer) -> None:
    with serving(Fake(lambda start, end: answer if start == 1024 else None)) as url:
        seconds, source = read(url)
    assert seconds == [*range(1001, 1026), *range(1051, 1101)]
    assert source.counts["failed parts"] == 1
    assert source.first_failed == 1025, "the next import begins there"
    assert "read it again later" in source.notes[0]


def test_an_overloaded_server_is_asked_again() -> None:
    answers = iter([failure(503, "busy"), None] * 10)
    with serving(Fake(lambda start, end: next(answers))) as url:
        seconds, source = read(url)
    assert seconds == list(range(1001, 1101))
    assert not source.counts["failed parts"]


def test_points_that_are_no_numbers_are_gaps() -> None:
    def odd(start: int, end: int) -> Answer:
        result: list[Any] = cpu_seconds(start, end)
        result[0]["values"][3][1] = "NaN"
        result[1]["values"][7] = [result[1]["values"][7][0], "+Inf"]
        result[2]["values"][9] = "x"
        result[3]["values"][11] = [None, {}]
        return success(
            [*result, 7, {"metric": {"cpu": "0"}}, {"metric": {"cpu": "x"}, "values": [[start, "1"]] * 2}]
        )

    with serving(Fake(odd)) as url:
        seconds, source = read(url, 1000, 1024, chunk=30)
        http = TraceHttp(url, "Prometheus")
        [batch] = PrometheusSource(http, read_trace_mapping("node_exporter")).batches(1000, 1024)
        http.close()
    shares = set(batch.samples.cpus.select(pl.col(pl.Float32).cast(pl.Float64).round(4)).rows())
    assert set(range(1001, 1025)) - set(seconds) <= {1002, 1003, 1006, 1007, 1008, 1009, 1010, 1011}
    assert len(seconds) >= 16
    assert shares == {(0.5, 0.2, 0.1)}, "no mode is missing in a total"
    assert source.counts["invalid points"] >= 4
    assert source.counts["invalid series"] == 2


def test_redirects_are_refused_and_named() -> None:
    with (
        serving(lambda path, query: (302, b"", {"Location": "http://elsewhere.example/"})) as url,
        pytest.raises(SourceError, match=re.escape("redirects to http://elsewhere.example/")),
    ):
        read(url)


def test_a_server_that_sends_a_byte_now_and_then_cannot_hold_the_import() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def drip() -> None:
        while not ended.is_set():
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer:
                peer.recv(4096)
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{")
                while not ended.wait(0.05):
                    try:
                        peer.sendall(b" ")
                    except OSError:
                        break

    thread = threading.Thread(target=drip)
    thread.start()
    http = TraceHttp(
        f"http://127.0.0.1:{listener.getsockname()[1]}",
        "Prometheus",
        seconds=0.5,
        tries=1,
        sleep=lambda _: None,
    )
    began = time.monotonic()
    try:
        with pytest.raises(SourceError, match="does not answer"):
            http.get("/api/v1/query_range", {})
        assert time.monotonic() - began < 20
    finally:
        http.close()
        ended.set()
        listener.close()
        thread.join()


def test_nobody_there_is_a_sentence() -> None:
    with pytest.raises(SourceError, match="does not answer"):
        read("http://127.0.0.1:9")
    with pytest.raises(SettingsError, match="write http://host:port"):
        read("localhost:9090")


def test_a_recorded_reply_of_rates_becomes_series(tmp_path: Path) -> None:
    """Rates computed by Prometheus, of a node_exporter on a real node, by a mapping of one's own."""
    recorded = json.loads(
        (Path(__file__).parent / "fixtures/prometheus/query_range_cpu_1hz.json").read_bytes()
    )
    file = tmp_path / "rates.toml"
    modes = "\n".join(f'{mode} = "{mode}"' for mode in ("user", "system", "iowait"))
    file.write_text(
        f'node = "instance"\n[cpus]\nmetric = "rate"\ncounter = false\ncpu = "cpu"\nmode = "mode"\n{modes}\n'
    )
    for series in recorded["data"]["result"]:
        series["metric"]["instance"] = "n1:9100"
    first = recorded["data"]["result"][0]["values"][0][0]
    with serving(lambda path, query: success(recorded["data"]["result"])) as url:
        http = TraceHttp(url, "Prometheus", seconds=5)
        source = PrometheusSource(http, read_trace_mapping(str(file)))
        [batch] = source.batches(first - 1, first + 100)
        http.close()
    assert batch.samples.cpus.height == 2 * 56
    assert batch.samples.cpus.filter(cpu=0)["system"][:3].to_list() == pytest.approx([0.16, 0.16, 0.22])
