"""What `tocsin nightly` hands the contest of traces: stored windows of normal jobs."""

from pathlib import Path

import polars as pl
import pytest

from tests.kits.job_frames import SUBMIT, frame
from tocsin.app.app import App
from tocsin.app.nightly import contests
from tocsin.core.decision import NewCase
from tocsin.core.errors import ModelError
from tocsin.core.frames import CPU_SAMPLES, JOB_SAMPLES, Samples
from tocsin.core.verdict import CaseStatus
from tocsin.learn.contest_traces import NormalWindows, TracesContest
from tocsin.store import cases
from tocsin.store.jobs import upsert
from tocsin.store.windows import WindowStore

START = SUBMIT + 10


@pytest.fixture
def app(tmp_path: Path) -> App:
    made = App(folder=str(tmp_path / "home"), environ={"HOME": str(tmp_path), "TZ": "UTC"})
    made.home.prepare()
    return made


def record(app: App, node: str, job: int) -> None:
    rows = [
        {"node": node, "cpu": 0, "job": str(job), "at": START + n, "user": 0.9, "system": 0.05, "iowait": 0.0}
        for n in range(1, 301)
    ]
    cpus = pl.DataFrame(rows, schema=CPU_SAMPLES, orient="row")
    WindowStore(app.home.windows).append("lab", Samples(cpus, JOB_SAMPLES.to_frame()))


def test_windows_of_normal_jobs_are_read(app: App) -> None:
    running = {"start": START, "end": START + 300, "outcome": "completed", "user": "ann", "name": "fit"}
    upsert(app.store, frame(*({"job_id": n, "raw_id": n, "node_list": f"n{n}", **running} for n in (1, 2))))
    for number in (1, 2):
        record(app, f"n{number}", number)
    contest = contests(app)["traces"]
    assert isinstance(contest, TracesContest)

    def read(until: int) -> NormalWindows:
        assert isinstance(contest, TracesContest)
        return contest.read(["lab"], START, START + until)

    with app:
        both = read(300)
        assert both.jobs.sort("job")["job"].to_list() == [f"lab:{n}@{SUBMIT}" for n in (1, 2)]
        assert both.windows["at"].max() == START + 300
        until = read(200).windows["at"].max()
        assert isinstance(until, int)
        assert until <= START + 200
        new = NewCase(cause="traces:lab:2", job=f"lab:2@{SUBMIT}", opened=START, document={})
        with app.store.writing() as connection:
            number, _ = cases.open_case(connection, new)
        cases.answer(app.store, number, CaseStatus.CONFIRMED, who="ada", at=START)
        assert read(300).windows["job"].unique().to_list() == [f"lab:1@{SUBMIT}"]
        with pytest.raises(ModelError, match="no stored traces of attic"):
            contest.read(["attic"], START, START + 300)
