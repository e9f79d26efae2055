"""Job scripts of the demo, written from a request and the application's template."""

from functools import cache
from hashlib import sha256
from importlib.resources import files
from string import Template

from tocsin.core.units import format_duration, format_memory
from tocsin.demo.applications import Application
from tocsin.demo.jobs import Request
from tocsin.demo.mistakes import Mistake, garbled

__all__ = ["write"]


class _Script(Template):
    delimiter = "@"  # the shell uses the dollar


@cache
def _template(name: str) -> _Script:
    return _Script(files("tocsin.demo").joinpath("scripts", name).read_text("utf-8"))


def write(
    request: Request,
    application: Application,
    *,
    system: str,
    size: float,
    mistake: Mistake | None,
    garble: int,
    short: bool,
) -> tuple[str, str] | tuple[None, None]:
    """The script and its SHA-256; None for an interactive job."""
    program = application.program
    if program.script is None:
        return None, None
    right, wrong = program.options
    words = {
        "module": program.module,
        "input": program.input.format(system),
        "option": right,
    }
    if mistake and mistake.word:
        words[mistake.word] = wrong if mistake.word == "option" else garbled(words[mistake.word], garble)
    text = _template(program.script).substitute(
        words,
        directives="\n".join(_directives(request, short=short)),
        system=system,
        steps=max(1, round(size * application.steps_per_size)),
    )
    text = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
    return text, sha256(text.encode()).hexdigest()


def _directives(request: Request, *, short: bool) -> list[str]:
    """The #SBATCH lines, with long options or, where they exist, short ones."""
    asked: list[tuple[str, str, str | int | None]] = [
        ("J", "job-name", request.name),
        ("A", "account", request.account),
        ("p", "partition", request.partition),
        ("N", "nodes", request.nodes),
        ("", "ntasks-per-node", request.tasks_per_node),
        ("c", "cpus-per-task", request.cpus_per_task if request.cpus_per_task > 1 else None),
        ("", "mem", _memory(request)),
        ("", "gres", request.gpus_per_node and f"gpu:{request.gpu_type}:{request.gpus_per_node}"),
        ("t", "time", format_duration(request.time_limit) if request.time_given else None),
        ("a", "array", request.array),
        ("o", "output", "%x-%A_%a.out" if request.tasks else "%x-%j.out"),
    ]
    lines = [
        f"#SBATCH -{letter} {value}" if short and letter else f"#SBATCH --{option}={value}"
        for letter, option, value in asked
        if value
    ]
    flags = [("exclusive", request.exclusive), ("requeue", request.requeue)]
    return lines + [f"#SBATCH --{option}" for option, given in flags if given]


def _memory(request: Request) -> str | None:
    if not request.memory_given:
        return None
    return format_memory(request.memory) if request.memory else "0"
