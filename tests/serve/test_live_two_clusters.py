"""One service beside two real Slurm clusters."""

from collections.abc import Iterator

import pytest

from tests.kits.service import Process, wait_until
from tests.services.slurm import SlurmLab

JOB = "#!/bin/bash\n#SBATCH --mem=50M\n#SBATCH --time=5\nsleep 1\n"
LONGEST = 300


class Second(SlurmLab):
    cluster = "second"


@pytest.fixture(scope="module")
def second(slurm: SlurmLab) -> Iterator[Second]:
    with Second(nodes=1) as lab:
        yield lab


@pytest.fixture(scope="module")
def service(slurm: SlurmLab, second: Second, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    folder = tmp_path_factory.mktemp("two")
    settings = folder / ".config" / "tocsin" / "tocsin.toml"
    settings.parent.mkdir(parents=True)
    sections = [f'[cluster.{lab.cluster}]\nslurm_conf = "{lab.conf}"\n' for lab in (slurm, second)]
    settings.write_text("\n".join([*sections, "[watch]\ninterval = 1\n"]))
    environ = {"PATH": slurm.command_env["PATH"], "XDG_CONFIG_HOME": "", "SLURM_CONF": ""}
    with Process(folder / "home", environ=environ) as process:
        yield process.ready()


def stages(service: Process, lab: SlurmLab, job: int) -> set[str]:
    status, _ = service.ask(f"/api/v1/jobs/{job}?cluster={lab.cluster}")
    if status != 200:
        return set()
    [found] = service.get(f"/api/v1/jobs/{job}?cluster={lab.cluster}")["jobs"]
    assert found["cluster"] == lab.cluster
    return {verdict["stage"] for verdict in found["verdicts"]}


def wait_for_verdicts(service: Process, lab: SlurmLab, job: int) -> None:
    wait_until(lambda: {"submit", "end"} <= stages(service, lab, job), LONGEST)


def test_one_service_follows_two_clusters_with_different_files(
    service: Process, slurm: SlurmLab, second: Second
) -> None:
    jobs = [(lab, lab.sbatch(JOB)) for lab in (slurm, second)]
    for lab, job in jobs:
        wait_for_verdicts(service, lab, job)
