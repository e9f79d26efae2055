"""LSF: the options of bsub, its resource requirements and its array names."""

import re
from collections.abc import Iterator

from tocsin.core.units import parse_memory
from tocsin.scripts.dialect import Dialect, Extension, NewOption, backslash_continuation, list_item
from tocsin.scripts.options import Directive, Locate, option_table
from tocsin.scripts.request import Value, clock, count
from tocsin.scripts.scheduler import Scheduler
from tocsin.scripts.words import Word

__all__ = ["LSF"]

# bsub of LSF 10.1; one dash and a word
OPTIONS = option_table(
    """
-cwd = work_dir
-I, -Ip, -IS, -ISp, -ISs, -Is, -IX interactive
-J = name
-Lp = licenses
-M = req_memory/node
-m = req_node_list
-n = req_tasks
-nnodes = req_nodes
-P = account
-q = partition
-r requeue
-rn requeue/no
-U = reservation
-W = time_limit
-w = dependency
-x exclusive
-a, -alloc_flags, -app, -aff, -b, -C, -c, -cn_cu, -cn_mem, -cn_cores, -clusters, -core_isolation, -csm =
-D, -data, -datagrp, -E, -Ep, -e, -eo, -env, -eptl, -ext, -extsched, -F, -f, -freq, -G, -g, -gpu =
-hostfile, -i, -is, -Jd, -jobaff, -jm, -jsm, -k, -L, -ln_mem, -ln_slots, -mig, -network, -notify, -o =
-oo, -outdir, -p, -pack, -ptl, -Q, -R, -rcacct, -rnc, -S, -s, -sla, -smt, -sp, -step_cgroup, -stage, -T =
-t, -u, -v, -We, -wa, -wt, -yaml, -l =
-ar, -B, -datachk, -H, -hl, -K, -N, -Ne, -ti, -tty, -ul, -XF, -Zs
""",
    double=False,
)

_ARRAY = re.compile(r"\[([^\]\[]*)\]")
_SECTION = re.compile(r"(rusage|span|select)\[([^\]\[]*)\]")
_GPUS = re.compile(r"ngpus(?:_physical|_shared|_excl_p|_excl_t)?")


def _slots(directive: Directive, word: Word, locate: Locate) -> Iterator[Directive]:
    """-n least[,most]"""
    yield list_item(directive, locate, "", word.pieces(",")[0], "req_tasks", around=word)


def _name(directive: Directive, word: Word, locate: Locate) -> Iterator[Directive]:
    """-J "name[1-10:2]%4"; the limit of running tasks (%4) is not part of the request."""
    found = _ARRAY.search(word.text)
    if not found:
        yield directive
        return
    if word.text[: found.start()]:
        yield list_item(directive, locate, "", word.part(0, found.start()), "name")
    yield list_item(directive, locate, "array", word.part(found.start(1), found.end(1)), "array")


def _requirements(directive: Directive, word: Word, locate: Locate) -> Iterator[Directive]:
    """-R "select[...] rusage[mem=4000] span[ptile=8]": memory is per host, in MB without a unit."""
    plain = True
    for found in _SECTION.finditer(word.text):
        plain = False
        inner = word.part(found.start(2), found.end(2))
        if found[1] == "select":
            yield list_item(directive, locate, "select", inner, "constraints")
            continue
        for item in inner.pieces("," if "," in inner.text else ":"):
            name, value = item.partition("=")
            key = name.text.strip()
            if value is None:
                continue
            value = value.trim()
            target = {"mem": "req_memory", "ptile": "tasks_per_node", "hosts": "req_nodes"}.get(key)
            if found[1] == "rusage" and _GPUS.fullmatch(key):
                target = "req_gpus"
            elif (found[1] == "rusage") != (key == "mem"):
                target = None
            per = "node" if target in ("req_memory", "req_gpus") else ""
            if value.text not in ("-1", ""):
                text = value.text.partition(":")[0].strip()
                value = value.part(0, len(text))
                made = list_item(directive, locate, f"{found[1]} {key}", value, target, per)
                in_megabytes = key == "mem" and text.replace(".", "", 1).isdigit()
                yield made._replace(value=text + "MB") if in_megabytes else made
    if plain:
        yield directive


def _gpus(directive: Directive, word: Word, locate: Locate) -> Iterator[Directive]:
    """-gpu "num=2:mode=exclusive_process": per host, or per task with /task."""
    for item in word.pieces(":"):
        name, value = item.partition("=")
        if value is not None and name.text.strip() == "num":
            number, per = value.partition("/")
            yield list_item(
                directive, locate, "num", number, "req_gpus", "task" if per and per.text == "task" else "node"
            )
            return
    yield directive


def _time(text: str) -> int | None:
    """[hours:]minutes[/host]; bsub rounds fractions of a minute."""
    return clock(text.partition("/")[0].strip(), last=60)


def _time_text(value: Value) -> str:
    minutes = -(-int(value) // 60)
    return f"{minutes // 60}:{minutes % 60:02d}"


def _memory(text: str) -> int | None:
    """-M is in KB without a unit; the megabytes of rusage already have their unit."""
    return parse_memory(text.strip().removesuffix("/task").removesuffix("/host"), unit="K")


def _memory_text(value: Value) -> str:
    return f"{-(-int(value) // 1024**2)}MB"


def _hosts(text: str) -> str | None:
    return ",".join(text.split()) or None


LSF = Dialect(
    scheduler=Scheduler.LSF,
    prefix="#BSUB ",
    commands=("bsub",),
    table=OPTIONS,
    continuation=backslash_continuation,
    readers={
        "time_limit": _time,
        "req_memory": _memory,
        "req_node_list": _hosts,
        "req_nodes": count,
    },
    writers={"time_limit": _time_text, "req_memory": _memory_text},
    new_options={
        "time_limit": NewOption("-W {}"),
        "req_memory": NewOption('-R "rusage[mem={}]"', "node"),
        "req_nodes": NewOption("-nnodes {}"),
        "req_tasks": NewOption("-n {}"),
        "tasks_per_node": NewOption('-R "span[ptile={}]"'),
        "partition": NewOption("-q {}"),
        "array": NewOption('-J "[{}]"', unless=("-J",)),
        "name": NewOption("-J {}"),
        "account": NewOption("-P {}"),
    },
    extensions={"array": Extension("-J", "[{}]")},
    parts={"-J": _name, "-R": _requirements, "-gpu": _gpus, "-n": _slots},
)
