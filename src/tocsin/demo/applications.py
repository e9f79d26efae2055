"""The demo's applications: what each needs as a function of its input size, in one table."""

from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from tocsin.demo.jobs import Need

__all__ = ["APPLICATIONS", "Application", "Shape"]

GIB = 1024**3


class Shape(NamedTuple):
    """Nodes, tasks per node, CPUs per task, GPUs per node."""

    nodes: int
    tasks: int
    cpus: int
    gpus: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """Size 1 is the usual input. Needs vary log-normally with sigma `noise`."""

    name: str
    executable: str
    module: str
    input: str
    """Input file; `{}` is the name of the system studied."""
    systems: tuple[str, ...]
    shapes: tuple[Shape, ...]
    partition: str = "main"
    script: str | None
    """File in the folder `scripts`; None for interactive use."""
    options: tuple[str, str]
    """A correct option and its common misspelling."""
    fixed_memory: float
    """GiB per node, independent of the input."""
    memory: float
    """GiB over all nodes at size 1; grows with size to the power `memory_power`."""
    memory_power: float = 1.0
    memory_at_start: float = 0.8
    """Share of its peak memory allocated at the start; the rest grows linearly."""
    core_hours: float
    time_power: float = 1.0
    scaling: float = 0.9
    """Run time falls with CPUs to this power."""
    noise: float = 0.12
    busy: float = 0.9
    """Share of its CPUs' time that it computes."""
    checkpoint: int = 900
    """Seconds between file system accesses."""
    read: float = 0.5
    """GiB read at size 1."""
    write_rate: float = 1.0
    """MiB written per second."""
    steps: int = 1
    missing_exit: int = 1
    """Exit code if its input is missing."""
    burst: float = 2.0
    """Mean number of jobs submitted together."""
    tasks: tuple[int, int] = (0, 0)
    """Minimum and maximum number of array tasks."""
    by_hand: bool = False
    """The user ends it by hand."""
    steps_per_size: int = 1000
    """What `@steps` of the script is at size 1."""

    def expected(self, shape: Shape, size: float) -> Need:
        """The expected needs of a run, as an experienced user would estimate them."""
        memory = self.fixed_memory + self.memory * size**self.memory_power / shape.nodes
        cpus = shape.nodes * shape.tasks * shape.cpus
        seconds = 20 + self.core_hours * 3600 * size**self.time_power / cpus**self.scaling / max(
            1, shape.gpus
        )
        return Need(size, round(memory * GIB), round(seconds))

    def need(self, shape: Shape, size: float, rng: Random) -> Need:
        """The actual needs of this run."""
        usual = self.expected(shape, size)
        return Need(
            size,
            round(usual.memory * rng.lognormvariate(0, self.noise)),
            max(5, round(usual.seconds * rng.lognormvariate(0, 1.5 * self.noise))),
        )


