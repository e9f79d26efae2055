"""What the shipped models were taught beyond the public scripts: names count, and setting up, saying and hiding do not."""

import random

import pytest
from tools.workload.ai_jobs import ai_jobs
from tools.workload.disguise import Disguise
from tools.workload.science_jobs import python_jobs

from tocsin.core.verdict import SEEN_FROM
from tocsin.workload.applications import ai_names, ai_phrases, ai_programs, ai_words
from tocsin.workload.normal import commands
from tocsin.workload.screening import Screener, builtin

SCIENCE = "module load gromacs\ngmx grompp -f md.mdp -o topol.tpr\nsrun gmx_mpi mdrun -deffnm topol\ncp topol.xtc $HOME/results/\n"


@pytest.fixture(scope="module")
def screener() -> Screener:
    return builtin()


def p(screener: Screener, text: str, operation: str = "ai") -> float:
    return screener.screen([text])[0].operations[operation]


@pytest.mark.parametrize(
    "command",
    [
        "./llama-cli -m model.gguf -p hello -n 128",
        "svm-train -c 10 data.scale out.model",
        "srun colabfold_batch in.fasta out",
        "dpgen run param.json machine.json",
        "nnUNetv2_train 001 3d_fullres 0",
        "Rscript random_forest.R --args 16",
        "Rscript fit_xgboost.R data.csv",
        "java -Xmx8g -jar h2o.jar -name c1",
    ],
)
def test_a_program_of_ai_is_known_by_its_name_in_any_language(screener: Screener, command: str) -> None:
    assert p(screener, f"#!/bin/bash\n#SBATCH -c 8\n{command}\n") >= SEEN_FROM


@pytest.mark.parametrize(
    "command",
    [
        "pip install --user torch torchvision",
        "python -c 'import torch; print(torch.__version__)'",
        "Rscript fit_glm.R data.csv",
        'matlab -batch "heat_equation(64)"',
        "julia --project solve_ode.jl 100",
    ],
)
def test_to_set_it_up_or_to_speak_its_language_is_not_ai(screener: Screener, command: str) -> None:
    assert p(screener, f"#!/bin/bash\n{command}\n") < SEEN_FROM


def test_the_name_of_a_job_is_heard_alike_in_its_script_and_in_its_request(screener: Screener) -> None:
    named = screener.screen(["#!/bin/bash\n#SBATCH -J finetune_llama\n./run.sh\n"])[0]
    asked = screener.screen(["#!/bin/bash\n./run.sh\n"], requests=[{"name": "finetune_llama"}])[0]
    assert named.operations["cryptomining"] == asked.operations["cryptomining"]
    assert named.operations["ai"] > p(screener, "#!/bin/bash\n#SBATCH -J job1\n./run.sh\n")


@pytest.mark.parametrize(
    ("directive", "name"),
    [
        ("#SBATCH -J my_train", "my_train"),
        ("#SBATCH --job-name=resnet50", "resnet50"),
        ("#PBS -N flow", "flow"),
        ('#BSUB -J "flow[1-4]"', "flow[1-4]"),
        ("#$ -N flow", "flow"),
        ("#SBATCH -N 4", ""),
        ("# run it with -J flow", ""),
    ],
)
def test_the_name_is_read_from_directives_alone(directive: str, name: str) -> None:
    assert commands(f"#!/bin/sh\n{directive}\nmpirun ./a -J other\n").name == name


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("operation", ["cryptomining", "cyber"])
def test_to_hide_lines_is_not_yet_misuse(screener: Screener, share: float, operation: str) -> None:
    disguise = Disguise(7)
    for text in (SCIENCE * 3, "#!/bin/bash\n#SBATCH -J job1\n./solver\nhostname\n"):
        assert p(screener, disguise.replaced(text, share), operation) < SEEN_FROM


@pytest.mark.parametrize("saying", ["echo 'xmrig is forbidden here'", "ps aux | grep xmrig", "pkill xmrig"])
def test_a_miner_that_is_only_spoken_of_is_not_the_application(screener: Screener, saying: str) -> None:
    found = screener.screen([f"{saying}\n{SCIENCE}"])[0]
    assert (found.application, found.domain) == ("gromacs", "chemistry")
    assert screener.screen([f"{saying}\n"])[0].application is None


def test_names_stand_for_words_that_begin_so_unless_others_do() -> None:
    assert ai_words({"torch2", "jax", "boltz"}) == {"torch2", "jax", "boltz"}
    assert ai_words({"jaxb", "boltzmann", "timmean", "berthet", "llmnr"}) == set()
    assert ai_programs({"llama-cli", "svm-train", "llama-cold"}) == {"llama-cli", "svm-train"}
    assert ai_phrases("Rscript 03_random-forest.R") == {"random forest"}
    assert {"torch", "llama-cli", "jax"} <= set(ai_names())


def test_made_up_jobs_are_the_same_each_time_and_keep_the_lines_around_them() -> None:
    innocent = ["#!/bin/bash\ncd work\n./flow\n", "module load wrf\nmpirun ./wrf.exe\n"]
    jobs = ai_jobs(innocent, 50, 1)
    assert jobs == ai_jobs(innocent, 50, 1) != ai_jobs(innocent, 50, 2)
    assert {job.runs for job in jobs} == {True, False}
    for job in jobs:
        kept = [line for line in job.text.split("\n") if line in innocent[job.among].split("\n")]
        assert kept == innocent[job.among].split("\n")[: len(kept)]


def test_made_up_jobs_of_sciences_come_in_pairs() -> None:
    jobs = python_jobs(40, random.Random(0).randrange(99))
    assert [learns for _, learns in jobs] == [False, True] * 20
    assert any("Rscript" in text or "matlab" in text or "julia" in text for text, _ in jobs)
    assert not any("{" in text.replace("${", "") for text, _ in jobs)
