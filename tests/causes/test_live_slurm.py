"""A real Slurm: jobs that really fail, and what `tocsin explain` says of them."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.services.slurm import SlurmLab

TOCSIN = [sys.executable, "-c", "from tocsin.cli.main import run; run()"]
JOBS = {
    # name: (body, kind)
    "command": ("srun nosuchprogram --input a", "missing_command"),
    "file": ("set -e\ncat input.dat\necho never", "missing_file"),
    "python": ("python3 -c \"print('epoch 1'); {}['loss']\"", "python_exception"),
    "package": ("python3 -c 'import no_such_package'", "missing_package"),
    "segfault": ("srun python3 -c 'import os; os.kill(os.getpid(), 11)'", "segfault"),
    "abort": ("python3 -c 'import os; os.abort()'", "abort"),
    "silent": ("echo working; exit 3", "unknown"),
    "fine": ("cat nothere || true\necho done", None),
}


@pytest.fixture(scope="module")
def explained(
    slurm: SlurmLab, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, dict[str, Any]]]:
    """What is said of each job, by its name, and of one that runs until its time limit."""
    home = tmp_path_factory.mktemp("home")
    # alice must be able to enter it, which she is not in the folders of pytest
    with tempfile.TemporaryDirectory(prefix="tocsin-causes-") as folder:
        yield _explained(slurm, home, folder)


def _explained(slurm: SlurmLab, home: Path, folder: str) -> dict[str, dict[str, Any]]:
    Path(folder).chmod(0o777)
    environment = {**os.environ, **slurm.command_env, "TOCSIN_HOME": str(home), "HOME": str(home)}

    def tocsin(*arguments: object) -> str:
        done = subprocess.run(
            [*TOCSIN, *map(str, arguments)], env=environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    tocsin("watch", "--once")
    numbers = {}
    for name, (body, _) in JOBS.items():
        script = Path(folder, f"{name}.sh")
        script.write_text(f"#!/bin/bash\n#SBATCH -o {folder}/%x-%j.log\n#SBATCH --mem=50\n{body}\n")
        numbers[name] = slurm.sbatch(script, f"--job-name={name}", f"--chdir={folder}")
    script = Path(folder, "long.sh")
    script.write_text(f"#!/bin/bash\n#SBATCH -o {folder}/%x-%j.log\n#SBATCH --mem=50\nsleep 600\n")
    numbers["long"] = slurm.sbatch(script, "--job-name=long", f"--chdir={folder}")
    slurm.wait_state(numbers["long"], "RUNNING")
    slurm.exhaust_time(numbers["long"])
    slurm.wait_ended(numbers.values(), timeout=180)
    for _ in range(3):
        tocsin("watch", "--once")
    return {name: json.loads(tocsin("explain", number, "--json")) for name, number in numbers.items()}


@pytest.mark.parametrize(("name", "kind"), [(n, k) for n, (_, k) in JOBS.items() if n != "fine"])
def test_the_cause_of_a_real_failure_is_named(explained: dict[str, Any], name: str, kind: str) -> None:
    cause = explained[name]["cause"]
    assert cause is not None, explained[name]["missing"]
    assert cause["kind"] == kind, cause


def test_a_job_over_its_time_limit_says_so(explained: dict[str, Any]) -> None:
    assert explained["long"]["cause"]["kind"] == "walltime"


def test_a_job_that_completed_has_no_cause(explained: dict[str, Any]) -> None:
    assert explained["fine"]["cause"] is None
