"""A real Slurm on one Debian host, started by hand for the tests: `with SlurmLab() as slurm: ...`."""

from tests.services.slurm.lab import SlurmLab

__all__ = ["SlurmLab"]
