"""Samples of traces in Parquet files."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tocsin.core.errors import StoreError
from tocsin.core.frames import CPU_SAMPLES, JOB_SAMPLES, Samples
from tocsin.store.windows import WindowStore

NOON = 1_794_916_800  # 2026-11-17 12:00 UTC
DAY = 86_400


@pytest.fixture
def windows(tmp_path: Path) -> WindowStore:
    folder = tmp_path / "windows"
    folder.mkdir(mode=0o700)
    return WindowStore(folder)


def samples(seconds: "range | list[int]", *, node: str = "n1", user: float = 0.5) -> Samples:
    cpus = [(node, cpu, NOON + at, "7", user, 0.1, 0.0) for at in seconds for cpu in (0, 1)]
    jobs = [{"node": node, "job": "7", "at": NOON + at, "memory": 1e9} for at in seconds]
    return Samples(
        pl.DataFrame(cpus, schema=CPU_SAMPLES, orient="row"),
        pl.DataFrame(jobs, schema=JOB_SAMPLES, orient="row"),
    )


def seconds(frame: pl.DataFrame) -> list[int]:
    return sorted({at - NOON for at in frame["at"]})


def test_what_was_kept_is_read_back_by_time_and_node(windows: WindowStore) -> None:
    for node in ("n1", "n2"):
        windows.append("lab", samples(range(0, 1300), node=node))
    found = windows.samples("lab", NOON + 590, NOON + 610, ["n2", "n9"])
    assert found.cpus.schema == CPU_SAMPLES
    assert found.jobs.schema == JOB_SAMPLES
    assert found.cpus["node"].unique().to_list() == ["n2"]
    assert seconds(found.cpus) == seconds(found.jobs) == list(range(590, 611))
    assert windows.samples("lab", NOON, NOON + 1300).cpus.height == 2 * 2 * 1300
    assert windows.samples("other", NOON, NOON + 1300).cpus.is_empty()
    assert windows.nodes("lab") == ["n1", "n2"]


def test_repeated_and_late_samples_add_nothing_twice(windows: WindowStore) -> None:
    assert windows.append("lab", samples(range(50, 100))).added == 150
    again = windows.append("lab", samples(range(40, 110), user=0.9))
    assert (again.added, again.known) == (60, 150)
    found = windows.samples("lab", NOON, NOON + 200).cpus
    assert seconds(found) == list(range(40, 110))
    assert not found.is_duplicated().any()
    assert set(found.filter(pl.col("at") == NOON + 60)["user"]) == {0.5}, "what was known first stays"


def test_what_a_killed_writer_left_is_gone_after_the_next(windows: WindowStore) -> None:
    windows.append("lab", samples([0]))
    (whole,) = windows.folder.rglob("cpus-*")
    whole.rename(whole.with_name(f".new-{whole.name}"))
    windows.append("lab", samples([0, 1]))
    assert not list(windows.folder.rglob(".new-*"))
    assert seconds(windows.samples("lab", NOON, NOON + 9).cpus) == [0, 1]


def test_files_are_by_day_and_node_and_private(windows: WindowStore, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        windows.append("lab", samples([0, 43_200]))
    finally:
        os.umask(before)
    files = sorted(path.relative_to(windows.folder) for path in windows.folder.rglob("cpus-*"))
    assert [str(path) for path in files] == [
        f"lab/2026-11-17/n1/cpus-{NOON}.parquet",
        f"lab/2026-11-18/n1/cpus-{NOON + 43_200}.parquet",
    ]
    for path in windows.folder.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o640)


@pytest.mark.parametrize("name", ["../x", "..", "a/b", "", ".x", "a\0b", "/etc", "n1\n", "x" * 300])
def test_names_cannot_leave_the_folder(windows: WindowStore, name: str) -> None:
    with pytest.raises(StoreError, match="cannot be the name"):
        windows.append(name, samples([1]))
    done = windows.append("lab", samples([1], node=name))
    assert (done.added, done.refused) == (0, 3)
    assert windows.samples("lab", NOON, NOON + 10, [name]).cpus.is_empty()


def test_a_damaged_file_is_reported_and_costs_only_its_own_minutes(windows: WindowStore) -> None:
    windows.append("lab", samples(range(0, 1200, 100)))
    [first, _] = sorted(windows.folder.rglob("cpus-*"))
    first.write_bytes(first.read_bytes()[:100])
    reports: list[str] = []
    store = WindowStore(windows.folder, reports.append)
    for _ in range(2):
        assert seconds(store.samples("lab", NOON, NOON + 1200).cpus) == list(range(600, 1200, 100))
    assert len(reports) == 1
    assert str(first) in reports[0]
    assert list(store.damaged) == [first]
    assert store.append("lab", samples([0])).added == 2, "its time can be written again"
    assert seconds(store.samples("lab", NOON, NOON + 99).cpus) == [0]
    assert first.with_name(first.name + ".damaged").exists()


def test_old_days_are_removed(windows: WindowStore) -> None:
    windows.append("lab", samples([-2 * DAY, -DAY, 0]))
    assert windows.prune(before=NOON - DAY, dry_run=True) == 1
    assert windows.prune(before=NOON - DAY) == 1
    assert windows.prune(before=NOON - DAY) == 0
    assert seconds(windows.samples("lab", 0, NOON).cpus) == [-DAY, 0]


def test_the_position_of_a_source_is_kept(windows: WindowStore) -> None:
    assert windows.position("lab", "http://p:9090") is None
    windows.advance("lab", "http://p:9090", NOON)
    windows.advance("lab", "http://q:9090", NOON + 1)
    assert WindowStore(windows.folder).position("lab", "http://p:9090") == NOON


def test_writers_at_once_lose_nothing(windows: WindowStore) -> None:
    def write(place: int) -> Any:
        return WindowStore(windows.folder).append("lab", samples(range(place, 60, 6)))

    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(write, range(6)))
    assert sum(each.added for each in done) == 180
    assert seconds(windows.samples("lab", NOON, NOON + 60).cpus) == list(range(60))
