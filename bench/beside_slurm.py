"""The service beside a real Slurm: seconds until a job that is bound to fail has its verdict, and until a miner is held.

The policy acts, so every one of these jobs is put off, too, by the thread that gives the verdicts; leases are as long as by
default. Times count from the return of sbatch until the verdict arrives as an event of the API.
`python -m bench.beside_slurm JOBS [rest]` prints a short form.
"""

import json
import os
import signal
import statistics
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.kits.live_service import MINER, WINDOW, LiveService, bound_to_fail, socket_of, taught
from tests.kits.service import wait_until
from tests.kits.slurm_hooks import hooks_installed
from tests.services import missing
from tests.services.daemons import await_true
from tests.services.postgres import Postgres
from tests.services.slurm import SlurmLab

from tocsin.core.ids import parse_key
from tocsin.core.settings import PolicySettings

__all__ = ["run", "survey"]

JOBS, MINERS = 200, 10
EVERY = 0.5
"""Seconds between two submissions."""


def run() -> dict[str, Any]:
    if sentence := missing("slurm") or missing("lightgbm"):
        return {"missing": sentence}
    with SlurmLab() as slurm:
        found = {"slurm": slurm.run("scontrol", "--version").stdout.split()[-1], "jobs": JOBS}
        found["commands"] = survey(slurm, JOBS, MINERS)
        found["slurmrestd"] = survey(slurm, JOBS, MINERS, rest=True)
        if not missing("postgres"):
            with Postgres() as postgres:
                settings = {"TOCSIN_STORE__URL": postgres.new_database()}
                found["postgresql"] = survey(slurm, JOBS, MINERS, **settings)
    return found


def survey(slurm: SlurmLab, jobs: int, miners: int, *, rest: bool = False, **settings: str) -> dict[str, Any]:
    """With Slurm's commands or slurmrestd, and the store that the settings name."""
    # The tests' own leases are short, to be seen to run out.
    settings = {"TOCSIN_POLICY__LEASE_SECONDS": str(PolicySettings().lease_seconds), **settings}
    with tempfile.TemporaryDirectory(prefix="tocsin-beside-") as folder:
        home = Path(folder) / "home"
        taught(home, slurm.cluster, **settings)
        with hooks_installed(slurm, home, socket_of(slurm), window=WINDOW):
            service = LiveService(slurm, home, rest=rest, **settings)
            try:
                service.ready()
                return {**_verdicts(slurm, service, jobs), **_holds(slurm, service, miners)}
            finally:
                service.stop(signal.SIGKILL)
                slurm.run("scancel", "-u", "alice")
                slurm.run("scancel", "-u", "bob")


def _verdicts(slurm: SlurmLab, service: LiveService, number: int) -> dict[str, Any]:
    arrived: dict[int, float] = {}

    def listen() -> None:
        with suppress(OSError, ValueError):  # it ends with the service
            for event in service.events():
                verdict = json.loads(event["data"])
                if event["event"] == "verdict" and verdict["stage"] == "submit":
                    arrived.setdefault(parse_key(verdict["job"]).job_id, time.time())

    threading.Thread(target=listen, daemon=True).start()
    wait_until(lambda: b"tocsin_event_clients 1.0" in service.ask("/metrics")[1])
    submitted: dict[int, float] = {}
    cpu = _cpu_seconds(service)
    for case in range(number):
        due = time.monotonic() + EVERY
        job = slurm.sbatch(bound_to_fail(case))
        submitted[job] = time.time()
        time.sleep(max(0.0, due - time.monotonic()))
    wait_until(lambda: submitted.keys() <= arrived.keys(), 600)
    cpu = _cpu_seconds(service) - cpu
    load = os.getloadavg()
    seconds = sorted(arrived[job] - submitted[job] for job in submitted)
    found = [service.stages(job)["submit"] for job in submitted]
    return {
        "p50_seconds": round(statistics.median(seconds), 2),
        "p95_seconds": round(statistics.quantiles(seconds, n=20)[-1], 2),
        "most_seconds": round(seconds[-1], 2),
        "without_reasons": sum(not verdict["failure"]["contributions"] for verdict in found),
        "without_advice": sum(not verdict["advice"] for verdict in found),
        "late": sum(verdict["late"] for verdict in found),
        "cpu_seconds_per_job": round(cpu / number, 3),
        "load": [round(each, 1) for each in load],
    }


def _cpu_seconds(service: LiveService) -> float:
    """What the service and the commands that it ran have computed so far."""
    fields = Path(f"/proc/{service.process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _holds(slurm: SlurmLab, service: LiveService, number: int) -> dict[str, Any]:
    """Miners that were held before their window was over, and how long that took."""
    seconds = []
    for case in range(number):
        job = slurm.sbatch(f"{MINER}# case {case}\n", user="bob")
        begun = time.monotonic()

        def is_held(job: int = job) -> bool:
            shown = slurm.run("squeue", "-h", "-t", "all", "-j", str(job), "-o", "%r %T").stdout.split()
            return shown[0] == "JobHeldAdmin" or shown[1] != "PENDING"

        await_true(f"job {job} is neither held nor started", is_held, 120)
        if slurm.state(job) == "PENDING":
            seconds.append(time.monotonic() - begun)
    cases = service.get("/api/v1/cases?status=open")["cases"]
    return {
        "miners": number,
        "miners_held": len(seconds),
        "hold_median_seconds": round(statistics.median(seconds), 2) if seconds else None,
        "hold_most_seconds": round(max(seconds), 2) if seconds else None,
        "cases": len(cases),
    }


if __name__ == "__main__":
    with SlurmLab() as lab:
        print(json.dumps(survey(lab, int(sys.argv[1]), 3, rest="rest" in sys.argv), indent=1))
