"""The demo's applications: what each needs as a function of its input size, in one table."""

from dataclasses import dataclass
from random import Random
from typing import NamedTuple

__all__ = ["APPLICATIONS", "Application", "Need", "Shape"]

GIB = 1024**3


class Shape(NamedTuple):
    """Nodes, tasks per node, CPUs per task, GPUs per node."""

    nodes: int
    tasks: int
    cpus: int
    gpus: int = 0


class Need(NamedTuple):
    """The actual needs of a run: peak bytes per node, and seconds."""

    size: float
    memory: int
    seconds: int


class Program(NamedTuple):
    module: str
    input: str
    """Input file; `{}` is the name of the system studied."""
    script: str | None
    """File in the folder `scripts`; None for interactive use."""
    options: tuple[str, str]
    """A correct option and its common misspelling."""


class Memory(NamedTuple):
    fixed: float
    """GiB per node, independent of the input."""
    scaled: float
    """GiB over all nodes at size 1; grows with size to the power `power`."""
    power: float = 1.0
    at_start: float = 0.8
    """Share of the peak allocated at the start; the rest grows linearly."""


class Time(NamedTuple):
    core_hours: float
    power: float = 1.0
    scaling: float = 0.9
    """Run time falls with CPUs to this power."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """Size 1 is the usual input. Needs vary log-normally with sigma `noise`."""

    name: str
    program: Program
    systems: tuple[str, ...]
    shapes: tuple[Shape, ...]
    partition: str = "main"
    memory: Memory
    time: Time
    noise: float = 0.12
    busy: float = 0.9
    """Share of its CPUs' time spent computing."""
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
    """The value of `@steps` in the script at size 1."""

    def expected(self, shape: Shape, size: float) -> Need:
        """The expected needs of a run, as an experienced user would estimate them."""
        memory, time = self.memory, self.time
        gib = memory.fixed + memory.scaled * size**memory.power / shape.nodes
        cpus, gpus = shape.nodes * shape.tasks * shape.cpus, max(1, shape.gpus)
        seconds = 20 + time.core_hours * 3600 * size**time.power / cpus**time.scaling / gpus
        return Need(size, round(gib * GIB), round(seconds))

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
            program=Program("gromacs/2024.3", "{}.gro", "mdrun.sh", ("-noappend", "-noapend")),
            systems=("lysozyme", "membrane", "ubiquitin", "micelle", "villin"),
            shapes=(Shape(1, 16, 1), Shape(1, 32, 1), Shape(2, 32, 1)),
            memory=Memory(1.0, 6, at_start=0.95),
            time=Time(160),
            busy=0.96,
            checkpoint=3600,
            steps=2,
            burst=2.5,
            steps_per_size=5_000_000,
        ),
        Application(
            name="relax",
            program=Program("vasp/6.4.2", "structures/{}.vasp", "relax.sh", ("", "--parallel")),
            systems=("perovskite", "zeolite", "graphene", "spinel", "rutile", "garnet"),
            shapes=(Shape(1, 16, 1), Shape(1, 32, 1), Shape(2, 32, 1)),
            memory=Memory(4, 26, power=1.5, at_start=0.7),
            time=Time(110, power=1.6),
            noise=0.18,
            busy=0.92,
            checkpoint=600,
            burst=3.5,
            steps_per_size=80,
        ),
        Application(
            name="lammps",
            program=Program("lammps/2023.08", "in.{}", "lammps.sh", ("-sf omp", "-sfomp")),
            systems=("copper", "glass", "polymer", "water"),
            shapes=(Shape(1, 8, 1), Shape(1, 16, 1)),
            memory=Memory(0.5, 5, at_start=0.9),
            time=Time(50),
            busy=0.95,
            checkpoint=3600,
            burst=4,
            steps_per_size=1_000_000,
        ),
        Application(
            name="foam",
            program=Program(
                "openfoam/2312", "constant/polyMesh/{}.msh", "foam.sh", ("-noFunctionObjects", "-noFunctions")
            ),
            systems=("cavity", "nozzle", "wing", "manifold"),
            shapes=(Shape(1, 32, 1), Shape(2, 32, 1), Shape(4, 32, 1)),
            memory=Memory(2, 90, at_start=0.75),
            time=Time(260, power=1.3, scaling=0.85),
            missing_exit=2,
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
            program=Program(
                "python/3.11", "tables/{}.csv", "reduce.sh", ("--format parquet", "--fromat parquet")
            ),
            systems=("sensors", "surveys", "spectra", "stations", "events"),
            shapes=(Shape(1, 1, 1), Shape(1, 1, 4)),
            memory=Memory(0.4, 7, power=1.2, at_start=0.15),
            time=Time(0.5),
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
            program=Program("pytorch/2.4-cuda12", "configs/{}.yaml", "train.sh", ("--amp", "--ampp")),
            systems=("unet", "resnet", "transformer", "gnn"),
            shapes=(Shape(1, 1, 8, 1), Shape(1, 1, 8, 2), Shape(1, 1, 32, 4)),
            partition="gpu",
            memory=Memory(4, 22, at_start=0.6),
            time=Time(36, scaling=0.3),
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
            program=Program("gcc/13.2", "points/{}.txt", "sweep.sh", ("--quiet", "--quite")),
            systems=("lattice", "epidemic", "queueing", "orbit"),
            shapes=(Shape(1, 1, 1), Shape(1, 1, 2)),
            memory=Memory(0.3, 2.2, power=1.4, at_start=0.4),
            time=Time(0.8),
            missing_exit=2,
            noise=0.25,
            busy=0.97,
            checkpoint=120,
            burst=1,
            tasks=(10, 60),
        ),
        Application(
            name="bench",
            program=Program("hpl/2.3", "{}.dat", "bench.sh", ("-i 200", "-itr 200")),
            systems=("alltoall", "linpack", "halo"),
            shapes=(Shape(1, 32, 1), Shape(2, 32, 1), Shape(4, 32, 1)),
            memory=Memory(3, 60),
            time=Time(6),
            noise=0.05,
            busy=0.98,
            read=0.01,
            steps=4,
            burst=2,
        ),
        Application(
            name="assemble",
            program=Program("spades/4.0", "reads/{}_1.fastq.gz", "assemble.sh", ("--careful", "--carefull")),
            systems=("moss", "beetle", "yeast", "lichen"),
            shapes=(Shape(1, 1, 16),),
            partition="bigmem",
            memory=Memory(8, 190, power=1.1, at_start=0.1),
            time=Time(60),
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
            program=Program("python/3.11", "~/venvs/{}/bin/activate", "notebook.sh", ("", "--no-brower")),
            systems=("analysis", "plots", "course"),
            shapes=(Shape(1, 1, 2), Shape(1, 1, 4)),
            memory=Memory(0.8, 3, power=1.3, at_start=0.1),
            time=Time(6),
            missing_exit=2,
            noise=0.35,
            busy=0.06,
            checkpoint=300,
            burst=1,
            by_hand=True,
        ),
        Application(
            name="shell",
            program=Program("", "{}", None, ("", "")),
            systems=("debug",),
            shapes=(Shape(1, 1, 1), Shape(1, 1, 4)),
            partition="short",
            memory=Memory(0.2, 0.8),
            time=Time(0.6),
            noise=0.5,
            busy=0.05,
            read=0.1,
            write_rate=0.05,
            burst=1,
        ),
    )
}
