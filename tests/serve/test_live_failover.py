"""A real Slurm whose first slurmctld dies: the backup takes over, and the service goes on."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.conftest import unavailable
from tests.kits.service import Process, wait_until
from tests.services import missing
from tests.services.slurm.backup import LabWithBackup
from tocsin.sources.rest import SlurmRest
from tocsin.sources.rest_token import TokenFile
from tocsin.sources.slurm_cluster import SlurmCluster

JOB = "#!/bin/bash\n#SBATCH --mem=50M\n#SBATCH --time=5\nsleep 1\n"
LONGEST = 300


@pytest.fixture(scope="module")
def lab() -> Iterator[LabWithBackup]:
    if sentence := missing("slurm"):
        unavailable(sentence)
    with LabWithBackup() as lab:
        yield lab


@pytest.fixture(scope="module")
def service(lab: LabWithBackup, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    folder = tmp_path_factory.mktemp("failover")
    environ = {
        "PATH": lab.command_env["PATH"],
        "SLURM_CONF": "",
        f"TOCSIN_CLUSTER__{lab.cluster}__SLURM_CONF": str(lab.conf),
        "TOCSIN_WATCH__INTERVAL": "1",
    }
    with Process(folder / "home", environ=environ) as process:
        yield process.ready()


def stages(service: Process, lab: LabWithBackup, job: int) -> Counter[str]:
    """How many verdicts a job has at each stage."""
    if service.ask(f"/api/v1/jobs/{job}?cluster={lab.cluster}")[0] != 200:
        return Counter()
    [found] = service.get(f"/api/v1/jobs/{job}?cluster={lab.cluster}")["jobs"]
    return Counter(verdict["stage"] for verdict in found["verdicts"])


def test_a_backup_slurmctld_takes_over_and_no_job_is_missed(service: Process, lab: LabWithBackup) -> None:
    lab.start_backup()
    waiting = lab.sbatch(JOB, "--hold")
    wait_until(lambda: stages(service, lab, waiting) == {"submit": 1}, LONGEST)
    lab.await_saved(waiting)

    lab.fail_over()

    later = lab.sbatch(JOB)
    lab.run("scontrol", "release", str(waiting))
    ended = {"submit": 1, "start": 1, "end": 1}
    for job in (waiting, later):
        wait_until(lambda job=job: stages(service, lab, job) == ended, LONGEST)
    service.ready(LONGEST)
    with SlurmRest(lab.rest_url, user="root", token=TokenFile(lab.token_file)) as rest:
        found = SlurmCluster(lab.cluster, rest=rest).queue()
    assert {waiting, later} <= set(found["job_id"]), "slurmrestd asks the backup, too"
