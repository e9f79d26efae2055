"""What a job runs, not what it loads: application, domain and language by commands; and jobs that only hold nodes."""

import pytest

from tocsin.core.verdict import Screening
from tocsin.workload.screening import Screener, builtin
from tocsin.workload.what_runs import run_commands


@pytest.fixture(scope="module")
def screener() -> Screener:
    return builtin()


def screened(screener: Screener, *lines: str) -> Screening:
    return screener.screen(["\n".join(["#!/bin/bash", "#SBATCH -N 1", *lines])])[0]


@pytest.mark.parametrize(
    ("lines", "application", "language"),
    [
        (["module load python/3.10 gromacs/2023", "srun ./solver"], None, None),
        (["module load matlab", "Rscript fit.R"], None, "R"),
        (["ml Python", "conda activate thesis", "julia --project=. run.jl"], None, "julia"),
        (["export PYTHONPATH=/opt/python/lib", "pip install torch", "mpirun -n 4 ./cfd"], None, "mpi"),
        (["module load gcc openmpi", "srun gmx_mpi mdrun -deffnm md"], "gromacs", None),
        (["LMP=/opt/lammps/bin/lmp_mpi", "mpirun -np 8 $LMP -in in.melt"], "lammps", "mpi"),
        (["srun --mpi=pmix vasp_gpu"], "vasp", None),
        (["cp gromacs.tpr $TMP", "echo starting vasp", "./a.out"], None, None),
        (["python train.py --dataset cifar10 --data /data/imagenet"], None, "python"),
        (["OMP_NUM_THREADS=4 julia -t 8 heat.jl"], None, "julia"),
        (["conda run -n bio samtools sort in.bam"], "samtools", None),
        (["LMP=~/src/lmp_mpi_icc", "$LMP -in melt.lmp"], "lammps", None),
        (["dask-scheduler &", "srun dask-worker $HOST:8786"], "dask", None),
        (["srun ElmerSolver_mpi Forward.sif"], "elmer", None),
        (["python ask.py --model /models/llms/mine"], None, "python"),
        (["N=$(nvidia-smi -L | wc -l | tail -n 1) bash /opt/vllm/start.sh"], "vllm", None),
        (["RUN=`which relion_refine_mpi`", "srun $RUN --i movies.star"], "relion", None),
    ],
)
def test_application_and_language_are_those_of_the_commands(
    screener: Screener, lines: list[str], application: str | None, language: str | None
) -> None:
    found = screened(screener, *lines)
    assert (found.application, found.language) == (application, language)


@pytest.mark.parametrize(
    ("command", "application"),
    [
        ("vllm serve meta-llama/Llama-3.1-8B --port 8000", "vllm"),
        ("python -m vllm.entrypoints.openai.api_server --model mistral", "vllm"),
        ("python -m sglang.launch_server --model-path qwen", "sglang"),
        ("./llama-server -m model.gguf -ngl 99", "llama.cpp"),
        ("singularity run tgi.sif text-generation-launcher --model-id x", "text-generation-inference"),
        ("ollama serve", "ollama"),
        ("trtllm-serve /models/llama --tp_size 4", "tensorrt-llm"),
        ("lmdeploy serve api_server internlm", "lmdeploy"),
    ],
)
def test_inference_engines_are_machine_learning(screener: Screener, command: str, application: str) -> None:
    found = screened(screener, "#SBATCH --gres=gpu:1", "module load cuda", command)
    assert found.domain == "machine learning"
    assert (found.application, found.operations["ai"] >= 0.5) == (application, True)


@pytest.mark.parametrize(
    ("command", "application"),
    [
        ("singularity exec --nv /images/vllm-openai_0.9.sif python ask.py", "vllm"),
        ("apptainer run --bind /scratch:/scratch alphafold_3.sif run.sh", "alphafold"),
        ("apptainer exec pytorch_2.sif gmx mdrun -deffnm md", "gromacs"),
        ("singularity exec ubuntu_24.sif vasp_std.x", "vasp"),
    ],
)
def test_a_container_is_named_if_no_program_in_it_is(
    screener: Screener, command: str, application: str
) -> None:
    assert screened(screener, command).application == application


@pytest.mark.parametrize(
    ("lines", "application"),
    [
        (["module load anaconda", "jupyter lab --no-browser --ip=0.0.0.0"], "jupyter"),
        (["srun jupyter-notebook --port 8888 &", "wait"], "jupyter"),
        (["batchspawner-singleuser jupyterhub-singleuser"], "jupyter"),
        (["./code tunnel --accept-server-license-terms --name hpc"], "vscode"),
        (["code-server --bind-addr 0.0.0.0:8080"], "vscode"),
        (["singularity exec rstudio.sif rserver --www-port 8787"], "rstudio"),
        (["vncserver :1", "sleep infinity"], "desktop"),
        (["/usr/sbin/sshd -p 2222 -D -f ~/sshd_config"], "ssh"),
    ],
)
def test_a_job_for_a_person_at_a_screen_is_interactive(
    screener: Screener, lines: list[str], application: str
) -> None:
    found = screened(screener, *lines)
    assert (found.domain, found.application) == ("interactive", application)


@pytest.mark.parametrize(
    "lines",
    [
        ["sleep infinity"],
        ["hostname", "srun sleep 86400"],
        ["module load python", "sleep 8h"],
        ["echo ready on $(hostname)", "while true; do sleep 60; done"],
        ["tail -f /dev/null"],
        ["T=100000", "sleep $T"],
        ["IP=$(hostname -I | awk '{print $1}')", "echo ssh $USER@$IP", "while :; do sleep 3600; date; done"],
    ],
)
def test_a_job_that_only_waits_is_idle(screener: Screener, lines: list[str]) -> None:
    found = screened(screener, *lines)
    assert (found.domain, found.application) == ("idle", "sleep")


@pytest.mark.parametrize(
    "lines",
    [
        ["jupyter nbconvert --execute analysis.ipynb"],
        ["pip install jupyterlab", "python run.py"],
        ["singularity exec rstudio.sif Rscript fit.R"],
        ["./server &", "sleep infinity"],
        ["while true; do ./step; sleep 60; done"],
        ["sleep 30", "srun ./a.out"],
        ["sleep 10"],
        ["echo run: sleep infinity", "./a.out"],
    ],
)
def test_a_job_that_computes_is_neither(screener: Screener, lines: list[str]) -> None:
    assert screened(screener, *lines).domain not in ("interactive", "idle")


def test_what_stands_before_a_program_is_left_out() -> None:
    lines = [
        "A=1 B='x y' nohup srun ./a",
        "if ./check; then time ./b; fi",
        "module load x && ./c | tee log",
        "X=5",
    ]
    assert run_commands(lines) == ["srun ./a", "./check", "./b", "./c", "tee log"]


def test_a_long_line_costs_little() -> None:
    hostile = [
        "if " * 20_000,
        "A=1 " * 20_000,
        "sshd " + "-a " * 20_000,
        "sleep " + "1" * 60_000,
        "do;" * 20_000,
    ]
    assert len(run_commands(hostile)) < 100_000
