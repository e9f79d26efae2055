"""A user in another time zone than the service: times mean what they mean in the user's own `sacct`."""

import time
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tests.kits.command_line import Tocsin
from tests.kits.ended_jobs import job, jobs
from tests.kits.service import Process
from tocsin.app.app import App
from tocsin.core.outcomes import Outcome
from tocsin.store.jobs import upsert

HERE = "Asia/Kathmandu"


def test_times_on_the_command_line_are_in_the_users_zone(
    tmp_path: Path, tocsin: Tocsin, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, submit = tmp_path / "service", int(time.time()) - 3600
    with App(folder=str(home), environ={"HOME": str(tmp_path), "TZ": "UTC"}) as app:
        app.home.prepare()
        upsert(app.store, jobs([job(17, submit=submit, outcome=Outcome.FAILED, elapsed=60)]))
    monkeypatch.setenv("TZ", HERE)
    with Process(home, "--no-watch", environ={"TZ": "UTC"}) as process:
        monkeypatch.setenv("TOCSIN_SERVICE", f"unix:{process.ready().socket}")

        def listed(option: str, instant: int) -> bool:
            local = datetime.fromtimestamp(instant, ZoneInfo(HERE)).strftime("%Y-%m-%dT%H:%M:%S")
            return "17" in tocsin("jobs", "-n", "-P", "-o", "JobID", option, local).out.split()

        assert listed("-S", submit - 300)
        assert not listed("-S", submit + 300)
        assert listed("-E", submit + 300)
        assert not listed("-E", submit - 300)