APPLICATIONS = {
    application.name: application
    for application in (
        Application(
            name="mdrun",
            executable="gmx_mpi",
            module="gromacs/2024.3",
            input="{}.gro",
            systems=("lysozyme", "membrane", "ubiquitin", "micelle", "villin"),
            shapes=(Shape(1, 16, 1), Shape(1, 32, 1), Shape(2, 32, 1)),
            script="mdrun.sh",
            options=("-noappend", "-noapend"),
            fixed_memory=1.0,
            memory=6,
            memory_at_start=0.95,
            core_hours=160,
            busy=0.96,
            checkpoint=3600,
            steps=2,
            burst=2.5,
            steps_per_size=5_000_000,
        ),
        Application(
            name="relax",
            executable="vasp_std",
            module="vasp/6.4.2",
            input="structures/{}.vasp",
            systems=("perovskite", "zeolite", "graphene", "spinel", "rutile", "garnet"),
            shapes=(Shape(1, 16, 1), Shape(1, 32, 1), Shape(2, 32, 1)),
            script="relax.sh",
            options=("", "--parallel"),
            fixed_memory=4,
            memory=26,
            memory_power=1.5,
            memory_at_start=0.7,
            core_hours=110,
            time_power=1.6,
            noise=0.18,
            busy=0.92,
            checkpoint=600,
            burst=3.5,
            steps_per_size=80,
        ),
        Application(
            name="lammps",
            executable="lmp",
            module="lammps/2023.08",
            input="in.{}",
            systems=("copper", "glass", "polymer", "water"),
            shapes=(Shape(1, 8, 1), Shape(1, 16, 1)),
            script="lammps.sh",
            options=("-sf omp", "-sfomp"),
            fixed_memory=0.5,
            memory=5,
            memory_at_start=0.9,
            core_hours=50,
            busy=0.95,
            checkpoint=3600,
            burst=4,
            steps_per_size=1_000_000,
        ),
        Application(
            name="foam",
            executable="simpleFoam",
            module="openfoam/2312",
            input="constant/polyMesh/{}.msh",
            systems=("cavity", "nozzle", "wing", "manifold"),
            shapes=(Shape(1, 32, 1), Shape(2, 32, 1), Shape(4, 32, 1)),
            script="foam.sh",
            missing_exit=2,
            options=("-noFunctionObjects", "-noFunctions"),
            fixed_memory=2,
            memory=90,
            memory_at_start=0.75,
            core_hours=260,
            time_power=1.3,
            scaling=0.85,
            noise=0.16,
            busy=0.85,
            checkpoint=300,
            write_rate=8,
            steps=3,
            burst=1.6,
            steps_per_size=4000,
        ),
        Application(
            name="reduce",
            executable="python",
            module="python/3.11",
            input="tables/{}.csv",
            systems=("sensors", "surveys", "spectra", "stations", "events"),
            shapes=(Shape(1, 1, 1), Shape(1, 1, 4)),
            script="reduce.sh",
            options=("--format parquet", "--fromat parquet"),
            fixed_memory=0.4,
            memory=7,
            memory_power=1.2,
            memory_at_start=0.15,
            core_hours=0.5,
            noise=0.2,
            busy=0.45,
            checkpoint=60,
            read=6,
            write_rate=4,
            burst=5,
            steps_per_size=2_000_000,
        ),
        Application(
            name="train",
            executable="python",
            module="pytorch/2.4-cuda12",
            input="configs/{}.yaml",
            systems=("unet", "resnet", "transformer", "gnn"),
            shapes=(Shape(1, 1, 8, 1), Shape(1, 1, 8, 2), Shape(1, 1, 32, 4)),
            partition="gpu",
            script="train.sh",
            options=("--amp", "--ampp"),
            fixed_memory=4,
            memory=22,
            memory_at_start=0.6,
            core_hours=36,
            scaling=0.3,
            noise=0.2,
            busy=0.5,
            checkpoint=7200,
            read=40,
            write_rate=2,
            burst=2.2,
            steps_per_size=100_000,
        ),
        Application(
            name="sweep",
            executable="sweep",
            module="gcc/13.2",
            input="points/{}.txt",
            systems=("lattice", "epidemic", "queueing", "orbit"),
            shapes=(Shape(1, 1, 1), Shape(1, 1, 2)),
            script="sweep.sh",
            missing_exit=2,
            options=("--quiet", "--quite"),
            fixed_memory=0.3,
            memory=2.2,
            memory_power=1.4,
            memory_at_start=0.4,
            core_hours=0.8,
            noise=0.25,
            busy=0.97,
            checkpoint=120,
            burst=1,
            tasks=(10, 60),
        ),
        Application(
            name="bench",
            executable="xhpl",
            module="hpl/2.3",
            input="{}.dat",
            systems=("alltoall", "linpack", "halo"),
            shapes=(Shape(1, 32, 1), Shape(2, 32, 1), Shape(4, 32, 1)),
            script="bench.sh",
            options=("-i 200", "-itr 200"),
            fixed_memory=3,
            memory=60,
            core_hours=6,
            noise=0.05,
            busy=0.98,
            read=0.01,
            steps=4,
            burst=2,
        ),
        Application(
            name="assemble",
            executable="spades.py",
            module="spades/4.0",
            input="reads/{}_1.fastq.gz",
            systems=("moss", "beetle", "yeast", "lichen"),
            shapes=(Shape(1, 1, 16),),
            partition="bigmem",
            script="assemble.sh",
            options=("--careful", "--carefull"),
            fixed_memory=8,
            memory=190,
            memory_power=1.1,
            memory_at_start=0.1,
            core_hours=60,
            noise=0.3,
            busy=0.7,
            checkpoint=120,
            read=60,
            write_rate=12,
            burst=1.3,
            steps_per_size=120,
        ),
        Application(
            name="notebook",
            executable="jupyter",
            module="python/3.11",
            input="~/venvs/{}/bin/activate",
            systems=("analysis", "plots", "course"),
            shapes=(Shape(1, 1, 2), Shape(1, 1, 4)),
            script="notebook.sh",
            missing_exit=2,
            options=("", "--no-brower"),
            fixed_memory=0.8,
            memory=3,
            memory_power=1.3,
            memory_at_start=0.1,
            core_hours=6,
            noise=0.35,
            busy=0.06,
            checkpoint=300,
            burst=1,
            by_hand=True,
        ),
        Application(
            name="shell",
            executable="bash",
            module="",
            input="{}",
            systems=("debug",),
            shapes=(Shape(1, 1, 1), Shape(1, 1, 4)),
            partition="short",
            script=None,
            options=("", ""),
            fixed_memory=0.2,
            memory=0.8,
            core_hours=0.6,
            noise=0.5,
            busy=0.05,
            read=0.1,
            write_rate=0.05,
            burst=1,
        ),
    )
}
