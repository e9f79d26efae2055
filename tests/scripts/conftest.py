"""The real sbatch as a judge of what we read."""

import shutil

import pytest

from tests.conftest import unavailable


@pytest.fixture(scope="session")
def sbatch() -> None:
    if shutil.which("sbatch") is None:
        unavailable("there is no sbatch to compare with; on Debian, as root: apt-get install slurm-client")
