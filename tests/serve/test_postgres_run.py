"""A whole run of the service with PostgreSQL as its store: verdicts, a case, actions and a token, before and after a kill."""

import http.client
import json
import os
import signal
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.kits.service import Process, wait_until
from tests.kits.slurm_hooks import TOCSIN
from tests.services import postgres_folders
from tests.services.postgres import Postgres
from tocsin.app.app import App
from tocsin.app.demo import demo

DAYS = 9 / 24
"""Until a morning: that is when most jobs are submitted."""


class Run:
    """The demonstration on a store in PostgreSQL, over loopback with a password from a file."""

    def __init__(self, home: Path, postgres: Postgres) -> None:
        self.home, self.url = home, postgres.new_database()
        password = home.parent / "password"
        password.write_text(postgres.password)
        password.chmod(0o600)
        self.environ = {
            "TOCSIN_STORE__URL": postgres.tcp_url(self.url).replace(f":{postgres.password}", ""),
            "TOCSIN_STORE__PASSWORD_FILE": str(password),
        }
        with App(folder=str(home), environ={**self.environ, "HOME": str(home.parent), "TZ": "UTC"}) as app:
            demo(app, seed=1, days=DAYS)

    def serve(self) -> Process:
        return Process(self.home, "--demo", "--speed", "120", environ=self.environ)

    def tocsin(self, *arguments: str) -> str:
        command = [*TOCSIN, "--home", str(self.home), *arguments]
        environ = {**os.environ, **self.environ, "TZ": "UTC"}
        return subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout

    def rows(self, question: str) -> list[list[str]]:
        """By psql, which shares no code with tocsin."""
        psql = str(postgres_folders()[0] / "psql")
        command = [psql, "-X", "-A", "-t", "-c", question, self.url]
        shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
        return [line.split("|") for line in shown.splitlines()]


@pytest.fixture
def run(postgres: Postgres, tmp_path: Path) -> Run:
    return Run(tmp_path / "home", postgres)


def whoever_holds(secret: str, service: Process) -> dict[str, Any]:
    with closing(http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)) as connection:
        connection.request("GET", "/api/v1/me", headers={"Authorization": f"Bearer {secret}"})
        return dict(json.load(connection.getresponse()))


def test_a_whole_run_on_postgresql_goes_on_after_a_kill_and_loses_nothing(run: Run, tmp_path: Path) -> None:
    with run.serve() as service:
        service.ready(400)
        wait_until(lambda: service.get("/api/v1/cases?status=open")["cases"], 180)
        [case] = service.get("/api/v1/cases?status=open")["cases"]
        answer = {"answer": "confirmed", "note": "seen"}
        assert service.ask(f"/api/v1/cases/{case['case']}/feedback", "POST", answer)[0] == 200
        run.tocsin("tokens", "create", "olga", "--role", "operator", "--out", str(tmp_path / "secret"))
        secret = (tmp_path / "secret").read_text().strip()
        assert whoever_holds(secret, service)["user"] == "olga"
        service.stop(signal.SIGKILL)
    stored = run.rows("SELECT job, stage, seq, md5(document::text) FROM verdicts ORDER BY 1, 2, 3")
    with run.serve() as service:
        service.ready(400)
        wait_until(lambda: len(run.rows("SELECT id FROM verdicts")) > len(stored), 180)
        assert service.get(f"/api/v1/cases/{case['case']}")["status"] == "confirmed"
        assert whoever_holds(secret, service)["user"] == "olga"
        first = next(event for event in service.events("0-0") if event["event"] == "verdict")
        assert json.loads(first["data"])["job"] == first_job(run), "events resume at any position"
        assert service.stop(signal.SIGTERM) == 0

    kept = run.rows("SELECT job, stage, seq, md5(document::text) FROM verdicts ORDER BY 1, 2, 3")
    assert [row for row in kept if row in stored] == stored, "no verdict was lost or changed"
    assert len({(job, stage, seq) for job, stage, seq, _ in kept}) == len(kept), "none was given twice"
    holds = run.rows("SELECT status FROM actions WHERE kind = 'hold'")
    assert set(map(tuple, holds)) == {("shadow",)}, "nothing is done to simulated jobs"
    assert "shadow" in run.tocsin("actions", "--all", "-n")
    assert run.rows("SELECT count(*) FROM feedback") == [["1"]]


def first_job(run: Run) -> str:
    """The job of the first verdict."""
    return run.rows("SELECT job FROM verdicts ORDER BY id LIMIT 1")[0][0]
