"""Made-up jobs of many sciences, most in Python, beside jobs that learn, alike but for what they do.

Of Python jobs in public repositories nearly all that are known for sure are AI; without these, Python itself would
speak for it.
"""

import random

__all__ = ["python_jobs"]

_ABOUT = tuple(
    """galaxy star orbit comet pulsar plasma tokamak beam muon detector seismic fault glacier ocean tide rain river soil forest
    fire snow aerosol cloud genome variant protein ligand membrane cell neuron brain heart gait epidemic vaccine hospital
    traffic bus census survey auction market bond option tax lattice phonon crystal polymer colloid alloy grain reactor turbine
    airfoil wing bridge pipe flame spray battery antenna laser lens radar sonar map mesh grid graph tree text corpus archive log
    table event photo image film sound music game chess puzzle prime matrix wave heat flow shock vortex spin quantum walker agent
    swarm queue network road power wind solar""".split()  # noqa: SIM905  # a list of words reads best so
)
_DOES = tuple(
    """simulate fit reduce analyse analyze plot solve merge sort extract sweep scan integrate resample clean convert count
    optimise optimize calibrate bin stack compute make build process export import load download fetch filter match search
    compare summarise render track interpolate propagate relax minimise evolve sample estimate""".split()  # noqa: SIM905  # a list of words reads best so
)
_OPTIONS = (
    "--steps {n}", "--seed {s}", "--config {about}.yaml", "-c config.yml", "--iterations {n}", "--iters {n}", "--iter {n}", "--tol 1e-{s}",
    "--tolerance 1e-{s}", "--dt 0.0{s}", "--nx {n}", "--ny {n}", "--size {n}", "--workers {k}", "--threads {k}", "--nprocs {k}",
    "-j {k}", "--n-jobs {k}", "--cores $SLURM_CPUS_PER_TASK", "--input {about}.csv", "--input data/{about}.h5",
    "--output out/{about}.nc", "-o {about}.json", "-i {about}.dat", "--verbose", "--resume", "--restart", "--checkpoint state.npz",
    "--checkpoint-every {n}", "--model {about}.npy", "--model {about}.json", "--chunk {n}", "--chunksize {n}", "--batch-size {n}",
    "--batch {k}", "--samples {n}", "--burnin {n}", "--chains {k}", "--warmup {n}", "--bootstrap {n}", "--resamples {n}", "--grid {n}",
    "--temperature 0.{s}", "--pressure {s}.0", "--year 19{k}", "--start 2001-01-01", "--end 2009-12-31", "--bbox {k} {s} {k} {s}",
    "--format csv", "--overwrite", "--runs {n}", "--index $SLURM_ARRAY_TASK_ID", "$SLURM_ARRAY_TASK_ID", "$1 $2", "--task $PBS_ARRAYID",
    "--level {s}", "--order {s}", "--method newton", "--solver cg", "--params params.json", "--degree {s}", "--window {k}",
    "--scale 0.{s}", "--threshold 0.{s}", "--max-iter {n}", "--database results.sqlite", "--table {about}", "--host localhost", "--plot",
    "--log-level info", "--outdir results", "--datadir $DATA", "--mode full", "--test", "--validate", "--features length,mass", "--parallel",
)  # fmt: skip
_ON_GPU = (
    "--device gpu",
    "--device cuda",
    "--gpu",
    "--gpu 0",
    "--platform CUDA",
    "--use-gpu",
    "--backend cupy",
    "--gpus 1",
    "",
    "",
    "",
    "",
)
_TRAINS = ("train", "training", "finetune", "fine_tune", "pretrain", "train_net", "trainer")
"""Names that show what the program does."""
_LEARNS = (
    *_TRAINS,
    "main",
    "run",
    "run_exp",
    "experiment",
    "eval",
    "evaluate",
    "test",
    "predict",
    "infer",
    "inference",
)
_LEARNING = (
    "--epochs {n}", "--num-epochs {n}", "--lr 1e-{s}", "--lr 0.00{s}", "--learning-rate {s}e-4", "--learning_rate 0.0{s}",
    "--optimizer adam", "--optim sgd --momentum 0.9", "--weight-decay 1e-{s}", "--dropout 0.{s}", "--hidden-size {n}",
    "--embedding-dim {n}", "--num-layers {k} --hidden_dim {n}", "--pretrained", "--ckpt runs/{about}.ckpt", "--weights {about}.pt",
    "--early-stopping", "--fp16", "--num-classes {k}", "--backbone unet", "--encoder lstm", "--train-split 0.{s} --val-split 0.{s}",
    "--loss cross_entropy", "--dataset {about}", "--dataset {about} --batch-size {k}", "--arch cnn", "--model transformer",
    "--policy ppo --env-steps {n}", "--classifier forest --folds {s}",
)  # fmt: skip
_AROUND = (
    "module load python\nsource venv/bin/activate", "module load python/3.{k}\nsource $HOME/.venv/{about}/bin/activate",
    "module load anaconda3\nconda activate {about}", "source ~/miniconda3/etc/profile.d/conda.sh\nconda activate env",
    "module purge\nmodule load anaconda\nsource activate py3{s}", "module load Python/3.{k}-GCCcore", "export OMP_NUM_THREADS={k}",
    "cd $SLURM_SUBMIT_DIR\nmodule load python", "eval \"$(conda shell.bash hook)\"\nconda activate {about}_env", "cd ~/{about}", "",
    "export PYTHONPATH=$PWD/src\nsource env/bin/activate", "module load cuda\nconda activate {about}", "pip install --user -r requirements.txt",
)  # fmt: skip
_CALLS = (
    "python {program}.py {options}", "python3 {program}.py {options}", "python -u {program}.py {options}",
    "srun python {program}.py {options}", "srun python3 -u {program}.py {options}", "time python {program}.py {options}",
    "mpirun -n {k} python {program}.py {options}", "python -m {program} {options}", "nohup python {program}.py {options}",
)  # fmt: skip
_OTHER_LANGUAGES = 0.35
"""Of jobs."""
_OTHER_CALLS = (
    "module load R\nRscript {program}.R {options}", "Rscript --vanilla {program}.R {options}", "R CMD BATCH {program}.R",
    "module load matlab\nmatlab -nodisplay -r \"{program}; exit\"", "matlab -batch \"{program}({k})\"",
    "matlab -nodesktop -nosplash -r \"run('{program}.m'); quit\"", "julia --project=. {program}.jl {options}",
    "julia -t {k} {program}.jl {options}", "java -jar {program}.jar {options}", "java -Xmx{k}g -cp 'lib/*' org.{about}.Main {program} {options}",
    "./{program} {options}", "srun ./{program} {options}", "mpirun -n {k} ./{program} {options}",
)  # fmt: skip
_SERVED = (
    "jupyter lab --no-browser --port={n} --ip=0.0.0.0", "jupyter notebook --no-browser --port {n}", "jupyter-notebook --port={n} --no-browser",
    "jupyter nbconvert --to notebook --execute {about}.ipynb", "python -m http.server {n}", "python -m unittest discover", "pytest -x tests",
    "ipython {about}.py", "python setup.py install", "snakemake --cores {k}", "dask-scheduler --port {n}", "streamlit run {about}.py",
)  # fmt: skip
_GPUS = 0.1
"""Of jobs that do not learn: in public repositories, too, Python on GPUs seldom does anything else."""
_HEADERS = (
    "#!/bin/bash\n#SBATCH -n {k}\n",
    "#!/bin/bash\n#SBATCH --cpus-per-task={k}\n#SBATCH --time=1:00:00\n",
    "#!/bin/sh\n#PBS -l nodes=1:ppn={k}\n",
    "#!/bin/bash\n#$ -pe smp {k}\n",
    "#!/bin/bash\n",
)
_GPU_HEADERS = (
    "#!/bin/bash\n#SBATCH --gres=gpu:1\n",
    "#!/bin/bash\n#SBATCH -p gpu\n#SBATCH --gpus=1\n",
    "#!/bin/sh\n#PBS -l select=1:ngpus=1\n",
)


