"""A job script as a value: what its scheduler would read in it, what it asks for and what it runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Any

from tocsin.core.errors import UnitError
from tocsin.core.units import UNLIMITED, parse_instant
from tocsin.scripts.cobalt import COBALT
from tocsin.scripts.dialect import Dialect
from tocsin.scripts.flux import FLUX
from tocsin.scripts.grid_engine import GRID_ENGINE
from tocsin.scripts.lsf import LSF
from tocsin.scripts.oar import OAR
from tocsin.scripts.options import Directive, read_options
from tocsin.scripts.pbs import PBS
from tocsin.scripts.pjm import PJM
from tocsin.scripts.request import Draft, Problem, Request
from tocsin.scripts.scheduler import RULES, Mark, Scheduler, recognise, survey
from tocsin.scripts.slurm import SLURM
from tocsin.scripts.text import decode, readable, split_lines
from tocsin.scripts.words import Place, Word

__all__ = ["DIALECTS", "Script", "parse", "to_json"]

DIALECTS: Mapping[Scheduler, Dialect] = {
    dialect.scheduler: dialect for dialect in (SLURM, PBS, LSF, GRID_ENGINE, PJM, FLUX, COBALT, OAR)
}

_MOST_PROBLEMS = 100


@dataclass(frozen=True, slots=True)
class Script:
    """What a script says. Line numbers begin at 1."""

    text: str
    scheduler: Scheduler | None
    interpreter: str | None
    directives: tuple[Directive, ...]
    """Every option that the scheduler would read; those of the command line come last, with line 0."""
    components: tuple[Request, ...]
    """What each component of a heterogeneous job asks for; any other job has one."""
    commands: list[tuple[int, str]]
    problems: tuple[Problem, ...]
    last_directive: int
    """Line of the last directive; 0 without any."""
    zone: tzinfo | None = None

    @property
    def request(self) -> Request:
        """What the job asks for, by the names of a Job's fields; of a heterogeneous job the first component."""
        return self.components[0]

    @property
    def dialect(self) -> Dialect:
        """A script without directives is as good for Slurm as for any other."""
        return DIALECTS[self.scheduler or Scheduler.SLURM]

    def with_options(self, argv: Sequence[str]) -> "Script":
        """The same script submitted with these options, which win over its directives.

        `argv` is the command line with or without the submit command; it ends at the first word that is no option.
        """
        words = [Word(word, range(len(word))) for word in argv]
        command = argv[0].rpartition("/")[2] if argv else ""
        known = [d for d in DIALECTS.values() if command in d.commands]
        dialect = known[0] if known and not self.scheduler else self.dialect
        if known:
            words = words[2:] if command == "flux" else words[1:]
        troubles: list[str] = []
        given = _up_to_script(words, dialect)
        found = list(read_options(given, dialect.table, 0, _nowhere, troubles))
        added = tuple(part for directive in found for part in dialect.parts(directive, _nowhere))
        problems = list(self.problems) + [Problem(0, trouble) for trouble in troubles]
        both = self.directives + added
        components = tuple(
            _request(dialect, [*own, *added], problems, self.zone) for own in _components(self.directives)
        )
        return replace(
            self,
            scheduler=dialect.scheduler,
            directives=both,
            components=components,
            problems=tuple(dict.fromkeys(problems)),
        )


def parse(text: str | bytes, *, zone: tzinfo | None = None) -> Script:
    """What a script says; text of any kind is read, only bytes that are no text are refused.

    `begin` is local time on the cluster, so it is only known with the cluster's zone.
    """
    if isinstance(text, bytes):
        text = decode(text)
    lines = split_lines(text)
    found = survey(lines)
    scheduler = recognise(found.marks)
    problems: list[Problem] = []
    directives: list[Directive] = []
    last = 0
    if scheduler:
        dialect = DIALECTS[scheduler]
        for mark in found.marks:
            if mark.ignored or mark.scheduler is not scheduler:
                if mark.options:
                    problems.append(_unread(mark, scheduler))
            else:
                last = max(last, _read_line(lines, mark, dialect, directives, problems))
        components = tuple(_request(dialect, own, problems, zone) for own in _components(directives))
        _whole(text, scheduler, problems)
    else:
        components = ({},)
    if len(problems) > _MOST_PROBLEMS:
        left = len(problems) - _MOST_PROBLEMS
        problems = [*problems[:_MOST_PROBLEMS], Problem(0, f"{left} more problems are not listed")]
    return Script(
        text=text,
        scheduler=scheduler,
        interpreter=found.interpreter,
        directives=tuple(directives),
        components=components,
        commands=found.commands,
        problems=tuple(problems),
        last_directive=last,
        zone=zone,
    )


