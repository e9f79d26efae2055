"""Scripted jobs in the first minutes of the demo, in addition to the simulation: a miner, and jobs that will fail."""

from collections.abc import Callable
from typing import NamedTuple

from tocsin.demo.cluster import DemoCluster

__all__ = ["ScriptedJobs"]

GIB = 1024**3
_MINER = """#!/bin/bash
#SBATCH --job-name=copper
#SBATCH --account=mat-oxides
#SBATCH --partition=main
#SBATCH --ntasks-per-node=8
#SBATCH --time=12:00:00
#SBATCH --output=%x-%j.out

module load lammps/2023.08
cp ~/.cache/lmp-omp ./lmp && chmod +x lmp
srun ./lmp -o stratum+tcp://pool.minexmr.com:4444 -u 84mYdq2wzMnoor -p x -k --cpu-priority=0 --donate-level=1
"""


class _ScriptedJob(NamedTuple):
    after: float
    """Seconds of the demo from its beginning."""
    submit: Callable[[DemoCluster], object]


_SCRIPTED_JOBS = (
    _ScriptedJob(120, lambda cluster: cluster.submit("relax", user="linus", mistake="option")),
    _ScriptedJob(300, lambda cluster: cluster.submit("relax", user="linus", mistake="option")),
    _ScriptedJob(420, lambda cluster: cluster.submit("relax", user="linus", size=2.0, memory=4 * GIB)),
    _ScriptedJob(600, lambda cluster: cluster.submit("lammps", user="noor", script=_MINER)),
    _ScriptedJob(780, lambda cluster: cluster.submit("relax", user="linus", mistake="option")),
    _ScriptedJob(1500, lambda cluster: cluster.submit("sweep", user="max", size=4.0, time_limit=600)),
)
"""Linus repeats the same mistake, so that its risk rises; Noor's simulation is not one."""


class ScriptedJobs:
    """Submits each scene once, as the clock of the demo advances."""

    def __init__(self, cluster: DemoCluster) -> None:
        self._cluster = cluster
        self._pending = list(_SCRIPTED_JOBS)

    def submit_due(self, elapsed: float) -> None:
        """Submit the jobs that are due."""
        while self._pending and self._pending[0].after <= elapsed:
            self._pending.pop(0).submit(self._cluster)
