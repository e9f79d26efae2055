"""Cobalt (Argonne): the options of its qsub."""

from collections.abc import Iterator
from functools import partial

from tocsin.scripts.dialect import Dialect, NewOption, list_item
from tocsin.scripts.options import Directive, Locate, option_table
from tocsin.scripts.request import Value, clock, clock_text
from tocsin.scripts.scheduler import Scheduler
from tocsin.scripts.words import Word

__all__ = ["COBALT"]

# qsub(1) of Cobalt 1.0
OPTIONS = option_table(
    """
-A --project        = account
   --cwd            = work_dir
   --dependencies   = dependency
-I --interactive    interactive
   --jobname        = name
-n --nodecount      = req_nodes
-O --outputprefix   = name
   --proccount      = req_tasks
-q --queue          = partition
-t --time           = time_limit
--attrs, --debuglog, --env, -e --error, --geometry, -i --inputfile, --ion_kernel, --ion_kerneloption =
-k --kernel, -K --kerneloptions, --mode, -M --notify, -o --output, --run_users, -u --umask =
-d --debug, --disable_preboot, -h --held, --run_project, -v --verbose
"""
)


def _mode(directive: Directive, word: Word, locate: Locate) -> Iterator[Directive]:
    """--mode c16 runs 16 processes on each node; --mode script runs the script."""
    if word.text[:1] == "c" and word.text[1:].isdigit():
        yield list_item(directive, locate, "", word.part(1), "tasks_per_node")
    else:
        yield directive


def _attributes(directive: Directive, word: Word, locate: Locate) -> Iterator[Directive]:
    """--attrs location=1-4:mcdram=cache, where locations are nodes."""
    for item in word.pieces(":"):
        name, value = item.partition("=")
        if value is not None and name.text == "location":
            yield list_item(directive, locate, "location", value, "req_node_list", around=item)
        else:
            yield list_item(directive, locate, "", item, None, around=item)


def _time_text(value: Value) -> str:
    return str(int(value) // 60) if int(value) % 60 == 0 else clock_text(value)


COBALT = Dialect(
    scheduler=Scheduler.COBALT,
    prefix="#COBALT ",
    commands=("qsub",),
    table=OPTIONS,
    readers={"time_limit": partial(clock, bare=60)},
    writers={"time_limit": _time_text},
    new_options={
        "time_limit": NewOption("-t {}"),
        "req_nodes": NewOption("-n {}"),
        "req_tasks": NewOption("--proccount {}"),
        "partition": NewOption("-q {}"),
        "name": NewOption("--jobname {}"),
        "account": NewOption("-A {}"),
    },
    parts={"--mode": _mode, "--attrs": _attributes},
    one_cpu_per_task=False,
)
