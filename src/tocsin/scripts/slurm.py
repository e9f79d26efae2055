"""Slurm: the options of sbatch 22.05 to 26.05."""

from collections.abc import Iterator
from contextlib import suppress

from tocsin.core.errors import UnitError
from tocsin.core.units import UNLIMITED, format_duration, format_memory
from tocsin.scripts.dialect import Dialect, NewOption
from tocsin.scripts.options import Directive, Locate, option_table
from tocsin.scripts.request import Value
from tocsin.scripts.scheduler import Scheduler
from tocsin.scripts.slurm_checks import CHECKS
from tocsin.scripts.slurm_values import (
    duration,
    gpu_count,
    gres_gpus,
    least_nodes,
    megabytes,
    node_list,
    number,
    tres_per_task,
)
from tocsin.scripts.words import Word, sbatch_words

__all__ = ["SLURM"]

# sbatch(1), src/common/slurm_opt.c for unlisted names, and the plugins pyxis and shifter
OPTIONS = option_table(
    """
-A --account            = account
-a --array              = array
-b --begin              = begin
-D --chdir              = work_dir
-C --constraint         = constraints
   --cpus-per-gpu       = req_cpus/gpu
-c --cpus-per-task      = cpus_per_task
-d --dependency         = dependency
-x --exclude            = exclude_nodes
   --exclusive          ? exclusive
-G --gpus               = req_gpus/job
   --gpus-per-node      = req_gpus/node
   --gpus-per-task      = req_gpus/task
   --gres               = req_gres
-J --job-name           = name
-L --licenses           = licenses
   --mem                = req_memory/node
   --mem-per-cpu        = req_memory/cpu
   --mem-per-gpu        = req_memory/gpu
   --no-requeue         requeue/no
-w --nodelist           = req_node_list
-N --nodes              = req_nodes
-n --ntasks             = req_tasks
   --ntasks-per-node --tasks-per-node = tasks_per_node
-s --oversubscribe      exclusive/no
-p --partition          = partition
   --priority           = priority
-q --qos                = qos
   --requeue            requeue
   --reservation        = reservation
-t --time               = time_limit
   --time-min           = time_min
--acctg-freq, --batch, --bb, --bbf, --cluster-constraint, -M --clusters --cluster, --comment =
--container, --container-id, --container-env, --container-image, --container-mounts, --container-name =
--container-save, --container-workdir, -S --core-spec, --cores-per-socket, --cpu-freq, --deadline =
--delay-boot, -m --distribution, -e --error, --export, --export-file, --extra, -B --extra-node-info =
--gid, --gpu-bind, --gpu-freq, --gpus-per-socket, --gres-flags, --hint, --image, -i --input =
--kill-on-invalid-dep, --mail-type, --mail-user, --mcs-label, --mem-bind, --mincpus, --network =
-F --nodefile, --ntasks-per-core, --ntasks-per-gpu, --ntasks-per-socket, --open-mode, -o --output =
--power, --prefer, --profile, --segment, --signal, --sockets-per-node, --switches, --thread-spec =
--threads-per-core, --tmp, --tres-bind, --tres-per-task, --uid, --volume, --wait-all-nodes, --wckey =
--wrap =
--get-user-env, -k --no-kill, --nice, --oom-kill-step, --propagate ?
--consolidate-segments, --container-entrypoint, --container-mount-home, --container-readonly
--container-remap-root, --container-writable, --no-container-entrypoint, --no-container-mount-home
--no-container-remap-root, --contiguous, --external, -h --help, -H --hold, --ignore-pbs, -O --overcommit
--parsable, -Q --quiet, --reboot, --spread-job, --stepmgr, --test-only, --usage, --use-min-nodes
-v --verbose, -V --version, -W --wait
"""
)


def _exclusive(text: str) -> bool | None:
    """With user or mcs, the nodes are shared."""
    return None if text.lower() in ("user", "mcs", "topo") else text.lower() != "no"


def _per_node(text: str) -> int | None:
    """22.05 takes a number from 2**31 on for a negative one, which is none; 26.05 refuses it."""
    return found if (found := number(text)) < 2**31 else None


def _nodes(text: str) -> str | None:
    return text if "/" in text else node_list(text) or None


def _priority(text: str) -> int | None:
    """Only numbers; sbatch ignores other text, and only the scheduler knows TOP."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 11 else None


def _gres(directive: Directive, word: Word, _locate: Locate) -> Iterator[Directive]:
    """--gres is per node."""
    yield directive
    with suppress(UnitError):  # CHECKS reports the bad value
        if gpus := gres_gpus(word.text):
            yield Directive(directive.line, "--gres gpu", str(gpus), "req_gpus", "node")


def _per_task(directive: Directive, word: Word, _locate: Locate) -> Iterator[Directive]:
    yield directive
    fields = {"cpu": ("cpus_per_task", ""), "gpu": ("req_gpus", "task")}
    with suppress(UnitError):
        for kind, number in tres_per_task(word.text).items():
            if kind in fields:
                yield Directive(directive.line, f"--tres-per-task {kind}", str(number), *fields[kind])


def _megabytes(value: Value) -> str:
    """Slurm counts in megabytes, rounded up."""
    return format_memory(-(-int(value) // 1024**2) * 1024**2) if value else "0"


def _duration(value: Value) -> str:
    return format_duration(int(value) if value == UNLIMITED else -(-int(value) // 60) * 60)


SLURM = Dialect(
    scheduler=Scheduler.SLURM,
    prefix="#SBATCH ",
    commands=("sbatch", "srun", "salloc"),
    table=OPTIONS,
    words=sbatch_words,
    readers={
        "time_limit": duration,
        "time_min": duration,
        "req_memory": megabytes,
        "req_nodes": least_nodes,
        "req_gpus": gpu_count,
        "req_node_list": _nodes,
        "exclude_nodes": _nodes,
        **dict.fromkeys(("req_tasks", "req_cpus", "cpus_per_task"), number),
        "tasks_per_node": _per_node,
        "exclusive": _exclusive,
        "priority": _priority,
    },
    checks=CHECKS,
    refuses=True,
    writers={"time_limit": _duration, "time_min": _duration, "req_memory": _megabytes},
    new_options={
        "time_limit": NewOption("--time={}"),
        "time_min": NewOption("--time-min={}"),
        "req_memory": NewOption("--mem={}", "node"),
        "req_nodes": NewOption("--nodes={}"),
        "req_tasks": NewOption("--ntasks={}"),
        "cpus_per_task": NewOption("--cpus-per-task={}"),
        "tasks_per_node": NewOption("--ntasks-per-node={}"),
        "req_gpus": NewOption("--gpus={}", "job"),
        "exclude_nodes": NewOption("--exclude={}"),
        "req_node_list": NewOption("--nodelist={}"),
        "partition": NewOption("--partition={}"),
        "array": NewOption("--array={}"),
        "name": NewOption("--job-name={}"),
        "account": NewOption("--account={}"),
        "qos": NewOption("--qos={}"),
        "constraints": NewOption("--constraint={}"),
    },
    replaced={
        "--gres": "req_gres",
        # sbatch looks at the last value only
        **{"--nodelist": "req_node_list", "--exclude": "exclude_nodes", "--constraint": "constraints"},
        **{"--dependency": "dependency", "--licenses": "licenses", "--array": "array"},
        **dict.fromkeys(("--tres-per-task", "--hint", "--prefer", "--gpus-per-socket", "--propagate")),
        **dict.fromkeys(("--gpus", "--gpus-per-node", "--gpus-per-task"), "req_gpus"),
    },
    parts={"--gres": _gres, "--tres-per-task": _per_task},
)
