"""PBS Professional, OpenPBS and Torque: the options of qsub and their resource lists."""

from collections.abc import Iterator
from functools import partial

from tocsin.core.errors import UnitError
from tocsin.core.units import parse_memory
from tocsin.scripts.dialect import Dialect, Extension, NewOption, backslash_continuation, list_item
from tocsin.scripts.options import Directive, Locate, option_table
from tocsin.scripts.request import clock, clock_text, count, memory_text, queue
from tocsin.scripts.scheduler import Scheduler
from tocsin.scripts.words import Word

__all__ = ["PBS"]

# qsub(1B) of PBS Professional 2022 and of Torque 6
OPTIONS = option_table(
    """
-A = account
-d = work_dir
-I interactive
-J = array
-n exclusive
-N = name
-P = account
-q = partition
-r = requeue
-t = array
-w = work_dir
-a, -b, -c, -C, -D, -e, -F, -G, -i, -j, -k, -K, -l, -L, -m, -M, -o, -O, -p, -R, -S, -T, -u, -v, -W =
-E, -f, -h, -V, -x, -X, -z
"""
)

_LIMITS = {
    "walltime": ("time_limit", ""),
    "min_walltime": ("time_min", ""),
    "mem": ("req_memory", "job"),
    "pmem": ("req_memory", "cpu"),
    "ncpus": ("req_cpus", "job"),
    "procs": ("req_cpus", "job"),
    "ngpus": ("req_gpus", "job"),
    "host": ("req_node_list", ""),
    "vnode": ("req_node_list", ""),
    "feature": ("constraints", ""),
    "software": ("licenses", ""),
    "qos": ("qos", ""),
    "advres": ("reservation", ""),
}
_CHUNK = {
    "ncpus": ("req_cpus", "node"),
    "ppn": ("req_cpus", "node"),
    "mpiprocs": ("tasks_per_node", ""),
    "ompthreads": ("cpus_per_task", ""),
    "mem": ("req_memory", "node"),
    "ngpus": ("req_gpus", "node"),
    "gpus": ("req_gpus", "node"),
    "host": ("req_node_list", ""),
    "vnode": ("req_node_list", ""),
}


def memory(text: str) -> int | None:
    """Bytes; `w` means words of 8 bytes."""
    if text[-1:] in "wW" and text:
        return 8 * (parse_memory(text[:-1]) or 0)
    return parse_memory(text)


def _attributes(directive: Directive, word: Word, locate: Locate) -> Iterator[Directive]:
    """-W depend=afterok:1,group_list=x; a comma inside depend continues it."""
    name, value = word.partition("=")
    if value is not None and name.text.strip() == "depend":
        yield list_item(directive, locate, "depend", value, "dependency", around=word)
    else:
        yield directive


def _resources(directive: Directive, word: Word, locate: Locate) -> Iterator[Directive]:
    """-l name=value[,name=value...]"""
    for item in word.pieces(","):
        name, value = item.partition("=")
        key = name.text.strip()
        if value is None:
            if key:
                yield list_item(directive, locate, key, item, None, around=item)
        elif key in ("select", "nodes"):
            yield from _chunks(directive, key, value, locate)
        elif key == "place":
            if "excl" in value.text:
                yield Directive(directive.line, "-l place", "yes", "exclusive")
        else:
            target, per = _LIMITS.get(key, (None, ""))
            yield list_item(directive, locate, key, value, target, per, around=item)


