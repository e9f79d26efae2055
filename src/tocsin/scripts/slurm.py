"""Slurm: the options of sbatch 22.05 to 24.11, and what they ask for."""

from collections.abc import Iterable

from tocsin.core.errors import UnitError
from tocsin.core.units import UNLIMITED, format_duration, format_memory, parse_duration, parse_memory
from tocsin.scripts.dialect import Dialect, Fresh
from tocsin.scripts.options import Directive, Locate, option_table
from tocsin.scripts.request import Value, count
from tocsin.scripts.scheduler import Scheduler
from tocsin.scripts.words import sbatch_words

__all__ = ["SLURM"]

# man sbatch, and src/common/slurm_opt.c for the names it does not list
OPTIONS = option_table(
    """
-A --account            = account
   --acctg-freq         =
-a --array              = array
   --batch              =
   --bb                 =
   --bbf                =
-b --begin              = begin
-D --chdir              = work_dir
   --cluster-constraint =
-M --clusters --cluster =
   --comment            =
   --consolidate-segments
-C --constraint         = constraints
   --container          =
   --container-id       =
   --contiguous
-S --core-spec          =
   --cores-per-socket   =
   --cpu-freq           =
   --cpus-per-gpu       =
-c --cpus-per-task      = cpus_per_task
   --deadline           =
   --delay-boot         =
-d --dependency         = dependency
-m --distribution       =
-e --error              =
-x --exclude            = exclude_nodes
   --exclusive          ? exclusive
   --export             =
   --export-file        =
   --external
   --extra              =
-B --extra-node-info    =
   --get-user-env       ?
   --gid                =
   --gpu-bind           =
   --gpu-freq           =
-G --gpus               = req_gpus/job
   --gpus-per-node      = req_gpus/node
   --gpus-per-socket    =
   --gpus-per-task      = req_gpus/task
   --gres               = req_gres
   --gres-flags         =
-h --help
   --hint               =
-H --hold
   --ignore-pbs
-i --input              =
-J --job-name           = name
-k --no-kill            ?
   --kill-on-invalid-dep =
-L --licenses           = licenses
   --mail-type          =
   --mail-user          =
   --mcs-label          =
   --mem                = req_memory/node
   --mem-bind           =
   --mem-per-cpu        = req_memory/cpu
   --mem-per-gpu        = req_memory/gpu
   --mincpus            =
   --network            =
   --nice               ?
   --no-requeue         requeue/no
-F --nodefile           =
-w --nodelist           = req_node_list
-N --nodes              = req_nodes
-n --ntasks             = req_tasks
   --ntasks-per-core    =
   --ntasks-per-gpu     =
   --ntasks-per-node --tasks-per-node = tasks_per_node
   --ntasks-per-socket  =
   --oom-kill-step      ?
   --open-mode          =
-o --output             =
-O --overcommit
-s --oversubscribe      exclusive/no
   --parsable
-p --partition          = partition
   --power              =
   --prefer             =
   --priority           = priority
   --profile            =
   --propagate          ?
-q --qos                = qos
-Q --quiet
   --reboot
   --requeue            requeue
   --reservation        = reservation
   --segment            =
   --signal             =
   --sockets-per-node   =
   --spread-job
   --stepmgr
   --switches           =
   --test-only
   --thread-spec        =
   --threads-per-core   =
-t --time               = time_limit
   --time-min           = time_min
   --tmp                =
   --tres-bind          =
   --tres-per-task      =
   --uid                =
   --usage
   --use-min-nodes
-v --verbose
-V --version
-W --wait
   --wait-all-nodes     =
   --wckey              =
   --wrap               =
"""
)


def _time(text: str) -> int | None:
    """Slurm counts in minutes, rounds up, and takes zero for no limit."""
    seconds = UNLIMITED if text == "-1" else parse_duration(text)
    if seconds is None or seconds == UNLIMITED:
        return seconds
    return -(-seconds // 60) * 60 or UNLIMITED


def _memory(text: str) -> int | None:
    amount = parse_memory(text, unit="M")
    return None if amount == UNLIMITED else amount


def _nodes(text: str) -> int:
    """The least number of `2`, `2-4` or `2,4,8`."""
    return count(text.split(",")[0].split("-")[0])


def _gpus(text: str) -> int:
    """The number in `2`, `a100:2` or `a100:1,v100:1`; a type alone is one."""
    total = 0
    for item in text.split(","):
        last = item.rpartition(":")[2].partition("(")[0]
        total += 1 if item and not item[0].isdigit() and ":" not in item else count(last)
    return total


def _exclusive(text: str) -> bool | None:
    """Only without user or mcs are the nodes for this job alone."""
    return None if text.lower() in ("user", "mcs", "topo") else text.lower() != "no"


def _parts(directive: Directive, _locate: Locate) -> Iterable[Directive]:
    """GPUs among the generic resources are counted; they are per node."""
    if directive.field != "req_gres" or not directive.value:
        return (directive,)
    total = 0
    for item in directive.value.split(","):
        name, _, rest = item.removeprefix("gres:").removeprefix("gres/").partition(":")
        if name == "gpu":
            try:
                total += _gpus(rest) if rest else 1
            except UnitError:
                total += 1 if ":" not in rest else 0  # gpu:v100 is one of a type
    return (
        (directive, Directive(directive.line, "--gres gpu", str(total), "req_gpus", "node"))
        if total
        else (directive,)
    )


def _megabytes(value: Value) -> str:
    """Slurm counts in megabytes: less is rounded up."""
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
        "time_limit": _time,
        "time_min": _time,
        "req_memory": _memory,
        "req_nodes": _nodes,
        "req_gpus": _gpus,
        "exclusive": _exclusive,
    },
    writers={"time_limit": _duration, "time_min": _duration, "req_memory": _megabytes},
    fresh={
        "time_limit": Fresh("--time={}"),
        "time_min": Fresh("--time-min={}"),
        "req_memory": Fresh("--mem={}", "node"),
        "req_nodes": Fresh("--nodes={}"),
        "req_tasks": Fresh("--ntasks={}"),
        "cpus_per_task": Fresh("--cpus-per-task={}"),
        "tasks_per_node": Fresh("--ntasks-per-node={}"),
        "req_gpus": Fresh("--gpus={}", "job"),
        "exclude_nodes": Fresh("--exclude={}"),
        "req_node_list": Fresh("--nodelist={}"),
        "partition": Fresh("--partition={}"),
        "array": Fresh("--array={}"),
        "name": Fresh("--job-name={}"),
        "account": Fresh("--account={}"),
        "qos": Fresh("--qos={}"),
        "constraints": Fresh("--constraint={}"),
    },
    parts=_parts,
)