def python_jobs(count: int, seed: int) -> list[tuple[str, bool]]:
    """Scripts, and whether each learns; every second does."""
    chance = random.Random(f"python {seed}")  # no secret
    return [(_job(chance, learns=number % 2 == 1), number % 2 == 1) for number in range(count)]


def _job(chance: random.Random, *, learns: bool) -> str:
    gpus = chance.random() < (0.4 if learns else _GPUS)
    header, around = chance.choice(_GPU_HEADERS if gpus else _HEADERS), chance.choice(_AROUND)
    options = chance.sample(_OPTIONS, chance.randint(0, 4))
    about = chance.choice(_ABOUT)
    if learns:
        does = chance.choice(_LEARNS)
        options = [*options[:2], *chance.sample(_LEARNING, chance.randint(does not in _TRAINS, 4))]
        chance.shuffle(options)
        program = chance.choice((does, f"{does}_{about}", f"{about}_{does}"))
    else:
        options += [chance.choice(_ON_GPU)] if gpus else []
        does = chance.choice(_DOES)
        # not main or run: most real scripts with only such a name are AI
        program = chance.choice((does, about, f"{does}_{about}", f"{does}_{about}", f"{about}_{does}"))
    if not learns and not chance.randrange(8):
        command = chance.choice(_SERVED)
    else:
        calls = _OTHER_CALLS if chance.random() < _OTHER_LANGUAGES else _CALLS
        command = chance.choice(calls).replace("{program}", program).replace("{options}", " ".join(options))
    text = f"{header}{around}\n{command}\n"
    for name, value in (
        ("{about}", about),
        ("{n}", str(chance.choice((10, 50, 100, 500, 1000, 5000, 100000)))),
        ("{k}", str(chance.choice((4, 8, 16, 32)))),
        ("{s}", str(chance.randint(1, 9))),
    ):
        text = text.replace(name, value)
    return text
