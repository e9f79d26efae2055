"""Where the output of a batch job is, according to its script, command line and record, as sbatch decides it."""

import posixpath
import re
import shlex
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tocsin.core.errors import InputError
from tocsin.core.nodelist import expand_nodes
from tocsin.scripts.scheduler import Scheduler
from tocsin.scripts.script import Script, parse

__all__ = ["expanded", "output_files"]

_PLAIN, _ARRAY = "slurm-%j.out", "slurm-%A_%a.out"
_SIGN = re.compile(r"%(\d{0,2})([%AabJjNnstuxW])", re.ASCII)
_NUMBERS = frozenset("AabJjnst")
_LONGEST = 4096
_LONGEST_COMMAND_LINE = 100_000


def output_files(job: Mapping[str, Any], script: str | None) -> list[str]:
    """Absolute paths of standard output, then of standard error if it is another file; none if unknown."""
    if job["interactive"]:
        return []
    options = _options(job, script)
    default = _PLAIN if job["task"] is None else _ARRAY
    output = options.get("--output") or default
    error = options.get("--error")
    folder = job["work_dir"] or options.get("--chdir")
    if not folder and (job["command"] or "").startswith("/"):
        folder = posixpath.dirname(job["command"])
    found = []
    for pattern in (output, error):
        path = posixpath.join(folder or "", expanded(pattern, job)) if pattern else ""
        if path.startswith("/") and len(path) <= _LONGEST and path not in found:
            found.append(path)
    return found


def expanded(pattern: str, job: Mapping[str, Any]) -> str:
    """The file name of a pattern such as `%x-%j.out`, for the batch script; a backslash turns off the replacement.

    >>> job = {"job_id": 7, "task": 3, "raw_id": 9, "user": "ann", "name": "cfd", "node_list": "n[2-3]"}
    >>> expanded("%x/%A_%4a-%j-%N.%u.%%", job)
    'cfd/7_0003-9-n2.ann.%'
    """
    if "\\" in pattern:
        return pattern.replace("\\", "")
    number = job["raw_id"] or job["job_id"]
    known = {
        "A": job["job_id"],
        "a": 4294967294 if job["task"] is None else job["task"],
        "b": 4 if job["task"] is None else job["task"] % 10,
        "j": number,
        "J": number,
        "N": _first_node(job["node_list"]),
        "n": 0,
        "s": "batch",
        "t": 0,
        "u": job["user"] or "",
        "x": job["name"] or "",
        "W": "",
        "%": "%",
    }

    def value(sign: re.Match[str]) -> str:
        text = str(known[sign[2]])
        return text.rjust(int(sign[1]), "0") if sign[1] and sign[2] in _NUMBERS and text.isdigit() else text

    return _SIGN.sub(value, pattern)


def _options(job: Mapping[str, Any], script: str | None) -> dict[str, str]:
    """Options with their values; those of the command line override the script's."""
    text = parse(script or "", scheduler=Scheduler.SLURM) if script is not None else None
    line = job["submit_line"]
    if line and line.strip() and len(line) < _LONGEST_COMMAND_LINE:
        with suppress(ValueError, InputError):  # an unclosed quote
            words = shlex.split(line)
            bare = text or parse("", scheduler=Scheduler.SLURM)
            text = bare.with_options(words, only_options=words[0].startswith("-"))
    return _values(text) if text else {}


def _values(script: Script) -> dict[str, str]:
    wanted = {"--output": "--output", "-o": "--output", "--error": "--error", "-e": "--error"}
    wanted |= {"--chdir": "--chdir", "-D": "--chdir"}
    return {wanted[d.option]: d.value for d in script.directives if d.option in wanted and d.value}


def _first_node(nodes: str | None) -> str:
    with suppress(InputError):
        for node in expand_nodes(nodes or ""):
            return node.partition(".")[0]
    return ""
