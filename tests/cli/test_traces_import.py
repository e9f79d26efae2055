"""`tocsin traces import` from files, agents and Prometheus."""

import json
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.kits.command_line import Tocsin
from tests.sources.trace_servers import Answer, failure, matrix, serving, success
from tocsin.core.frames import CPU_SAMPLES
from tocsin.store.windows import WindowStore

MODES = {"user": 0.5, "system": 0.2, "iowait": 0.1, "idle": 0.2}


def recording(path: Path, seconds: "list[int]") -> Path:
    rows = [("n1", 0, at, "7", 0.5, 0.1, 0.0) for at in seconds]
    pl.DataFrame(rows, schema=CPU_SAMPLES, orient="row").write_parquet(path)
    return path


def test_a_file_is_read_once(tocsin: Tocsin, tmp_path: Path) -> None:
    file = recording(tmp_path / "x.parquet", [*range(1000, 1050), *range(1053, 1100)])
    done = json.loads(tocsin("traces", "import", file, "-M", "lab", "--json").out)
    assert (done["cpu_samples"], done["new"], done["known"], done["gaps"]) == (97, 97, 0, 3)
    again = tocsin("traces", "import", file, "-M", "lab")
    assert again.code == 0
    assert "97 CPU samples and 0 job samples read" in again.out
    assert "0 new, 97 known; 3 gaps, 0 counter resets" in again.out
    assert WindowStore(tmp_path / "home" / "windows").samples("lab", 0, 2000).cpus.height == 97


def test_only_the_time_asked_for_is_read(tocsin: Tocsin, tmp_path: Path) -> None:
    at = 1_794_916_800
    file = recording(tmp_path / "x.parquet", [at + second for second in range(100)])
    done = tocsin("traces", "import", file, "-M", "lab", "-S", at + 9, "-E", at + 19, "--json")
    assert json.loads(done.out)["new"] == 10


class FakePrometheus:
    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []
        self.broken = False

    def __call__(self, path: str, query: dict[str, str]) -> Answer:
        start, end = int(query["start"]), int(query["end"])
        self.asked.append((start, end))
        if self.broken:
            return failure(400, "out of order")
        place = {"cpu": "0", "instance": "n1:9100"}
        seconds = range(start, end + 1)
        result: list[Any] = [
            matrix({**place, "mode": mode}, {at: at * rate for at in seconds}) for mode, rate in MODES.items()
        ]
        return success(result, warnings=["one replica did not answer"])


def test_prometheus_is_read_from_where_it_ended(tocsin: Tocsin, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakePrometheus()
    ask = ["traces", "import", "-M", "lab", "--mapping", "node_exporter", "--json"]
    now = 1_794_916_800
    monkeypatch.setattr(time, "time", lambda: now)
    with serving(fake) as url:
        first = tocsin(*ask, "--prometheus", url)
        assert json.loads(first.out)["new"] == 3600, "an hour at first"
        assert "one replica did not answer" in first.err
        fake.asked.clear()
        now += 60
        second = json.loads(tocsin(*ask, "--prometheus", url).out)
        assert (second["new"], second["known"]) == (60, 30), "late scrapes of the last seconds are read again"
        assert fake.asked[0][0] == now - 60 - 31
        now, fake.broken = now + 60, True
        third = tocsin(*ask, "--prometheus", url)
        assert third.code == 1
        assert "read it again later" in third.err
        fake.broken = False
        assert json.loads(tocsin(*ask, "--prometheus", url).out)["new"] == 60, "nothing is lost"


def test_sources_of_the_settings_are_read(tocsin: Tocsin, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = tocsin("traces", "import", "-M", "lab")
    assert nothing.code == 1
    assert "set traces.prometheus_url or traces.agents" in nothing.err
    at = time.time() - 5
    sample = {"at": at, "cpus": {"0": [0.5, 0.1, 0.0]}, "jobs": {}, "counters": {}}
    page = {"schema": 1, "node": "n1", "interval": 1, "gaps": 0, "clock_jumps": 0, "samples": [sample]}
    with serving(lambda path, query: (200, json.dumps(page).encode(), {})) as url:
        monkeypatch.setenv("TOCSIN_TRACES__AGENTS", f"{url}, {url}/")
        done = json.loads(tocsin("traces", "import", "-M", "lab", "--json").out)
        assert (done["new"], done["known"], done["failed_sources"]) == (1, 1, 0)
        monkeypatch.setenv("TOCSIN_TRACES__AGENTS", f"http://127.0.0.1:9,{url}")
        partly = tocsin("traces", "import", "-M", "lab", "--json")
    assert partly.code == 0, "one node that is down does not hide the others"
    assert json.loads(partly.out)["failed_sources"] == 1
    assert "the agent at http://127.0.0.1:9 does not answer" in partly.err


def test_errors_name_the_place(tocsin: Tocsin) -> None:
    gone = tocsin("traces", "import", "-M", "lab", "nowhere.parquet")
    assert (gone.code, "no file or folder nowhere.parquet" in gone.err) == (1, True)
    odd = tocsin("traces", "import", "-M", "../lab", "--agent", "http://127.0.0.1:9")
    assert odd.code == 1
