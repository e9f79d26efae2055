"""The service beside a real Slurm, with hooks and a policy that acts: what users and operators get, and what its death costs."""

import json
import re
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import unavailable
from tests.kits.live_service import (
    BOUND_TO_FAIL,
    MINER,
    WINDOW,
    LiveService,
    bound_to_fail,
    socket_of,
    taught,
)
from tests.kits.service import wait_until
from tests.kits.slurm_hooks import advised, hooks_installed, sbatch, script
from tests.services import missing
from tests.services.daemons import await_true
from tests.services.slurm import SlurmLab

JOBS = 20
FINE = "#!/bin/bash\n#SBATCH --job-name=plot\n#SBATCH --mem=48M\n#SBATCH --time=5\ntrue\n"


class Running:
    """The service of this file; a test that kills it starts another one."""

    def __init__(self, slurm: SlurmLab, home: Path) -> None:
        self.slurm, self.home = slurm, home
        self.start()

    def start(self, *, rest: bool = False) -> LiveService:
        self.service = LiveService(self.slurm, self.home, rest=rest)
        return self.service.ready()


@pytest.fixture(scope="module")
def running(slurm: SlurmLab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service that has learned the habits of the lab's users, and both hooks in Slurm."""
    if sentence := missing("lightgbm"):
        unavailable(sentence)
    home = tmp_path_factory.mktemp("live") / "home"
    taught(home, slurm.cluster)
    # On a busy machine the answer may take longer than 150 ms; that sbatch then goes without is tested with the hook.
    with hooks_installed(slurm, home, socket_of(slurm), window=WINDOW, advice_milliseconds=10_000):
        running = Running(slurm, home)
        yield running
        running.service.stop(signal.SIGKILL)


@pytest.fixture
def service(running: Running) -> LiveService:
    return running.service


def reason(slurm: SlurmLab, job: int) -> str:
    return slurm.run("squeue", "-h", "-t", "all", "-j", str(job), "-o", "%r").stdout.strip()


def test_advice_of_the_service_is_printed_at_the_terminal(slurm: SlurmLab, service: LiveService) -> None:
    words = advised(slurm, script(slurm, BOUND_TO_FAIL))
    assert words.startswith("tocsin: warning: check this before you submit it.")
    assert re.search(r"likely to fail \(risk \d+%\); most likely cause: out of memory", words)
    assert re.search(r"→ --mem=\d+M .*\(risk \d+% → \d+%\)", words)
    assert sbatch(slurm, "--test-only", script(slurm, FINE))[2].count("tocsin:") == 0, "nothing is wrong"


def test_jobs_bound_to_fail_have_verdicts_with_reasons_and_advice_and_outcomes_close_them(
    slurm: SlurmLab, service: LiveService
) -> None:
    jobs = [slurm.sbatch(bound_to_fail(case)) for case in range(JOBS)]
    wait_until(lambda: all("submit" in service.stages(job) for job in jobs))
    for job in jobs:
        verdict = service.stages(job)["submit"]
        assert (verdict["level"], verdict["late"]) == ("warning", False)
        assert verdict["failure"]["will_fail"]
        assert next(iter(verdict["failure"]["causes"])) == "out_of_memory"
        assert verdict["failure"]["contributions"]
        assert verdict["failure"]["similar"]
        assert verdict["advice"][0]["edit"]["old"] == "#SBATCH --mem=48M"
    wait_until(lambda: all(service.actions()[job]["status"] == "done" for job in jobs))
    assert {service.actions()[job]["kind"] for job in jobs} == {"lease"}
    assert {slurm.state(job) for job in jobs} == {"PENDING"}

    service.tocsin("undo", "--all", "--note", "let them run")

    ended = slurm.wait_ended(jobs)
    assert set(ended.values()) == {"OUT_OF_MEMORY" if slurm.cgroups else "FAILED"}
    wait_until(lambda: all("end" in service.stages(job) for job in jobs))
    assert {service.job(job)["outcome"] for job in jobs} == {ended[str(jobs[0])].lower()}
    assert all(service.job(job)["intervened"] for job in jobs), "no model learns from what we touched"


def test_a_miner_in_a_burst_is_held_within_the_window_and_runs_when_its_case_is_dismissed(
    slurm: SlurmLab, service: LiveService
) -> None:
    others = [slurm.sbatch(bound_to_fail(500 + case)) for case in range(JOBS)]
    job = slurm.sbatch(MINER, user="bob")
    await_true("it is not held", lambda: reason(slurm, job) == "JobHeldAdmin", 60, lambda: reason(slurm, job))
    assert slurm.state(job) == "PENDING", "it never ran"
    slurm.run("scancel", *map(str, others))
    assert slurm.run("scontrol", "release", str(job), user="bob", check=False).returncode
    another = slurm.sbatch(f"{MINER}# on another day\n", user="bob")
    await_true(
        "it is not held", lambda: reason(slurm, another) == "JobHeldAdmin", 60, lambda: reason(slurm, another)
    )
    cases = {case["job"]: case for case in service.get("/api/v1/cases?status=open")["cases"]}
    assert len(cases) == 2, "each script has its own"
    case = cases[service.stages(job)["submit"]["job"]]
    assert (case["user"], case["operations"]) == ("bob", ["cryptomining"])
    assert service.stages(job)["submit"]["level"] == "critical"

    answer = {"answer": "dismissed", "note": "a course on blockchains"}
    status, body = service.ask(f"/api/v1/cases/{case['case']}/feedback", "POST", answer)

    assert (status, json.loads(body)["status"]) == (200, "dismissed")
    assert slurm.wait_ended([job]) == {str(job): "COMPLETED"}
    action = service.actions()[job]
    assert (action["kind"], action["status"]) == ("hold", "undone")
    wait_until(lambda: "end" in service.stages(job))
    assert service.job(job)["outcome"] == "completed"
    assert reason(slurm, another) == "JobHeldAdmin", "nobody has answered its case"
    slurm.run("scancel", str(another))
    wait_until(lambda: service.actions()[another]["status"] == "over")


def test_whatever_becomes_of_the_service_sbatch_works_jobs_run_and_nothing_is_held_for_ever(
    slurm: SlurmLab, running: Running
) -> None:
    service = running.service
    leased = [slurm.sbatch(bound_to_fail(1000 + case)) for case in range(3)]
    held = slurm.sbatch(MINER.replace("xmrig", "minerd"), user="bob")
    touched = [*leased, held]
    wait_until(lambda: all(service.actions().get(job, {}).get("status") == "done" for job in touched))

    service.process.send_signal(signal.SIGSTOP)
    await_stale(service)
    name = script(slurm, FINE)
    hung = submit_silently(slurm, name)
    service.stop(signal.SIGKILL)
    killed = submit_silently(slurm, name)

    ended = slurm.wait_ended([*leased, hung, killed])
    assert {ended[str(job)] for job in (hung, killed)} == {"COMPLETED"}
    assert reason(slurm, held) == "JobHeldAdmin"
    assert service.tocsin("expire") == "", "its time has not come"
    with closing(sqlite3.connect(service.home / "tocsin.db", isolation_level=None)) as store:
        store.execute("UPDATE actions SET expires = ? WHERE kind = 'hold'", [int(time.time())])
    assert service.tocsin("expire") == "lab: released 1 job\n"
    assert slurm.wait_ended([held]) == {str(held): "COMPLETED"}

    service = running.start(rest=True)
    jobs = [*touched, hung, killed]
    wait_until(lambda: all("end" in service.stages(job) for job in jobs))
    assert {service.actions()[job]["status"] for job in leased} == {"over"}
    assert service.actions()[held]["status"] == "expired"
    with closing(sqlite3.connect(service.home / "tocsin.db")) as store:
        given = Counter(store.execute("SELECT job, stage FROM verdicts").fetchall())
    assert set(given.values()) == {1}
    assert {stage for job, stage in given if f":{killed}@" in job} == {"submit", "start", "end"}


def await_stale(service: LiveService) -> None:
    """Until the hook takes it for hung."""
    heartbeat = service.socket.with_name("heartbeat")
    wait_until(lambda: time.time() - int(heartbeat.read_text()) > 4)


def submit_silently(slurm: SlurmLab, name: str) -> int:
    code, job, words = sbatch(slurm, name)
    assert (code, words) == (0, "")
    return int(job)
