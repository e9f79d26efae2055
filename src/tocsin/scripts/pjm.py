"""PJM (Fujitsu Technical Computing Suite, Fugaku): the options of pjsub."""

import re
from collections.abc import Iterator
from functools import partial
from math import prod

from tocsin.core.errors import UnitError
from tocsin.core.units import UNLIMITED, parse_memory
from tocsin.scripts.dialect import Dialect, NewOption, list_item
from tocsin.scripts.options import Directive, Locate, option_table
from tocsin.scripts.request import clock, clock_text, count, memory_text
from tocsin.scripts.scheduler import Scheduler
from tocsin.scripts.words import Word

__all__ = ["PJM"]

# pjsub(1) and the Fugaku user's guide, "Options of the job submission command"
OPTIONS = option_table(
    """
-g --gname             = account
   --interact interactive
-N --name              = name
   --norestart         requeue/no
   --restart           requeue
   --sparam            = array
-a --at --appname, -C --dir-prefix, -e --err, --fs, -L --rsc-list, --llio, -m, --mail-list, --mpi =
--net-route, -o --out, -p, -P, --script-delimiter, --spath, --stgin, --stgin-basedir, --stgin-dir =
--stgout, --stgout-basedir, --stgout-dir, --stg-transfiles, -x, -z --completion =
--wait ?
--bulk, -h --help, --hold, -i, -I, -j, --mswk, --no-check-directory, --no-stging, -s, -S, --step, -u, -v
-V, -w, -X
"""
)

_RESOURCES = {
    "node": ("req_nodes", ""),
    "elapse": ("time_limit", ""),
    "rscgrp": ("partition", ""),
    "rg": ("partition", ""),
    "node-mem": ("req_memory", "node"),
    "vnode-mem": ("req_memory", "node"),
    "core-mem": ("req_memory", "cpu"),
    "vnode-core": ("req_cpus", "node"),
    "gpu": ("req_gpus", "node"),
    "proc": ("req_tasks", ""),
    "max-proc-per-node": ("tasks_per_node", ""),
}


def _resources(directive: Directive, word: Word, locate: Locate) -> Iterator[Directive]:
    for item in word.pieces(","):
        name, value = item.partition("=")
        if value is None:
            yield list_item(directive, locate, "", item, None, around=item)
            continue
        key = name.text.strip()
        target, per = _RESOURCES.get(key, (None, ""))
        if key == "node":  # node=4x3:torus
            value = value.partition(":")[0]
        if key == "elapse" and "-" in value.text:  # least-most
            least, most = value.partition("-")
            yield list_item(directive, locate, "elapse least", least, "time_min")
            value = most or value
        yield list_item(directive, locate, key, value, target, per, around=item)


def _nodes(text: str) -> int:
    """`12` or a shape such as `2x3x2`."""
    return prod(count(side) for side in text.lower().split("x")[:3])


def _memory(text: str) -> int | None:
    """MiB without a unit; Mi is 1024-based, M is 1000-based."""
    found = re.fullmatch(r"(\d{1,15})([KMGTkmgt]?)(i?)[bB]?", text.strip(), re.ASCII)
    if not found:
        if text.strip().lower() in ("unlimited", "system"):
            return None
        raise UnitError(f'"{text[:60]}" is not an amount of memory; write 28Gi')
    if found[2] and not found[3]:
        power = int(" KMGT".index(found[2].upper()))
        return int(found[1]) * int(1000**power)
    amount = parse_memory(found[1] + found[2], unit="M")
    return None if amount == UNLIMITED else amount


def _bulk(text: str) -> str | None:
    """Only a range of bulk numbers is an array; step jobs use the same option differently."""
    found = re.fullmatch(r"(?:sd=)?(\d{1,9}-\d{1,9})", text.strip(), re.ASCII)
    return found[1] if found else None


PJM = Dialect(
    scheduler=Scheduler.PJM,
    prefix="#PJM ",
    commands=("pjsub",),
    table=OPTIONS,
    readers={
        "time_limit": clock,
        "time_min": clock,
        "req_nodes": _nodes,
        "req_memory": _memory,
        "array": _bulk,
    },
    writers={"time_limit": clock_text, "req_memory": partial(memory_text, units=("Gi", "Mi", "Ki"))},
    new_options={
        "time_limit": NewOption('-L "elapse={}"'),
        "req_memory": NewOption('-L "node-mem={}"', "node"),
        "req_nodes": NewOption('-L "node={}"'),
        "req_tasks": NewOption('--mpi "proc={}"'),
        "tasks_per_node": NewOption('--mpi "max-proc-per-node={}"'),
        "partition": NewOption('-L "rscgrp={}"'),
        "array": NewOption('--bulk --sparam "{}"'),
        "name": NewOption("-N {}"),
        "account": NewOption("-g {}"),
    },
    parts=dict.fromkeys(("--rsc-list", "--mpi"), _resources),
    one_cpu_per_task=False,
)
