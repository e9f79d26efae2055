"""`tocsin serve` beside a real Slurm: taught the habits of its users, with policy that acts."""

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

from tests.kits.ended_jobs import MIB, job, jobs
from tests.kits.service import Process
from tests.kits.slurm_hooks import TOCSIN
from tests.services.slurm import SlurmLab
from tocsin.app.app import App
from tocsin.core.ids import parse_key
from tocsin.core.outcomes import Outcome
from tocsin.store.jobs import upsert

__all__ = [
    "BOUND_TO_FAIL",
    "MINER",
    "WINDOW",
    "LiveService",
    "bound_to_fail",
    "socket_of",
    "taught",
    "tocsin",
]

GROW = "head -c 80M /dev/zero | tail > /dev/null"
"""`tail` keeps all of a line that never ends: 80 MB, which 48 do not hold."""
BOUND_TO_FAIL = f"#!/bin/bash\n#SBATCH --job-name=grow\n#SBATCH --mem=48M\n#SBATCH --time=5\n{GROW}\n"
MINER = (
    "#!/bin/bash\n#SBATCH --mem=50M --time=5\n./xmrig -o stratum+tcp://pool.minexmr.com:4444 "
    "-u 44AFFq5kSiGBoZ4NMDwYtN18obc8AemS33DBLWs3H7otXft -p x --donate-level 1\nexit 0\n"
)
HABITS = (
    ("alice", "grow", (36, 40, 48, 60), Outcome.OUT_OF_MEMORY),
    ("alice", "grow", (160, 192, 240), Outcome.COMPLETED),
    ("alice", "plot", (40, 48, 60), Outcome.COMPLETED),
    ("bob", "tidy", (40, 50, 60), Outcome.COMPLETED),
    ("bob", "crash", (40,), Outcome.FAILED),
)
"""User, name, megabytes and how such jobs end; of each, so many are in a wave."""
COUNTS = (8, 4, 5, 5, 2)
WAVES, A_WAVE = 20, sum(COUNTS)
WINDOW = 30
"""Seconds: a busy machine needs some of them for its verdicts."""
ACTS: Mapping[str, str] = {
    "TOCSIN_POLICY__MODE": "act",
    "TOCSIN_POLICY__SCREENING_SECONDS": str(WINDOW),
    "TOCSIN_POLICY__LEASE_SECONDS": "20",
    # every job that is bound to fail is to be put off
    "TOCSIN_POLICY__CONTROL_PERCENT": "0",
    "TOCSIN_POLICY__PER_HOUR": "0",
    "TOCSIN_POLICY__PER_USER_HOUR": "0",
}


def bound_to_fail(case: int) -> str:
    """No two jobs have the very same script: each names its case."""
    return BOUND_TO_FAIL.replace("--time=5\n", f"--time=5\n# case {case}\n")


class LiveService(Process):
    """Its socket is where users reach it. With `rest` it reads and acts through slurmrestd, else by Slurm's commands."""

    def __init__(self, slurm: SlurmLab, home: Path, *, rest: bool = False, **settings: str) -> None:
        self.slurm, self._socket = slurm, socket_of(slurm)
        environ = {**slurm.env, **ACTS, "TOCSIN_SERVICE__SOCKET": str(self._socket), **settings}
        if rest:
            environ |= {
                "TOCSIN_CLUSTER__lab__REST_URL": slurm.rest_url,
                "TOCSIN_CLUSTER__lab__REST_USER": "root",
                "TOCSIN_CLUSTER__lab__REST_TOKEN_FILE": str(slurm.token_file),
            }
        self.environ = environ
        super().__init__(home, environ=environ)

    @property
    def socket(self) -> Path:
        return self._socket

    def tocsin(self, *arguments: str) -> str:
        return tocsin(self.home, self.environ, *arguments)

    def stages(self, number: int) -> dict[str, dict[str, Any]]:
        """The verdicts on a job by stage, as the API has them now."""
        status, body = self.ask(f"/api/v1/jobs/{number}/verdicts?cluster=lab")
        if status == 404:  # it was not seen yet
            return {}
        assert status == 200, body
        return {verdict["stage"]: verdict for verdict in json.loads(body)["verdicts"]}

    def job(self, number: int) -> dict[str, Any]:
        [found] = self.get(f"/api/v1/jobs/{number}?cluster=lab")["jobs"]
        return dict(found)

    def actions(self) -> dict[int, dict[str, Any]]:
        """All actions by job id, the ended ones too."""
        found = self.get("/api/v1/actions?ended=true&limit=1000")["actions"]
        return {parse_key(action["job"]).job_id: action for action in found}


def socket_of(slurm: SlurmLab) -> Path:
    return slurm.folder / "service" / "tocsin.sock"


def tocsin(home: Path, environ: Mapping[str, str], *arguments: str) -> str:
    """What a command of tocsin on this home printed."""
    done = subprocess.run(
        [*TOCSIN, "--home", str(home), *arguments],
        env={**os.environ, **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def taught(home: Path, cluster: str, **settings: str) -> None:
    """A home with some days of made-up history, by which alice's `grow` runs out of memory below 160 MB, and a model."""
    environ = {"HOME": str(home.parent), "TZ": "UTC", "PATH": os.environ["PATH"], **settings}
    with App(folder=str(home), environ=environ) as app:
        app.home.prepare()
        upsert(app.store, jobs(_history(cluster, int(time.time()))))
    tocsin(home, settings, "train", "failure", "-M", cluster, "--trials", "3")
    tocsin(home, settings, "allow", "default", "cryptomining", "listed")


def _history(cluster: str, now: int) -> Iterator[dict[str, Any]]:
    """Waves of jobs in random order, one every few hours: what ended in one is known in the next."""
    chance, number = Random(1), 0
    for wave in range(WAVES):
        begun = now - (WAVES - wave) * 4 * 3600
        for user, name, megabytes, outcome in chance.sample(HABITS, A_WAVE, counts=COUNTS):
            number += 1
            submit = begun + number % A_WAVE
            start, elapsed = submit + chance.randrange(12), chance.randrange(4)
            yield {
                **job(
                    number,
                    submit=submit,
                    user=user,
                    name=name,
                    outcome=outcome,
                    elapsed=elapsed,
                    account="research",
                    req_cpus=1,
                    req_nodes=1,
                    req_memory=chance.choice(megabytes) * MIB,
                    time_limit=300,
                ),
                "cluster": cluster,
                "start": start,
                "end": start + elapsed,
                "known_at": start + elapsed + 5,
            }
