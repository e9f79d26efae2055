"""Flux: the options of flux batch."""

import re

from tocsin.core.errors import UnitError
from tocsin.core.units import UNLIMITED
from tocsin.scripts.dialect import Dialect, NewOption
from tocsin.scripts.options import option_table
from tocsin.scripts.request import Value
from tocsin.scripts.scheduler import Scheduler
from tocsin.scripts.words import Word, directive_words

__all__ = ["FLUX"]

# flux-batch(1) of flux-core 0.60; a slot is a task
OPTIONS = option_table(
    """
-B --bank             = account
-c --cores-per-slot --cores-per-task = cpus_per_task
   --cwd              = work_dir
   --dependency       = dependency
-x --exclusive        exclusive
-g --gpus-per-slot --gpus-per-task = req_gpus/task
   --gpus-per-node    = req_gpus/node
   --job-name         = name
-N --nodes            = req_nodes
-n --nslots --ntasks  = req_tasks
-q --queue            = partition
   --requires         = constraints
   --tasks-per-node   = tasks_per_node
-t --time-limit       = time_limit
--add-file, --begin-time, --broker-opts, --conf, --env, --env-file, --env-remove, --error, --flags =
--input, --output, --rlimit, -o --setopt, -S --setattr, --signal, --taskmap, --urgency =
--dump, -v --verbose ?
--bg, --dry-run, -l --label-io, --quiet, -u --unbuffered, --watch, --wrap
"""
)

_QUOTES = re.compile(r"\"{3}|'{3}")
_TRIPLE = re.compile(r"(\"{3}|'{3})(.*?)(?:\1|(\Z))", re.DOTALL)


def _goes_on(line: str) -> str | None:
    """A value in triple quotes may span lines, each with the prefix (RFC 36)."""
    at = 0
    while found := _QUOTES.search(line, at):
        at = line.find(found[0], found.end()) + len(found[0])
        if at < len(found[0]):
            return "\n"
    return None


def _words(line: str, start: int) -> tuple[list[Word], str | None]:
    """Split like a shell, with triple-quoted text as one value."""
    masked = _TRIPLE.sub(
        lambda found: found[1] + "x" * len(found[2]) + (found[1] if found[3] is None else ""), line
    )
    words, error = directive_words(masked, start)
    return [Word("".join(line[at] for at in word.columns), word.columns) for word in words], error


_UNITS = {"": 60, "s": 1, "m": 60, "h": 3600, "d": 86400, "ms": 0.001}


def _time(text: str) -> int | None:
    """Flux Standard Duration (RFC 23): `90s`, `1.5h`; a bare number is minutes."""
    if text.lower() in ("inf", "infinity"):
        return UNLIMITED
    found = re.fullmatch(r"(\d{1,12}(?:\.\d{1,9})?)(ms|[smhd]?)", text.strip(), re.ASCII)
    if not found:
        raise UnitError(f'"{text[:60]}" is not a Flux duration; write 30m or 1.5h')
    return round(float(found[1]) * _UNITS[found[2]])


def _time_text(value: Value) -> str:
    seconds = int(value)
    if seconds == UNLIMITED:
        return "infinity"
    return f"{seconds // 60}m" if seconds % 60 == 0 else f"{seconds}s"


FLUX = Dialect(
    scheduler=Scheduler.FLUX,
    prefix="# flux: ",
    commands=("flux",),
    table=OPTIONS,
    continuation=_goes_on,
    words=_words,
    readers={"time_limit": _time},
    writers={"time_limit": _time_text},
    new_options={
        "time_limit": NewOption("--time-limit={}"),
        "req_nodes": NewOption("--nodes={}"),
        "req_tasks": NewOption("--nslots={}"),
        "cpus_per_task": NewOption("--cores-per-slot={}"),
        "partition": NewOption("--queue={}"),
        "name": NewOption("--job-name={}"),
        "account": NewOption("--bank={}"),
    },
)
