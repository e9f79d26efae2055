"""Windows of jobs from the kept samples."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kits.watching import NOON, frame
from tocsin.app.traces_windows import StoredWindows
from tocsin.core.frames import CPU_SAMPLES, JOB_SAMPLES, Samples
from tocsin.core.settings import TracesSettings
from tocsin.history.ledger import Ledger
from tocsin.store.database import Store, open_store
from tocsin.store.jobs import upsert
from tocsin.store.windows import WindowStore

RUN: dict[str, Any] = {"start": NOON, "state": "RUNNING", "node_list": "n1"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path}/tocsin.db") as store:
        yield store


@pytest.fixture
def traces(tmp_path: Path) -> WindowStore:
    return WindowStore(tmp_path / "windows")


def samples(seconds: range, jobs: dict[int, str | None], node: str = "n1", user: float = 0.5) -> Samples:
    rows = [(node, cpu, NOON + at, job, user, 0.0, 0.0) for at in seconds for cpu, job in jobs.items()]
    counters = [
        {"node": node, "job": job, "at": NOON + at, "memory": 1e6} for at in seconds for job in {*jobs.values()} - {None}
    ]  # fmt: skip
    return Samples(
        pl.DataFrame(rows, schema=CPU_SAMPLES, orient="row"),
        pl.DataFrame(counters, schema=JOB_SAMPLES, orient="row"),
    )


def test_a_job_gets_all_cpus_of_its_nodes_with_the_keys_of_their_jobs(
    store: Store, traces: WindowStore
) -> None:
    upsert(store, frame({**RUN, "job_id": 7}, {**RUN, "job_id": 8}, {**RUN, "job_id": 9, "node_list": "n2"}))
    traces.append("lab", samples(range(1, 301), {0: "7", 1: "8", 2: None}))
    traces.append("lab", samples(range(1, 301), {0: "9"}, node="n2"))
    ledger = Ledger(windows=StoredWindows(traces, store, TracesSettings()))
    found = ledger.windows(frame({**RUN, "job_id": 7}), NOON + 200)
    keys = found.filter(pl.col("cpu").is_not_null()).group_by("cpu").agg(pl.col("job").unique()).sort("cpu")
    assert keys.rows() == [(0, [f"lab:7@{NOON}"]), (1, [f"lab:8@{NOON}"]), (2, [None])]
    assert set(found["node"]) == {"n1"}
    assert found["at"].max() == NOON + 200
    assert set(found.filter(pl.col("cpu").is_null())["job"]) == {f"lab:7@{NOON}", f"lab:8@{NOON}"}


def test_only_the_time_of_the_jobs_is_read_and_only_the_newest_if_asked(
    store: Store, traces: WindowStore
) -> None:
    job = frame({**RUN, "start": NOON + 150, "end": NOON + 400, "job_id": 7})
    upsert(store, job)
    traces.append("lab", samples(range(1, 601), {0: "7"}))
    windows = StoredWindows(traces, store, TracesSettings(window=20))
    ends = windows(job, NOON + 10_000).filter(cpu=0)["at"]
    assert (ends.min(), ends.max()) == (NOON + 150, NOON + 400)
    recent = StoredWindows(traces, store, TracesSettings(window=20), recent=30)
    assert recent(job, NOON + 300).filter(cpu=0)["at"].to_list() == [NOON + at for at in (270, 280, 290, 300)]


def test_siblings_of_a_task_are_there_too(store: Store, traces: WindowStore) -> None:
    tasks = [
        {**RUN, "job_id": 7, "task": 1, "raw_id": 7},
        {**RUN, "job_id": 7, "task": 2, "raw_id": 8, "node_list": "n2"},
    ]
    upsert(store, frame(*tasks))
    traces.append("lab", samples(range(1, 200), {0: "7"}))
    traces.append("lab", samples(range(1, 200), {0: "8"}, node="n2"))
    found = StoredWindows(traces, store, TracesSettings())(frame(tasks[0]), NOON + 200)
    assert set(found["job"]) == {f"lab:7_1@{NOON}", f"lab:7_2@{NOON}"}


def test_a_job_with_a_whole_node_has_its_cpus_where_the_source_knows_no_jobs(
    store: Store, traces: WindowStore
) -> None:
    job = frame({**RUN, "start": NOON + 100, "job_id": 7, "exclusive": True})
    upsert(store, job)
    traces.append("lab", samples(range(1, 301), {0: None, 1: None}))
    found = StoredWindows(traces, store, TracesSettings())(job, NOON + 300)
    by_end = dict(found.filter(cpu=1).select("at", "job").rows())
    assert by_end[NOON + 300] == f"lab:7@{NOON}"
    assert by_end[NOON + 100] is None


def test_jobs_without_nodes_or_samples_have_no_windows(store: Store, traces: WindowStore) -> None:
    windows = StoredWindows(traces, store, TracesSettings())
    assert windows(
        frame({"job_id": 7}, {**RUN, "job_id": 8}, {**RUN, "job_id": 9, "node_list": "n["}), NOON
    ).is_empty()


@settings(max_examples=25)
@given(until=st.integers(0, 300), gaps=st.sets(st.integers(1, 300), max_size=40), late=st.integers(0, 400))
def test_no_sample_after_the_instant_changes_a_window(until: int, gaps: set[int], late: int) -> None:
    with TemporaryDirectory() as folder, open_store(f"sqlite:///{folder}/tocsin.db") as store:
        job = frame({**RUN, "job_id": 7, "end": NOON + late})
        upsert(store, job)
        found = []
        for name, user in (("a", 0.1), ("b", 0.9)):
            traces = WindowStore(Path(folder) / name)
            known = samples(range(1, until + 1), {0: "7"})
            kept = pl.col("at").is_in([NOON + at for at in gaps]).not_()
            traces.append("lab", Samples(known.cpus.filter(kept), known.jobs.filter(kept)))
            traces.append("lab", samples(range(until + 1, 400), {0: "7" if user < 0.5 else "8"}, user=user))
            found.append(StoredWindows(traces, store, TracesSettings(window=30))(job, NOON + until))
        assert found[0].equals(found[1])
