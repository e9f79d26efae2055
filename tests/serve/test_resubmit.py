"""Resubmitting a job that only the service knows: the service checks who owns it, the caller submits it."""

import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kits.command_line import Tocsin
from tests.kits.ended_jobs import job, jobs
from tests.kits.service import Process
from tocsin.app.app import App
from tocsin.core.outcomes import Outcome
from tocsin.store.home import user_name
from tocsin.store.jobs import upsert
from tocsin.store.scriptfiles import save_script

SCRIPT = "#!/bin/bash\n#SBATCH --time=5\n# caf\udce9\nexit 1\n"
"""With a byte that is not UTF-8."""
NOW = int(time.time()) - 600


def keep(home: Path, number: int, user: str, **more: object) -> None:
    with App(folder=str(home), environ={"HOME": str(home.parent), "TZ": "UTC"}) as app:
        app.home.prepare()
        row = job(number, submit=NOW + number, user=user, name="grow", outcome=Outcome.FAILED, elapsed=1)
        script = save_script(app.home.scripts, SCRIPT)
        upsert(app.store, jobs([{**row, "cluster": "lab", "script": script, **more}]))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    home = tmp_path_factory.mktemp("resubmit") / "home"
    keep(home, 17, user_name())
    keep(home, 18, "somebody")
    keep(home, 19, user_name(), script=None)
    with Process(home, "--no-watch") as process:
        yield process.ready()


@pytest.fixture
def submitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: Process) -> Path:
    """A Slurm that takes each script as job 20; its text is in the file that is returned."""
    folder, script = tmp_path / "bin", tmp_path / "submitted"
    folder.mkdir()
    for name, text in {
        "sbatch": f'cat "$2" > {script}; echo 20',
        "squeue": f"echo '20|PENDING||{NOW + 20}|N/A|N/A'",
    }.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("TOCSIN_SERVICE", f"unix:{service.socket}")
    return script


def test_a_job_of_the_service_is_submitted_by_its_user_and_linked_there(
    service: Process, submitted: Path, tocsin: Tocsin
) -> None:
    # The service sees the new job only after it was submitted.
    seen = threading.Timer(1.0, keep, (service.home, 20, user_name()))
    seen.start()
    done = tocsin("resubmit", "17")
    seen.join()
    assert done.code == 0, done.err
    assert done.err == ""
    assert done.out.startswith(f"submitted lab:20@{NOW + 20} to replace lab:17@{NOW + 17}\n")
    assert submitted.read_bytes() == SCRIPT.encode("utf-8", "surrogateescape")
    [linked] = service.get("/api/v1/jobs/17/actions")["resubmissions"]
    assert (linked["new"], linked["who"]) == (f"lab:20@{NOW + 20}", user_name())


def test_the_job_of_another_user_is_not_submitted_again(submitted: Path, tocsin: Tocsin) -> None:
    done = tocsin("resubmit", "18")
    assert done.code == 1
    assert f"no job 18 of user {user_name()}" in done.err
    assert not submitted.exists()


def test_without_its_script_a_job_needs_one(submitted: Path, tocsin: Tocsin) -> None:
    done = tocsin("resubmit", "19")
    assert done.code == 1
    assert f"the script of lab:19@{NOW + 19} is not stored; name it: tocsin resubmit" in done.err
    assert not submitted.exists()


def test_a_new_job_that_the_service_never_sees_was_submitted_all_the_same(
    submitted: Path, tocsin: Tocsin, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tocsin.app.resubmit._PATIENCE", 0.0)
    (tmp_path / "bin" / "squeue").write_text(f"#!/bin/sh\necho '20|PENDING||{NOW + 999}|N/A|N/A'\n")
    done = tocsin("resubmit", "17")
    assert done.code == 0
    assert f"submitted lab:20@{NOW + 999} to replace lab:17@" in done.out
    assert "the new job is not linked to the old one: no job" in done.err
    assert submitted.exists()


def test_with_local_the_own_data_are_used(submitted: Path, tocsin: Tocsin) -> None:
    assert "no job 17" in tocsin("resubmit", "17", "--local").err
    assert not submitted.exists()
