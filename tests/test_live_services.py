"""The test services are what the other tests take them for."""

import contextlib
import http.client
import json
import socket
import stat
import subprocess
from functools import partial

import pytest

from tests import services
from tests.services.daemons import ServiceError
from tests.services.postgres import Postgres
from tests.services.slurm import SlurmLab

OUT_OF_MEMORY = "/usr/bin/python3 -c 'print(len(bytearray(300 << 20)))'"


def test_slurm_runs_jobs_to_every_end(slurm: SlurmLab) -> None:
    late = slurm.sbatch("sleep 300", "--time=1")
    again = slurm.sbatch("[ ${SLURM_RESTART_COUNT:-0} = 1 ] || sleep 300", user="bob")
    complete, fail = slurm.sbatch("true"), slurm.sbatch("exit 3")
    memory = slurm.sbatch(OUT_OF_MEMORY, "--mem=50")
    array = slurm.sbatch("exit $((SLURM_ARRAY_TASK_ID % 2))", "--array=1-3")
    het = slurm.sbatch("#!/bin/bash\n#SBATCH --mem=50\n#SBATCH hetjob\n#SBATCH --mem=60\ntrue\n")
    slurm.exhaust_time(late)
    slurm.wait_state(again, "RUNNING")
    slurm.requeue(again)

    ended = slurm.wait_ended([late, again, complete, fail, memory, array, het])

    assert ended == {
        f"{late}": "TIMEOUT",
        f"{again}": "COMPLETED",
        f"{complete}": "COMPLETED",
        f"{fail}": "FAILED",
        f"{memory}": "OUT_OF_MEMORY" if slurm.cgroups else "FAILED",
        f"{array}_1": "FAILED",
        f"{array}_2": "COMPLETED",
        f"{array}_3": "FAILED",
        f"{het}+0": "COMPLETED",
        f"{het}+1": "COMPLETED",
    }
    runs = slurm.run(
        "sacct", "-D", "-X", "-n", "-P", "-j", str(again), "-o", "State,Submit"
    ).stdout.splitlines()
    assert [run.partition("|")[0] for run in runs] == ["REQUEUED", "COMPLETED"]
    assert len(set(runs)) == 2, "a requeue gets a new submit instant"


def test_slurm_stores_scripts_but_not_the_environment(slurm: SlurmLab) -> None:
    job = slurm.sbatch("echo a line to find again")
    slurm.wait_ended([job])

    assert "echo a line to find again" in slurm.run("sacct", "-B", "-j", str(job)).stdout
    assert "PATH=" not in slurm.run("sacct", "--env-vars", "-j", str(job)).stdout


def test_slurm_counts_gpus(slurm: SlurmLab) -> None:
    job = slurm.sbatch("true", "--gres=gpu:1")

    assert slurm.wait_ended([job]) == {str(job): "COMPLETED"}
    assert "gres/gpu=1" in slurm.run("sacct", "-X", "-n", "-P", "-j", str(job), "-o", "AllocTRES").stdout


def test_slurm_leaves_a_job_beyond_its_partition_pending(slurm: SlurmLab) -> None:
    job = slurm.sbatch("true", "--partition=short", "--nodes=2", "--time=10")

    assert slurm.state(job) == "PENDING"
    slurm.run("scancel", str(job))


class SocketConnection(http.client.HTTPConnection):
    """HTTP by a unix socket."""

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.host)


def answers(connection: http.client.HTTPConnection, token: str) -> bool:
    with contextlib.closing(connection):
        headers = {"X-SLURM-USER-NAME": "root", "X-SLURM-USER-TOKEN": token}
        connection.request("GET", "http://localhost/openapi/v3", headers=headers)
        return bool(json.load(connection.getresponse())["paths"])


def test_slurmrestd_answers_by_tcp_and_by_its_socket_and_comes_back(slurm: SlurmLab) -> None:
    by_tcp = partial(http.client.HTTPConnection, slurm.rest_url.removeprefix("http://"), timeout=10)

    assert answers(by_tcp(), slurm.token)
    assert answers(SocketConnection(str(slurm.rest_socket), timeout=10), slurm.token)
    assert stat.S_IMODE(slurm.token_file.stat().st_mode) == 0o600
    slurm.stop_rest()
    with pytest.raises(OSError, match="refused"):
        answers(by_tcp(), slurm.token)
    slurm.start_rest()
    assert answers(by_tcp(), slurm.token)


def test_a_refused_command_says_who_ran_what_and_why(slurm: SlurmLab) -> None:
    with pytest.raises(ServiceError, match=r"sbatch.*as bob.*[Ii]nvalid partition"):
        slurm.sbatch("true", "--partition=nowhere", user="bob")


def test_a_lab_in_use_is_not_stopped_by_another_process(slurm: SlurmLab) -> None:
    with pytest.raises(ServiceError, match="in use by process"):
        SlurmLab.at(slurm.folder)


def test_postgres_trusts_its_socket_alone(postgres: Postgres) -> None:
    url = postgres.new_database()
    psql = services.postgres_folders()[0] / "psql"

    def count(address: str) -> subprocess.CompletedProcess[str]:
        command = [str(psql), "-X", "-w", "-A", "-t", "-c", "select count(*) from pg_database", address]
        return subprocess.run(command, capture_output=True, text=True, timeout=30)

    assert int(count(url).stdout) >= 4
    assert int(count(postgres.tcp_url(url)).stdout) >= 4
    assert "password" in count(postgres.tcp_url(url).replace(f":{postgres.password}", "")).stderr


def test_a_missing_service_is_named_with_the_command_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "_has_program", lambda name: name not in {"munged", "slurmd"})
    monkeypatch.setattr(services, "_has_plugin", lambda name: True)

    sentence = services.missing("slurm")

    assert sentence is not None
    assert "munged, slurmd not found" in sentence
    assert sentence.endswith("apt-get install --no-install-recommends munge slurmd")