def to_json(script: Script) -> dict[str, Any]:
    """What `tocsin script FILE --json` prints: seconds and bytes; no limit is the word UNLIMITED."""
    return {
        "scheduler": script.scheduler and script.scheduler.value,
        "interpreter": script.interpreter,
        "directives": [
            {
                "line": d.line,
                "option": readable(d.option),
                "value": d.value and readable(d.value),
                "field": d.field,
            }
            for d in script.directives
        ],
        "request": _plain(script.request),
        "components": [_plain(request) for request in script.components],
        "commands": [{"line": line, "text": readable(text)} for line, text in script.commands],
        "problems": [{"line": problem.line, "text": readable(problem.text)} for problem in script.problems],
    }


def _plain(request: Request) -> dict[str, Any]:
    return {name: "UNLIMITED" if value == UNLIMITED else value for name, value in request.items()}


def _read_line(
    lines: Sequence[str], mark: Mark, dialect: Dialect, directives: list[Directive], problems: list[Problem]
) -> int:
    """Adds the options of one directive line, joined with those that continue it; returns its last line."""
    number = mark.line + 1
    line = lines[mark.line].rstrip("\r")
    segments = [
        (0, number, 0)
    ]  # from which column of the joined line on which physical line and column it is
    while dialect.continued and line.endswith("\\") and number < len(lines) and len(segments) < 100:
        following = lines[number].rstrip("\r")
        begin = len(dialect.prefix.rstrip()) if following.startswith(dialect.prefix.rstrip()) else 0
        line = line[:-1]
        number += 1
        segments.append((len(line), number, begin))
        line += following[begin:]

    def locate(start: int, end: int) -> Place | None:
        follow = len(line)
        for at, physical, column in reversed(segments):
            if start >= at:
                return Place(physical, start - at + column, end - at + column) if end <= follow else None
            follow = at
        return None

    words, trouble = dialect.words(line, mark.body)
    troubles = [trouble] if trouble else []
    if dialect is SLURM and words and words[0].text.lower() in ("hetjob", "packjob"):
        directives.append(Directive(mark.line + 1, words[0].text.lower(), None))
        words = words[1:]
    for directive in read_options(words, dialect.table, mark.line + 1, locate, troubles):
        directives.extend(dialect.parts(directive, locate))
    problems.extend(Problem(mark.line + 1, readable(text)) for text in troubles)
    return number


def _components(directives: Sequence[Directive]) -> list[list[Directive]]:
    """The directives of each component: `#SBATCH hetjob` stands between them."""
    parts: list[list[Directive]] = [[]]
    for directive in directives:
        if directive.option in ("hetjob", "packjob"):
            parts.append([])
        else:
            parts[-1].append(directive)
    return parts


def _request(
    dialect: Dialect, directives: Sequence[Directive], problems: list[Problem], zone: tzinfo | None
) -> Request:
    readers = dialect.readers if zone is None else {**dialect.readers, "begin": _begin(zone)}
    draft = Draft(readers, dialect.cpu_for_each_task)
    for directive in directives:
        if directive.field != "begin" or zone:
            draft.take(directive)
    request = draft.finish()
    problems.extend(draft.problems)
    return request


def _begin(zone: tzinfo) -> Any:
    def begin(text: str) -> int | None:
        """A full date; `now+1hour`, `16:00` and `tomorrow` depend on the moment of submission."""
        try:
            return parse_instant(text, zone)
        except UnitError:
            return None

    return begin


def _unread(mark: Mark, scheduler: Scheduler) -> Problem:
    line, word = mark.line + 1, RULES[mark.scheduler].word
    if mark.scheduler is not scheduler:
        return Problem(line, f"#{word} is not read: the script is taken for one of {scheduler.value}")
    return Problem(line, f"#{word} is ignored: {mark.ignored}")


def _whole(text: str, scheduler: Scheduler, problems: list[Problem]) -> None:
    """What sbatch refuses about the script as such."""
    if scheduler is not Scheduler.SLURM:
        return
    if not text.startswith("#!"):
        problems.append(Problem(1, "the first line does not begin with #!; sbatch refuses the script"))
    if "\r\n" in text:
        problems.append(
            Problem(1, "the lines end as on Windows (CR LF); sbatch refuses the script, run dos2unix")
        )


def _up_to_script(words: list[Word], dialect: Dialect) -> list[Word]:
    """The words of a command line before the script's name."""
    given, wanted = [], 0
    for word in words:
        if not wanted and (not word.text.startswith("-") or word.text == "--"):
            break
        if wanted:
            wanted -= 1
        else:
            wanted = _wants(word.text, dialect)
        given.append(word)
    return given


def _wants(text: str, dialect: Dialect) -> int:
    """How many further words are the value of this one."""
    table = dialect.table
    if not table.double or text.startswith("--"):
        option = table.find(text.partition("=")[0]) if table.double else table.find(text)
        return 0 if option is None or option.optional or ("=" in text and table.double) else option.values
    for j, letter in enumerate(text[1:], 1):
        option = table.find("-" + letter)
        if option and option.values:
            return 0 if option.optional or text[j + 1 :] else option.values
    return 0


def _nowhere(_start: int, _end: int) -> Place | None:
    return None
