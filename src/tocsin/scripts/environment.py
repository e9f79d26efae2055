"""The environment variables that sbatch reads as options: they override directives, and the command line overrides them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tocsin.scripts.options import Directive, OptionTable, read_options
from tocsin.scripts.words import Word

__all__ = ["assignments", "environment_options", "options_set", "split_assignments"]

_VARIABLES: Mapping[str, str] = {
    "SBATCH_ACCOUNT": "--account",
    "SBATCH_ACCTG_FREQ": "--acctg-freq",
    "SBATCH_ARRAY_INX": "--array",
    "SBATCH_BATCH": "--batch",
    "SBATCH_BURST_BUFFER": "--bb",
    "SBATCH_CLUSTERS": "--clusters",
    "SBATCH_CLUSTER_CONSTRAINT": "--cluster-constraint",
    "SBATCH_CONSTRAINT": "--constraint",
    "SBATCH_CONTAINER": "--container",
    "SBATCH_CORE_SPEC": "--core-spec",
    "SBATCH_CPU_FREQ_REQ": "--cpu-freq",
    "SBATCH_CPUS_PER_GPU": "--cpus-per-gpu",
    "SBATCH_DELAY_BOOT": "--delay-boot",
    "SBATCH_DISTRIBUTION": "--distribution",
    "SBATCH_ERROR": "--error",
    "SBATCH_EXCLUSIVE": "--exclusive",
    "SBATCH_GET_USER_ENV": "--get-user-env",
    "SBATCH_GPU_BIND": "--gpu-bind",
    "SBATCH_GPU_FREQ": "--gpu-freq",
    "SBATCH_GPUS": "--gpus",
    "SBATCH_GPUS_PER_NODE": "--gpus-per-node",
    "SBATCH_GPUS_PER_SOCKET": "--gpus-per-socket",
    "SBATCH_GPUS_PER_TASK": "--gpus-per-task",
    "SBATCH_GRES": "--gres",
    "SBATCH_GRES_FLAGS": "--gres-flags",
    "SLURM_HINT": "--hint",
    "SBATCH_HINT": "--hint",
    "SBATCH_IGNORE_PBS": "--ignore-pbs",
    "SBATCH_INPUT": "--input",
    "SBATCH_JOB_NAME": "--job-name",
    "SBATCH_MEM_BIND": "--mem-bind",
    "SBATCH_MEM_PER_CPU": "--mem-per-cpu",
    "SBATCH_MEM_PER_GPU": "--mem-per-gpu",
    "SBATCH_MEM_PER_NODE": "--mem",
    "SBATCH_NETWORK": "--network",
    "SBATCH_NO_KILL": "--no-kill",
    "SBATCH_NO_REQUEUE": "--no-requeue",
    "SBATCH_OPEN_MODE": "--open-mode",
    "SBATCH_OUTPUT": "--output",
    "SBATCH_OVERCOMMIT": "--overcommit",
    "SBATCH_PARTITION": "--partition",
    "SBATCH_POWER": "--power",
    "SBATCH_PROFILE": "--profile",
    "SBATCH_QOS": "--qos",
    "SBATCH_REQ_SWITCH": "--switches",
    "SBATCH_REQUEUE": "--requeue",
    "SBATCH_RESERVATION": "--reservation",
    "SBATCH_SIGNAL": "--signal",
    "SBATCH_SPREAD_JOB": "--spread-job",
    "SBATCH_THREAD_SPEC": "--thread-spec",
    "SBATCH_THREADS_PER_CORE": "--threads-per-core",
    "SBATCH_TIMELIMIT": "--time",
    "SBATCH_USE_MIN_NODES": "--use-min-nodes",
    "SBATCH_WAIT": "--wait",
    "SBATCH_WAIT_ALL_NODES": "--wait-all-nodes",
    "SBATCH_WCKEY": "--wckey",
}
"""The table of sbatch 22.05; it does not read a variable for every option (not SBATCH_NODES, for instance). SBATCH_EXPORT is
left out: Slurm refuses none of its values, and they may hold secrets."""
_ASSIGNMENT = re.compile(r"(S(?:BATCH|LURM)_[A-Z_]+)=(.*)", re.DOTALL)
_ON = re.compile(r"|yes|\s*[+-]?0*[1-9]\d*", re.ASCII | re.IGNORECASE)
"""The values of a variable that set an option without a value; sbatch ignores others."""
_LONGEST = 4000


def assignments(environment: Mapping[str, str]) -> tuple[str, ...]:
    """`SBATCH_PARTITION=gpu` for each variable that is set, to stand before the options of a submission."""
    return tuple(
        f"{name}={environment[name]}"
        for name in _VARIABLES
        if name in environment and len(environment[name]) < _LONGEST
    )


def split_assignments(argv: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """The assignments at the start of a submission, as in a shell, and the rest."""
    end = next((at for at, word in enumerate(argv) if not _ASSIGNMENT.fullmatch(word)), len(argv))
    return argv[:end], argv[end:]


def options_set(variables: Sequence[str]) -> set[str]:
    """The options that these assignments set, whether or not a written option overrides them."""
    return {_VARIABLES.get(variable.partition("=")[0], "") for variable in variables}


def environment_options(
    variables: Sequence[str], written: Iterable[Directive], table: OptionTable, errors: list[str]
) -> list[Directive]:
    """The options that these assignments set, next to the written ones; those keep another form of memory out."""
    memory = {directive.option for directive in written if directive.field == "req_memory"}
    return [
        directive
        for directive in _options(variables, table, errors)
        if directive.field != "req_memory" or memory <= {directive.option}
    ]


def _options(variables: Sequence[str], table: OptionTable, errors: list[str]) -> Iterator[Directive]:
    for assignment in variables:
        name, _, value = assignment.partition("=")
        option = table.find(_VARIABLES.get(name, ""))
        if option is None:
            continue
        if option.values or option.optional:
            text = f"{option.name}={value}"
        elif _ON.fullmatch(value):
            text = option.name
        else:
            continue
        for directive in read_options([Word(text, range(len(text)))], table, 0, _nowhere, errors):
            yield directive._replace(source=name)


def _nowhere(_start: int, _end: int) -> None:
    return None
