"""Finds the directive lines of a script and the scheduler it is written for."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from tocsin.scripts.text import here_documents, interpreter

__all__ = [
    "LONGEST_DIRECTIVE",
    "PREFIXES",
    "DirectiveLine",
    "Prefix",
    "Scheduler",
    "Survey",
    "survey",
    "within_bounds",
]

LONGEST_DIRECTIVE = 64 * 1024
MOST_DIRECTIVES = 5_000
MOST_LETTERS = 2 * LONGEST_DIRECTIVE
"""Directive lines and characters read at each end of a script: far more than any real script has."""


class Scheduler(StrEnum):
    """Schedulers whose scripts can be read."""

    SLURM = "slurm"
    PBS = "pbs"
    LSF = "lsf"
    GRID_ENGINE = "sge"
    PJM = "pjm"
    FLUX = "flux"
    COBALT = "cobalt"
    OAR = "oar"


@dataclass(frozen=True, slots=True)
class Prefix:
    """How a scheduler finds its directives in a file."""

    word: str
    whole_file: bool = False
    """Directives after the first command are read too."""
    indented: bool = False
    """Blanks are allowed before the `#`."""
    spaced: bool = False
    """Blanks are allowed after the `#`."""


PREFIXES = {
    # opt.c of sbatch: strncmp at column 0; the first line that is neither blank nor a comment ends the header
    Scheduler.SLURM: Prefix("SBATCH"),
    # check_job_script.c of OpenPBS: skips blanks before the prefix; ends like sbatch
    Scheduler.PBS: Prefix("PBS", indented=True),
    # parseLine in bsub of LSF 4.2 (openlava): every line of the script, blanks before and after `#`
    Scheduler.LSF: Prefix("BSUB", whole_file=True, indented=True, spaced=True),
    # qsub(1) of Grid Engine: lines that begin with the prefix `#$`, in the whole file
    Scheduler.GRID_ENGINE: Prefix("$", whole_file=True),
    # pjsub: like sbatch
    Scheduler.PJM: Prefix("PJM"),
    # RFC 36 and flux/job/directives.py: any prefix without characters; ends at the first other line after it began
    Scheduler.FLUX: Prefix("flux:", indented=True, spaced=True),
    # qsub of Cobalt does not document its rule: assumed to be like sbatch
    Scheduler.COBALT: Prefix("COBALT"),
    # scan_script in OAR::Sub: /^#OAR\s+/ in the whole file
    Scheduler.OAR: Prefix("OAR", whole_file=True),
}

_SCHEDULERS = {prefix.word: scheduler for scheduler, prefix in PREFIXES.items()} | {"FLUX:": Scheduler.FLUX}

_MARK = re.compile(
    r"([ \t]*)#([ \t]*)(?:(SBATCH|(?:PBS|BSUB|PJM|COBALT|OAR)(?=[\s-]|$))|(flux:|FLUX:)(?=[ \t]*-)|(\$)(?=[ \t]*-[A-Za-z]))"
)


@dataclass(frozen=True, slots=True)
class DirectiveLine:
    """A line that looks like a directive."""

    line: int
    """Index of the line."""
    scheduler: Scheduler
    body: int
    """Column where its options start."""
    ignored: str
    """Why the scheduler ignores it; empty if it reads it."""
    options: bool
    """It has options, not prose."""
    header: bool
    """It is read and comes before the first command."""


@dataclass(slots=True)
class Survey:
    """The lines of a script by role."""

    interpreter: str | None = None
    directive_lines: list[DirectiveLine] = field(default_factory=list)
    commands: list[tuple[int, str]] = field(default_factory=list)
    """Line (from 1) and text of everything except shebang, comments, directives and blank lines."""


def survey(lines: Sequence[str]) -> Survey:
    """Classify all lines in one pass."""
    found = Survey(interpreter(lines))
    commands = found.commands
    documents = iter(here_documents(lines, found.interpreter))
    begin, end = next(documents, (len(lines), len(lines)))
    first_command = flux_began = -1
    for i, line in enumerate(lines):
        if i >= end:
            begin, end = next(documents, (len(lines), len(lines)))
        inside = i >= begin
        bare = line.lstrip() if i else line.lstrip("\ufeff \t\r")
        if not bare:
            continue
        if inside or bare[0] != "#":
            commands.append((i + 1, line.rstrip("\r")))
            if first_command < 0:
                first_command = i
            if bare[0] != "#":
                continue
        mark = _MARK.match(line, 0, 256)
        if not mark:
            continue
        scheduler = _SCHEDULERS[mark[3] or mark[4] or mark[5]]
        ended = first_command >= 0 if scheduler is not Scheduler.FLUX else 0 <= flux_began < first_command
        why = _ignored(PREFIXES[scheduler], line, mark, inside=inside, ended=ended)
        if not why and scheduler is Scheduler.FLUX and flux_began < 0:
            flux_began, first_command = i, first_command if first_command > i else -1
        options = line[mark.end() : mark.end() + 256].lstrip(" \t\"'").startswith(("-", "–", "—"))
        header = options and not why and first_command < 0
        found.directive_lines.append(DirectiveLine(i, scheduler, mark.end(), why, options, header))
    return found


def _ignored(prefix: Prefix, line: str, mark: re.Match[str], *, inside: bool, ended: bool) -> str:
    if inside:
        return "it is inside a here-document"
    if ended and not prefix.whole_file:
        return "it comes after the first command"
    if mark[1] and not prefix.indented:
        return "there are blanks before the #"
    if mark[2] and not prefix.spaced:
        return "there are blanks after the #"
    if len(line) > LONGEST_DIRECTIVE:
        return f"the line has more than {LONGEST_DIRECTIVE} characters"
    return ""


def within_bounds(marks: list[DirectiveLine], lines: Sequence[str]) -> list[DirectiveLine]:
    """All lines, or only the first and the last of too many; the last override the others."""
    first = _in_bounds(marks, lines)
    last = _in_bounds(marks[first:][::-1], lines)
    return marks[:first] + marks[len(marks) - last :]


def _in_bounds(marks: Sequence[DirectiveLine], lines: Sequence[str]) -> int:
    """How many of these to read, from the start."""
    characters = 0
    for number, mark in enumerate(marks[:MOST_DIRECTIVES]):
        characters += len(lines[mark.line])
        if characters > MOST_LETTERS:
            return number
    return min(len(marks), MOST_DIRECTIVES)