def _chunks(directive: Directive, key: str, value: Word, locate: Locate) -> Iterator[Directive]:
    """select=2:ncpus=4:mem=8gb+... and nodes=2:ppn=8:gpus=1+...; a chunk counts as a node."""
    groups = value.pieces("+")
    if len(groups) == 1:
        yield from _chunk(directive, key, groups[0], locate)
        return
    totals: dict[tuple[str, str], int] = {}
    names: list[str] = []
    for group in groups:
        parts = list(_chunk(directive, key, group, locate))
        nodes = int(parts[0].value or 1) if (parts[0].value or "").isdigit() else 1
        totals["req_nodes", ""] = totals.get(("req_nodes", ""), 0) + nodes
        for part in parts[1:]:
            if part.field == "req_tasks":
                totals["req_tasks", "job"] = totals.get(("req_tasks", "job"), 0) + _quiet(part.value)
            elif part.field == "req_node_list":
                names.append(part.value or "")
            elif part.field == "req_memory":
                old = totals.get(("req_memory", "node"), 0)
                totals["req_memory", "node"] = max(old, _quiet(part.value))
            elif part.field in ("req_cpus", "req_gpus", "tasks_per_node"):
                target = "req_tasks" if part.field == "tasks_per_node" else part.field
                totals[target, "job"] = totals.get((target, "job"), 0) + nodes * _quiet(part.value)
    for (target, per), number in totals.items():
        yield Directive(directive.line, f"{directive.option} {key}", str(number), target, per)
    if names:
        yield Directive(directive.line, f"{directive.option} {key}", ",".join(names), "req_node_list")


def _chunk(directive: Directive, key: str, group: Word, locate: Locate) -> Iterator[Directive]:
    items = group.pieces(":")
    features = []
    chunks = items[0].text if items[0].text.isdigit() else "1"
    if items[0].text.isdigit():
        yield list_item(directive, locate, key, items.pop(0), "req_nodes")
    else:
        yield Directive(directive.line, f"{directive.option} {key}", "1", "req_nodes")
        if key == "nodes" and items[0].text and "=" not in items[0].text:
            yield list_item(directive, locate, key, items.pop(0), "req_node_list")
    for item in items:
        name, value = item.partition("=")
        if value is not None:
            target, per = _CHUNK.get(name.text, (None, ""))
            yield list_item(directive, locate, f"{key} {name.text}", value, target, per, around=item)
        elif item.text == "excl" or item.text.startswith("exclusive"):
            yield Directive(directive.line, f"{directive.option} {key}", "yes", "exclusive")
        elif item.text and item.text not in ("shared", "default"):
            features.append(item.text)
    if features:
        yield Directive(directive.line, f"{directive.option} {key}", ":".join(features), "constraints")
    if key == "select" and chunks.isdigit() and not any(item.text.startswith("mpiprocs=") for item in items):
        # mpiprocs is 1 if the chunk has CPUs, else 0 (pbs_resources(7B))
        idle = any(item.text in ("ncpus=0", "ncpus=00") for item in items)
        yield Directive(directive.line, f"{directive.option} {key}", "0" if idle else chunks, "req_tasks")


def _quiet(text: str | None) -> int:
    """A number of a chunk; 0 if unreadable."""
    try:
        return memory(text or "0") or 0
    except UnitError:
        return 0


PBS = Dialect(
    scheduler=Scheduler.PBS,
    prefix="#PBS ",
    commands=("qsub", "msub"),
    table=OPTIONS,
    continuation=backslash_continuation,
    readers={
        "time_limit": clock,
        "time_min": clock,
        "req_memory": memory,
        "partition": queue,
        "req_nodes": count,
    },
    writers={
        "time_limit": clock_text,
        "time_min": clock_text,
        "req_memory": partial(memory_text, units=("gb", "mb", "kb", "b")),
    },
    new_options={
        "time_limit": NewOption("-l walltime={}"),
        "req_memory": NewOption("-l mem={}", "job", unless=("-l select",)),
        "req_nodes": NewOption("-l nodes={}", unless=("-l select",)),
        "req_cpus": NewOption("-l ncpus={}", "job", unless=("-l select", "-l nodes")),
        "partition": NewOption("-q {}"),
        "array": NewOption("-J {}"),
        "name": NewOption("-N {}"),
        "account": NewOption("-A {}"),
    },
    # qsub refuses -l mem and -l ncpus next to -l select: they go into the chunk
    extensions={
        "req_memory": Extension("-l select", ":mem={}", "node"),
        "req_cpus": Extension("-l select", ":ncpus={}", "node"),
        "tasks_per_node": Extension("-l select", ":mpiprocs={}"),
    },
    replaced={"-l nodes": "req_nodes", "-l select": "req_nodes"},
    parts={"-l": _resources, "-W": _attributes},
)
