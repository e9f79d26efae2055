"""Jobs that reach `early` are measured from the samples kept by then, before their verdict is given."""

from pathlib import Path

import polars as pl
import pytest

from tests.kits.job_frames import SUBMIT, frame
from tocsin.app.app import App
from tocsin.app.first_metrics import measure_due, measure_stored
from tocsin.core.channels import JOB_CHANNELS
from tocsin.core.fields import KEY
from tocsin.core.frames import CPU_SAMPLES, JOB_SAMPLES, Samples
from tocsin.store.jobs import load, upsert
from tocsin.store.windows import WindowStore

START = SUBMIT + 10


@pytest.fixture
def app(tmp_path: Path) -> App:
    made = App(folder=str(tmp_path / "home"), environ={"HOME": str(tmp_path)})
    made.home.prepare()
    return made


def record(app: App, job: str, seconds: int, **channels: float) -> None:
    rows = [
        {**dict.fromkeys(JOB_CHANNELS), "node": "n1", "job": job, "at": START + n, **channels}
        for n in range(1, seconds + 1)
    ]
    jobs = pl.DataFrame(rows, schema=JOB_SAMPLES, orient="row")
    WindowStore(app.home.windows).append("lab", Samples(CPU_SAMPLES.to_frame(), jobs))


def test_a_job_is_measured_from_its_first_two_minutes(app: App) -> None:
    running = {"start": START, "node_list": "n[1-2]", "alloc_cpus": 2, "alloc_nodes": 1}
    upsert(app.store, frame({"job_id": 1, **running}, {"job_id": 2, **running}))
    record(app, "1", 120, cpu_user=1.0, memory=2.0**30)
    record(app, "1", 600, memory=2.0**35)  # it is known already: nothing changes before second 121
    keys = load(app.store).select(KEY)
    with app:
        measure_due(app, "lab")(keys)
        measure_due(app, "other")(keys)
        found = load(app.store).select("job_id", "first_cpu_user", "first_memory_peak").rows()
    assert found == [(1, 0.5, 2**30), (2, None, None)]


def test_jobs_whose_traces_came_later_are_measured_before_a_training(app: App) -> None:
    ended = {
        "start": START,
        "end": START + 300,
        "outcome": "completed",
        "known_at": START + 360,
        "req_cpus": 1,
    }
    upsert(app.store, frame(*({"job_id": n, **ended} for n in (1, 2, 3))))
    with app:
        assert measure_stored(app) == 0
        record(app, "1", 300, cpu_user=0.25)
        record(app, "3", 3, cpu_user=0.25)
        assert measure_stored(app) == 1
        assert measure_stored(app) == 0
        assert load(app.store)["first_cpu_user"].to_list() == [0.25, None, None]
