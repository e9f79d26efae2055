"""Made-up jobs that run software for AI among the commands of other jobs, beside jobs that only set it up.

Public scripts have few or no examples of each known name. From these, models learn that the name counts, not what is around
it: a new script with llama-cli or a deep potential is AI by that alone, and `pip install torch` is not yet.
"""

import random
from collections.abc import Sequence
from typing import NamedTuple

from tocsin.workload.applications import ai_names

__all__ = ["AiJob", "ai_jobs"]

_RUNS = (
    "{name} {options}", "srun {name} {options}", "./{name} {options}", "mpirun -np {n} {name} {options}",
    "singularity exec --nv {name}.sif {name} {options}", "apptainer run {name}_latest.sif {options}", "module load {name}\n{name} {options}",
    "$HOME/{name}/run_{name}.sh {options}", "bash {name}_job.sh", "cd ~/{name}\n./run.sh {options}", "{name}/bin/{name} {options}",
    "python {name}.py {options}", "python -m {name} {options}", "python run_{name}.py {options}", "time python3 ~/{name}/main.py {options}",
    "python {name}_run.py", "Rscript {name}.R {options}", "Rscript 01_{name}_fit.R", "R CMD BATCH --no-save run_{name}.R",
    "matlab -batch \"{name}_main\"", "matlab -nodisplay -nosplash -r \"run('{name}.m'); exit\"", "julia --project {name}.jl {options}",
    "java -jar {name}.jar {options}", "java -cp 'lib/*' org.example.{name}.Main {options}", "Rscript -e 'library({name})' -e 'source(\"run.R\")'", "WORK=/data/{name}_1/run{n}\n$WORK/start.sh",
)  # fmt: skip
_OPTIONS = (
    "-i input.dat -o output", "input.json", "--input data --output results", "$INPUT $OUTPUT", "-c config.yaml", "$1 $2", "",
    "--data_dir=$DATA --out=$OUT", "-t $SLURM_CPUS_PER_TASK", "--threads {n}", "> log.txt 2>&1", "--gpu 0", "in.fasta out/",
)  # fmt: skip
_SETS_UP = (
    "pip install {name}", "pip install --user {name}", "pip3 install {name}=={n}.0", "pip show {name}", "conda install -y {name}",
    "conda create -n {name} python=3.9 {name}", "mamba install {name}", "spack install py-{name}", "module avail {name}",
    "git clone https://github.com/{name}/{name}.git", "wget https://example.org/{name}.tar.gz", "which {name}", "{name} --version",
    "singularity pull docker://{name}/{name}:latest", "python -c 'import {name}; print({name}.__version__)'",
    "python -c \"import {name}; print({name}.cuda.is_available())\"",
    "python3 -c \"import {name} as t; print(t.config.list_physical_devices('GPU'))\"",
)  # fmt: skip
_SET_UPS = 0.4
"""Share of jobs that only set software up."""
_SHORT = 0.35
"""Share of jobs of which only some lines are another's."""
_MOST_LINES = 60


class AiJob(NamedTuple):
    text: str
    among: int
    """Which of the given scripts its other lines come from."""
    runs: bool
    """Software for AI; or only sets it up."""


def ai_jobs(innocent: Sequence[str], count: int, seed: int) -> list[AiJob]:
    """So many, each between lines of one of these scripts, which are not AI; the same seed gives the same ones."""
    chance = random.Random(f"ai {seed}")  # no secret
    names = ai_names()
    found = []
    for _ in range(count):
        among = chance.randrange(len(innocent))
        runs = chance.random() >= _SET_UPS
        acts = [chance.choice(_RUNS)] if runs else chance.sample(_SETS_UP, chance.randint(1, 3))
        acts = [_filled(act, chance.choice(names), chance) for act in acts]
        lines = innocent[among].split("\n")[
            : chance.randint(2, 12) if chance.random() < _SHORT else _MOST_LINES
        ]
        place = chance.randint(0, len(lines))
        found.append(AiJob("\n".join([*lines[:place], *acts, *lines[place:]]), among, runs))
    return found


def _filled(act: str, name: str, chance: random.Random) -> str:
    act = act.replace("{options}", chance.choice(_OPTIONS))
    return act.replace("{name}", name).replace("{n}", str(chance.randint(1, 64)))
