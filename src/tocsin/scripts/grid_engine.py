"""Grid Engine (Sun, Son of, Univa, Altair): the options of qsub, parallel environments and resource requests."""

import re
from collections.abc import Iterator
from functools import partial

from tocsin.core.errors import UnitError
from tocsin.scripts.dialect import Dialect, NewOption, list_item
from tocsin.scripts.options import Directive, Locate, option_table
from tocsin.scripts.request import clock, clock_text, count, memory_text, queue
from tocsin.scripts.scheduler import Scheduler
from tocsin.scripts.words import Word

__all__ = ["GRID_ENGINE"]

# qsub(1) of Grid Engine 8; one dash and a word
OPTIONS = option_table(
    """
-A = account
-ar = reservation
-hold_jid = dependency
-hold_jid_ad = dependency
-N = name
-P = account
-p = priority
-q = partition
-r = requeue
-t = array
-wd = work_dir
-@, -a, -ac, -b, -binding, -bgio, -c, -ckpt, -clearp, -C, -cal, -dc, -dl, -e, -i, -j, -jc, -js, -jsv, -l =
-m, -M, -masterl, -masterq, -mbind, -now, -o, -ot, -par, -preempt, -pty, -R, -rou, -rdi, -rsv, -rsv_id =
-S, -sc, -shell, -si, -sync, -tc, -tcon, -u, -umask, -v, -w, -xd, -xdv, -xd_run_as_image_user =
-clears, -pe =2
-adds, -mods =3
-clear, -cwd, -h, -hard, -help, -inherit, -noshell, -nostdin, -notify, -soft, -terse, -V, -verify
""",
    double=False,
)

_RESOURCES = {
    "h_rt": ("time_limit", ""),
    "h_vmem": ("req_memory", "slot"),
    "mem_free": ("req_memory", "slot"),
    "m_mem_free": ("req_memory", "slot"),
    "virtual_free": ("req_memory", "slot"),
    "vf": ("req_memory", "slot"),
    "mem": ("req_memory", "slot"),
    "gpu": ("req_gpus", "job"),
    "gpus": ("req_gpus", "job"),
    "ngpus": ("req_gpus", "job"),
    "hostname": ("req_node_list", ""),
    "h": ("req_node_list", ""),
    "exclusive": ("exclusive", ""),
    "excl": ("exclusive", ""),
}
_ONE_NODE = re.compile(r"smp|shm|shared|omp|thread|multicore|serial|local|onenode")
_RANK = ("h_vmem", "m_mem_free", "mem_free")


def _environment(directive: Directive, word: Word, locate: Locate) -> Iterator[Directive]:
    """-pe name slots[-slots]; a slot is a CPU. Only the name shows whether all slots are on one node."""
    name, slots = word.partition(" ")
    if slots is None:
        yield directive
        return
    yield list_item(directive, locate, name.text, slots.pieces("-")[0], "req_cpus", "job", around=word)
    if _ONE_NODE.search(name.text.lower()):
        yield Directive(directive.line, f"-pe {name.text}", "1", "req_nodes")


def _resources(directive: Directive, word: Word, locate: Locate) -> Iterator[Directive]:
    """-l name=value[,...]; memory is per slot, and h_vmem is the enforced limit."""
    pieces = word.pieces(",")
    keys = [piece.text.partition("=")[0].strip() for piece in pieces]
    enforced = next((key for key in _RANK if key in keys), None)
    for key, piece in zip(keys, pieces, strict=True):
        value = piece.partition("=")[1]
        target, per = _RESOURCES.get(key, (None, ""))
        if target == "req_memory" and enforced and key != enforced:
            target = None
        if value is not None:
            yield list_item(directive, locate, key, value, target, per, around=piece)
        elif key:
            flag = Directive(directive.line, f"-l {key}", "1", target, per)
            yield flag if target in ("req_gpus", "exclusive") else flag._replace(value=None, field=None)


def _memory(text: str) -> int | None:
    """Uppercase units are powers of 1024, lowercase of 1000 (sge_types(1)); without a unit, bytes."""
    word = text.strip()
    unit = word[-1:] if word[-1:].isalpha() else ""
    number = word[: len(word) - len(unit)]
    powers = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
    powers |= {"k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
    whole, _, rest = number.partition(".")
    if unit not in powers or not (whole + rest).isascii() or not (whole + rest).isdigit() or len(number) > 15:
        raise UnitError(f'"{text[:60]}" is not an amount of memory; write 4G')
    return round(float(number) * powers[unit])


def _time(text: str) -> int | None:
    """[[hours]:[minutes]:]seconds; a part may be empty (sge_types(1)): `1::1`, `::3600`."""
    parts = text.split(":")
    if len(parts) == 3:
        text = ":".join(part or "0" for part in parts)
    return clock(text)


GRID_ENGINE = Dialect(
    scheduler=Scheduler.GRID_ENGINE,
    prefix="#$ ",
    commands=("qsub", "qlogin", "qrsh"),
    table=OPTIONS,
    readers={
        "time_limit": _time,
        "req_memory": _memory,
        "req_cpus": count,
        "partition": queue,
        "priority": lambda text: None if text.startswith("-") else count(text),
    },
    writers={"time_limit": clock_text, "req_memory": partial(memory_text, units=("G", "M", "K", ""))},
    new_options={
        "time_limit": NewOption("-l h_rt={}"),
        "req_memory": NewOption("-l h_vmem={}", "slot"),
        "partition": NewOption("-q {}"),
        "array": NewOption("-t {}"),
        "name": NewOption("-N {}"),
        "account": NewOption("-A {}"),
    },
    parts={"-l": _resources, "-pe": _environment},
)
