"""The command line next to a real Slurm: doctor, import by sacct and by slurmrestd, check."""

import json
import time
from pathlib import Path

import pytest

from tests.kits.command_line import Tocsin
from tests.services.slurm import SlurmLab

SCRIPT = "#!/bin/bash\n#SBATCH --job-name=live\n#SBATCH --mem={memory}\n#SBATCH --time={minutes}\nsleep 1\n"


@pytest.fixture
def live(tocsin: Tocsin, slurm: SlurmLab, monkeypatch: pytest.MonkeyPatch) -> Tocsin:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    return tocsin


@pytest.fixture
def by_rest(live: Tocsin, slurm: SlurmLab, tmp_path: Path) -> tuple[str, str]:
    """The option that names settings with slurmrestd in them."""
    settings = tmp_path / "rest.toml"
    settings.write_text(
        f'[cluster.lab]\nrest_url = "{slurm.rest_url}"\nrest_user = "root"\nrest_token_file = "{slurm.token_file}"\n'
    )
    return "--config", str(settings)


def test_the_doctor_finds_every_link_fine(live: Tocsin, by_rest: tuple[str, str]) -> None:
    said = live(*by_rest, "doctor", "--json")
    links = {finding["link"]: finding["status"] for finding in json.loads(said.out)["links"]}
    assert said.code == 0, said.out
    assert links["slurmctld"] == links["accounting"] == links["script storage"] == links["rest lab"] == "fine"


def test_a_wrong_token_is_a_broken_link(
    live: Tocsin, slurm: SlurmLab, by_rest: tuple[str, str], tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.jwt"
    wrong.write_text(slurm.token[:-6] + "AAAAAA")
    wrong.chmod(0o600)
    settings = Path(by_rest[1])
    settings.write_text(settings.read_text().replace(str(slurm.token_file), str(wrong)))
    said = live(*by_rest, "doctor", "--json")
    links = {finding["link"]: finding for finding in json.loads(said.out)["links"]}
    assert said.code == 1
    assert links["rest lab"]["status"] == "broken"
    assert slurm.token[:20] not in said.out + said.err


def test_a_live_cluster_is_imported_alike_by_sacct_and_by_slurmrestd(
    live: Tocsin, slurm: SlurmLab, by_rest: tuple[str, str], tmp_path: Path
) -> None:
    job = slurm.sbatch(SCRIPT.format(memory="50M", minutes=5))
    slurm.wait_ended([job])
    since = ("-S", str(int(time.time()) - 600))
    assert json.loads(live("import", "slurm", "-M", "lab", *since, "--json").out)["new"] >= 1
    by_sacct = json.loads(live("job", job, "--json").out)["jobs"][0]
    assert by_sacct["outcome"] == "completed"
    elsewhere = ("--home", str(tmp_path / "other"), *by_rest)
    live(*elsewhere, "import", "slurm", *since)
    by_slurmrestd = json.loads(live(*elsewhere, "job", job, "--json").out)["jobs"][0]
    for name in (
        "job",
        "name",
        "user",
        "account",
        "partition",
        "submit",
        "start",
        "end",
        "outcome",
        "req_memory",
    ):
        assert by_sacct[name] == by_slurmrestd[name], name


def test_a_second_import_goes_on_where_the_first_ended(live: Tocsin, slurm: SlurmLab) -> None:
    live("import", "slurm", "-M", "lab")
    job = slurm.sbatch(SCRIPT.format(memory="50M", minutes=5))
    slurm.wait_ended([job])
    live("import", "slurm", "-M", "lab")
    assert json.loads(live("job", job, "--json").out)["jobs"][0]["outcome"] == "completed"


@pytest.mark.parametrize(
    ("memory", "minutes", "line"),
    [("900G", "5", "#SBATCH --mem=900G"), ("50M", "20000", "#SBATCH --time=20000")],
)
def test_an_impossible_request_is_held_against_the_real_limits(
    live: Tocsin, tmp_path: Path, memory: str, minutes: str, line: str
) -> None:
    path = tmp_path / "job.sh"
    path.write_text(SCRIPT.format(memory=memory, minutes=minutes))
    said = live("check", path, "-u", "alice")
    assert said.code == 2, said.out
    assert f"-{line}" in said.out
    path.write_text(SCRIPT.format(memory="50M", minutes=5))
    said = live("check", path, "-u", "alice", "--json")
    assert json.loads(said.out)["findings"] == []
    document = json.loads(said.out)
    assert set(document["missing"]) <= {"failure.history"}
    assert 0 < document["failure"]["probability"] < 1, "the shipped model has one from the first job on"
    assert said.code == 0
