"""Programs that tocsin does not know are named, so that nobody takes "no known operation" for a statement about them."""

import pytest

from tocsin.workload.screening import Screener, builtin


@pytest.fixture(scope="module")
def screener() -> Screener:
    return builtin()


@pytest.mark.parametrize(
    ("command", "unknown"),
    [
        ("./relax -s 4", ["./relax"]),
        ("srun -n 4 ./relax water.in", ["./relax"]),
        ("srun --mpi pmi2 -p main ./relax", ["./relax"]),
        ("srun --chdir /scratch/run -o logs/out ./relax", ["./relax"]),
        ("mpirun -hostfile /tmp/hosts -wdir /scratch/run -np 8 ./relax", ["./relax"]),
        ("env -i ./relax", ["./relax"]),
        ("OMP_NUM_THREADS=$THREADS LD_PRELOAD=$PWD/timer.so ./relax", ["./relax"]),
        ("nohup relax --last &", ["relax"]),
        ("function solve { relax 1; }\nsolve", ["relax"]),
        ("solve() { relax 1; }\nsolve", ["relax"]),
        ("nice -n 5 prepare; srun relax", ["prepare", "relax"]),
        ("mpirun -np 8 relax", ["relax"]),
        ("time nice -n 5 /opt/group/bin/relax", ["/opt/group/bin/relax"]),
        ("B=$HOME/bin\n$B/relax", ["$HOME/bin/relax"]),
        ("./relax a\n./relax b\n../tools/shrink c", ["./relax", "../tools/shrink"]),
        ("export PATH=$PATH:/opt/group/bin\nrelax --last", ["relax"]),
        ("if prepare; then THREADS=4 relax | tee log; fi", ["prepare", "relax"]),
        ("cp relax relax@node\n./relax@node", ["./relax@node"]),
        ("envloader exec . ./relax", ["envloader"]),
    ],
)
def test_unknown_programs_are_named_once_as_they_are_written(
    screener: Screener, command: str, unknown: list[str]
) -> None:
    [found] = screener.screen([f"#!/bin/bash\n#SBATCH -n 8\nmodule load gcc\n{command}\n"])
    assert found.own_programs == unknown


@pytest.mark.parametrize(
    "command",
    [
        "srun lmp -in water.in",  # in the catalogue
        "srun ./gmx mdrun",
        "python train.py",
        "./steps/prepare.sh",  # text, which can be followed
        "/usr/bin/time -v make all",
        "cp in/water.dat out/",
        "solve() { echo no program; }\nsolve",
        "function solve {\n echo no program\n}\nsolve",
        "cat > input <<END\nrelax all\nEND",
        "echo 'relax all'  # relax",
        "gcc -O3 relax.c",
        "castep.mpi water",
        "$SOLVER input",  # set elsewhere
        "srun $OPTIONS",
        "cat logs/run.log",
    ],
)
def test_known_programs_files_and_functions_are_not(screener: Screener, command: str) -> None:
    [found] = screener.screen([f"#!/bin/bash\n{command}\n"])
    assert found.own_programs == []


def test_lines_of_other_languages_are_no_programs(screener: Screener) -> None:
    [found] = screener.screen(["#!/usr/bin/env Rscript\nlibrary(relax)\nrelax (1)\n"])
    assert found.own_programs == []
