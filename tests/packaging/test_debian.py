"""The Debian packages: the agent's is built and used; `make fresh` installs and removes both in a new system."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, unavailable

SCRIPTS = sorted((REPOSITORY / "packaging").glob("**/*.sh")) + sorted(
    (REPOSITORY / "packaging" / "debian").glob("tocsin*")
)


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the package tocsin-agent, unpacked."""
    if not shutil.which("dpkg-deb") or not Path("/usr/bin/python3").exists():
        unavailable("Debian packages are built with dpkg-deb and Debian's own Python; this is no Debian")
    folder = tmp_path_factory.mktemp("deb")
    build = ["bash", str(REPOSITORY / "packaging" / "build-deb.sh"), str(folder), "agent"]
    subprocess.run(build, check=True, capture_output=True, timeout=120)
    [package] = folder.glob("tocsin-agent_*_all.deb")
    subprocess.run(["dpkg-deb", "--raw-extract", str(package), str(folder / "root")], check=True, timeout=60)
    return folder / "root"


def test_the_agent_runs_from_its_package_on_nothing_but_python(agent: Path) -> None:
    command = "from tocsin.agent.main import run; run(['--help'])"
    said = subprocess.run(
        [sys.executable, "-S", "-B", "-c", command],
        env={"PYTHONPATH": str(agent / "usr/lib/tocsin-agent"), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "--listen" in said.stdout, said.stderr


def test_the_package_of_the_agent_says_what_it_needs_and_brings_its_unit(agent: Path) -> None:
    control = (agent / "DEBIAN" / "control").read_text()
    assert "Depends: python3 (>= 3.11)\n" in control
    assert "Architecture: all\n" in control
    assert (agent / "usr/lib/systemd/system/tocsin-agent.service").is_file()
    assert (agent / "usr/bin/tocsin-agent").stat().st_mode & 0o111
    assert not list(agent.rglob("__pycache__"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_script_of_the_packages_is_valid_shell(script: Path) -> None:
    shell = script.read_text().partition("\n")[0].removeprefix("#!")
    assert shell in ("/bin/sh", "/bin/bash")
    assert subprocess.run([shell, "-n", str(script)], timeout=30).returncode == 0
    assert os.access(script, os.X_OK)


def test_removing_the_package_keeps_data_and_purging_it_does_not() -> None:
    script = (REPOSITORY / "packaging" / "debian" / "tocsin.postrm").read_text()
    kept, purged = script.split('if [ "$1" = purge ]; then')
    assert "rm " not in kept
    assert "/var/lib/tocsin" in purged
