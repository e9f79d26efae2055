"""Which scheduler a script is written for: its directive lines, and which of them that scheduler would read."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from tocsin.scripts.text import here_documents, interpreter

__all__ = [
    "LONGEST_DIRECTIVE",
    "RULES",
    "Mark",
    "Rule",
    "Scheduler",
    "Survey",
    "both_ends",
    "recognise",
    "survey",
]

LONGEST_DIRECTIVE = 64 * 1024
MOST_DIRECTIVES = 5_000
MOST_LETTERS = 2 * LONGEST_DIRECTIVE
"""Lines of directives, and letters in them, that are read at each end of a script: far more than any real one has."""


class Scheduler(StrEnum):
    """The schedulers whose scripts are read."""

    SLURM = "slurm"
    PBS = "pbs"
    LSF = "lsf"
    GRID_ENGINE = "sge"
    PJM = "pjm"
    FLUX = "flux"
    COBALT = "cobalt"
    OAR = "oar"


@dataclass(frozen=True, slots=True)
class Rule:
    """How a scheduler finds its directives in a file."""

    word: str
    whole_file: bool = False
    """It reads on after the first command."""
    indented: bool = False
    """Blanks may stand before the `#`."""
    spaced: bool = False
    """Blanks may stand after the `#`."""


RULES = {
    # opt.c of sbatch: strncmp at column 0; the first line that is neither blank nor a comment ends the header
    Scheduler.SLURM: Rule("SBATCH"),
    # check_job_script.c of OpenPBS: blanks are skipped before the prefix; ends like sbatch's
    Scheduler.PBS: Rule("PBS", indented=True),
    # parseLine in bsub of LSF 4.2 (openlava): every line of the script, blanks before and after `#`
    Scheduler.LSF: Rule("BSUB", whole_file=True, indented=True, spaced=True),
    # qsub(1) of Grid Engine: lines that begin with the prefix `#$`, in the whole file
    Scheduler.GRID_ENGINE: Rule("$", whole_file=True),
    # pjsub: like sbatch
    Scheduler.PJM: Rule("PJM"),
    # RFC 36 and flux/job/directives.py: any prefix without letters; ends at the first other line after it began
    Scheduler.FLUX: Rule("flux:", indented=True, spaced=True),
    # qsub of Cobalt has no public text of its rule that we know of: taken like sbatch's
    Scheduler.COBALT: Rule("COBALT"),
    # scan_script in OAR::Sub: /^#OAR\s+/ in the whole file
    Scheduler.OAR: Rule("OAR", whole_file=True),
}

_SCHEDULERS = {rule.word: scheduler for scheduler, rule in RULES.items()} | {"FLUX:": Scheduler.FLUX}

_MARK = re.compile(
    r"([ \t]*)#([ \t]*)(?:(SBATCH|PBS|BSUB|PJM|COBALT|OAR)(?=[\s-]|$)|(flux:|FLUX:)(?=[ \t]*-)|(\$)(?=[ \t]*-[A-Za-z]))"
)


@dataclass(frozen=True, slots=True)
class Mark:
    """A line that looks like a directive."""

    line: int
    """Index of the line."""
    scheduler: Scheduler
    body: int
    """Column where its options begin."""
    ignored: str
    """Why the scheduler would not read it; empty when it would."""
    options: bool
    """Options follow, not prose."""
    header: bool
    """Options that would be read, and no command stands before them."""


@dataclass(slots=True)
class Survey:
    """What each line of a script is."""

    interpreter: str | None = None
    marks: list[Mark] = field(default_factory=list)
    commands: list[tuple[int, str]] = field(default_factory=list)
    """Line (from 1) and text of all that is no shebang, comment, directive or blank; here-documents whole."""


def survey(lines: Sequence[str]) -> Survey:
    """One pass over the lines."""
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
        why = _ignored(RULES[scheduler], line, mark, inside=inside, ended=ended)
        if not why and scheduler is Scheduler.FLUX and flux_began < 0:
            flux_began, first_command = i, first_command if first_command > i else -1
        options = line[mark.end() : mark.end() + 256].lstrip().startswith(("-", "–", "—"))
        header = options and not why and first_command < 0
        found.marks.append(Mark(i, scheduler, mark.end(), why, options, header))
    return found


def _ignored(rule: Rule, line: str, mark: re.Match[str], *, inside: bool, ended: bool) -> str:
    if inside:
        return "it stands in a here-document"
    if ended and not rule.whole_file:
        return "it comes after the first command"
    if mark[1] and not rule.indented:
        return "blanks stand before the #"
    if mark[2] and not rule.spaced:
        return "blanks stand after the #"
    if len(line) > LONGEST_DIRECTIVE:
        return f"the line has more than {LONGEST_DIRECTIVE} characters"
    return ""


def recognise(marks: Sequence[Mark]) -> Scheduler | None:
    """The scheduler of the first directive in the header; without a header, of the first that looks like one.

    The second case is a script that writes and submits other scripts. A file with two headers is meant for both.
    """
    for mark in marks:
        if mark.header:
            return mark.scheduler
    return marks[0].scheduler if marks else None


def both_ends(marks: list[Mark], lines: Sequence[str]) -> list[Mark]:
    """All of them, or of more than any script needs the first ones and the last, which win."""
    first = _in_bounds(marks, lines)
    last = _in_bounds(marks[first:][::-1], lines)
    return marks[:first] + marks[len(marks) - last :]


def _in_bounds(marks: Sequence[Mark], lines: Sequence[str]) -> int:
    """How many of these may be read, from the first on."""
    letters = 0
    for number, mark in enumerate(marks[:MOST_DIRECTIVES]):
        letters += len(lines[mark.line])
        if letters > MOST_LETTERS:
            return number
    return min(len(marks), MOST_DIRECTIVES)
