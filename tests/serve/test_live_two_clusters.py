"""One service beside two real Slurm clusters, of which one loses its slurmctld."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kits.service import Process, wait_until
from tests.services.slurm import SlurmLab
from tests.services.slurm.backup import LabWithBackup

JOB = "#!/bin/bash\n#SBATCH --mem=50M\n#SBATCH --time=5\nsleep 1\n"


@pytest.fixture(scope="module")
def second(slurm: SlurmLab) -> Iterator[LabWithBackup]:
    with LabWithBackup() as lab:
        yield lab


@pytest.fixture
def service(slurm: SlurmLab, second: LabWithBackup, tmp_path: Path) -> Iterator[Process]:
    settings = tmp_path / ".config" / "tocsin" / "tocsin.toml"
    settings.parent.mkdir(parents=True)
    sections = [f'[cluster.{lab.cluster}]\nslurm_conf = "{lab.conf}"\n' for lab in (slurm, second)]
    settings.write_text("\n".join([*sections, "[watch]\ninterval = 1\n"]))
    environ = {"PATH": slurm.command_env["PATH"], "XDG_CONFIG_HOME": "", "SLURM_CONF": ""}
    with Process(tmp_path / "home", environ=environ) as process:
        yield process


def stages(service: Process, lab: SlurmLab, job: int) -> set[str]:
    status, _ = service.ask(f"/api/v1/jobs/{job}?cluster={lab.cluster}")
    if status != 200:
        return set()
    [found] = service.get(f"/api/v1/jobs/{job}?cluster={lab.cluster}")["jobs"]
    assert found["cluster"] == lab.cluster
    return {verdict["stage"] for verdict in found["verdicts"]}


def test_one_service_follows_two_clusters_and_a_backup_slurmctld(
    service: Process, slurm: SlurmLab, second: LabWithBackup
) -> None:
    service.ready()
    jobs = [(lab, lab.sbatch(JOB)) for lab in (slurm, second)]
    for lab, job in jobs:
        wait_until(lambda lab=lab, job=job: {"submit", "end"} <= stages(service, lab, job))

    second.start_backup()
    waiting = second.sbatch(JOB, "--begin=now+2")
    second.fail_over()
    wait_until(lambda: b"second" in service.ask("/readyz")[1])
    first = slurm.sbatch(JOB)
    wait_until(lambda: {"submit", "end"} <= stages(service, slurm, first))

    service.ready()  # the backup has taken over
    later = second.sbatch(JOB)
    for job in (waiting, later):
        wait_until(lambda job=job: {"submit", "end"} <= stages(service, second, job))
