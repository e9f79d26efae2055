"""The page "Install next to Slurm in ten minutes", run line by line against a real Slurm.

Its first step installs a package, which `make fresh` does in a new system; here tocsin is the one under test. There is no
systemd: what `systemctl` would start is started from the units by the test, as the user that they name.
"""

import json
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.kits.service import wait_until
from tests.packaging.test_units import PACKAGING, settings
from tests.services.slurm import SlurmLab
from tests.services.slurm.lab import make_user

PAGE = (REPOSITORY / "docs" / "next-to-slurm.md").read_text()
USER = "tocsin"
RUN = "from tocsin.cli.main import run; run()"
JOB = "#!/bin/bash\n#SBATCH --job-name=first\n#SBATCH --mem=50M\n#SBATCH --time=5\nsleep 1\n"


def steps() -> list[str]:
    """The commands of steps 2 to 6."""
    text = PAGE.partition("\n## 2. ")[2].partition("\n## Several clusters")[0]
    blocks = re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


class Host:
    """A host beside the lab, with a home folder for the service."""

    def __init__(self, slurm: SlurmLab, folder: Path) -> None:
        self.folder, self.running = folder, list[subprocess.Popen[bytes]]()
        make_user(USER)
        folder.chmod(0o755)
        (folder / "home").mkdir(mode=0o750)
        shutil.chown(folder / "home", USER, USER)
        (folder / "bin").mkdir()
        command = folder / "bin" / "tocsin"
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c "{RUN}" "$@"\n')
        command.chmod(0o755)
        self.env = {
            **slurm.command_env,
            "PATH": f"{folder / 'bin'}:{slurm.command_env['PATH']}",
            "HOME": str(folder),
            "TOCSIN_HOME": str(folder / "home"),
            "TOCSIN_SERVICE__LISTEN": "127.0.0.1:0",
            "NOTIFY_SOCKET": str(folder / "notify"),
        }
        # Its user must reach tocsin's own files, and the checkout may lie in root's home.
        shutil.copytree(REPOSITORY / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
        self.env["PYTHONPATH"] = str(folder / "src")
        (folder / "job.sh").write_text(JOB)
        self.notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notified.bind(self.env["NOTIFY_SOCKET"])
        (folder / "notify").chmod(0o666)
        self.notified.settimeout(180)

    def as_user(self) -> list[str]:
        """Prefix of a command that runs as the service's user, without privileges.

        It may read all files, for the Python under test and its libraries may lie in root's home.
        """
        reading = "-all,+dac_read_search"
        return ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups", "--no-new-privs",
                "--inh-caps", reading, "--ambient-caps", reading, "--bounding-set", reading]  # fmt: skip

    def run(self, line: str) -> "subprocess.CompletedProcess[str]":
        words = shlex.split(line)
        if words[:3] == ["runuser", "-u", USER]:
            words = [*self.as_user(), *words[4:]]
        return subprocess.run(
            words, env=self.env, cwd=self.folder, capture_output=True, text=True, timeout=300
        )

    def start(self, unit: str) -> None:
        """A service, or what a timer would run now."""
        service = PACKAGING / "systemd" / f"{unit.partition('.')[0]}.service"
        for key, value in settings(service, "Service"):
            if key != "ExecStart":
                continue
            command = [*self.as_user(), *shlex.split(value.removeprefix("-"))]
            command[command.index("/opt/tocsin/bin/tocsin")] = str(self.folder / "bin" / "tocsin")
            with (self.folder / f"{unit}.log").open("ab") as log:
                process = subprocess.Popen(
                    command, env=self.env, cwd=self.folder, stdout=log, stderr=subprocess.STDOUT
                )
            self.running.append(process)
            if unit.endswith(".service"):
                while self.notified.recv(100) != b"READY=1":
                    assert process.poll() is None, self.log(unit)
            else:
                assert process.wait(300) == 0 or value.startswith("-"), self.log(unit)

    def log(self, unit: str) -> str:
        return (self.folder / f"{unit}.log").read_text()

    def close(self) -> None:
        for process in self.running:
            if process.poll() is None:
                process.terminate()
                process.wait(60)
        self.notified.close()


@pytest.fixture
def host(slurm: SlurmLab) -> Iterator[Host]:
    folder = Path(tempfile.mkdtemp(prefix="tocsin-host-", dir="/tmp"))  # another user must reach it
    made = Host(slurm, folder)
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(folder)


def test_the_page_leads_from_nothing_to_verdicts_on_real_jobs(host: Host, slurm: SlurmLab) -> None:
    slurm.wait_ended([slurm.sbatch(JOB), slurm.sbatch("exit 3")])
    done = {}
    for line in steps():
        if line.startswith("systemctl enable --now "):
            for unit in line.split()[3:]:
                host.start(unit)
            continue
        said = done[line] = host.run(line)
        assert "Traceback" not in said.stderr, said.stderr
        if " train " in line or " backtest " in line:
            assert said.returncode == 0 or "\ntocsin: " in f"\n{said.stderr}", (
                line,
                said,
            )  # two jobs are few
        elif "check" in line:
            assert said.returncode in (0, 1), (line, said)  # the shipped model looked at it
        else:
            assert said.returncode == 0, (line, said)
    doctor = done["runuser -u tocsin -- tocsin doctor"].stdout
    assert f"user {USER} may read them" in doctor, "an Operator reads the scripts of others"
    imported = json.loads(host.run("tocsin jobs -S now-1hour --json").stdout)["jobs"]
    assert {"completed", "failed"} <= {job["outcome"] for job in imported}

    job = slurm.sbatch(JOB)

    def verdicts() -> list[str]:
        said = host.run(f"tocsin job {job} --json")
        return [
            each["stage"]
            for one in json.loads(said.stdout or '{"jobs": []}')["jobs"]
            for each in one["verdicts"]
        ]

    wait_until(lambda: {"submit", "end"} <= set(verdicts()), 180)
    assert (host.folder / "home" / "tocsin.db").owner() == USER
