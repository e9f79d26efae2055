"""Parses a job script: the options its scheduler reads, the resulting request, and the commands."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import lru_cache
from typing import Any

from tocsin.core.errors import InputError, UnitError
from tocsin.core.units import UNLIMITED, parse_instant
from tocsin.scripts.cobalt import COBALT
from tocsin.scripts.dialect import Dialect
from tocsin.scripts.environment import environment_options, split_assignments
from tocsin.scripts.flux import FLUX
from tocsin.scripts.grid_engine import GRID_ENGINE
from tocsin.scripts.het_components import SEPARATORS, Numbered, split_at_colons, with_command_line
from tocsin.scripts.lsf import LSF
from tocsin.scripts.oar import OAR
from tocsin.scripts.options import Directive, options_before_script, read_options
from tocsin.scripts.pbs import PBS
from tocsin.scripts.pjm import PJM
from tocsin.scripts.request import Draft, Problem, ProblemKind, Request
from tocsin.scripts.scheduler import (
    LONGEST_DIRECTIVE,
    PREFIXES,
    DirectiveLine,
    Scheduler,
    survey,
    within_bounds,
)
from tocsin.scripts.slurm import SLURM
from tocsin.scripts.text import decode, readable, split_lines
from tocsin.scripts.words import Place, Word

__all__ = ["DIALECTS", "SHORT", "Script", "parse", "to_json"]

DIALECTS: Mapping[Scheduler, Dialect] = {
    dialect.scheduler: dialect for dialect in (SLURM, PBS, LSF, GRID_ENGINE, PJM, FLUX, COBALT, OAR)
}

_WRAPPED = (Scheduler.PBS, Scheduler.LSF)
"""sbatch reads their lines too, unless given --ignore-pbs."""
_WRAPPED_FIELDS = frozenset(
    (
        "name",
        "account",
        "partition",
        "array",
        "time_limit",
        "req_nodes",
        "req_tasks",
        "tasks_per_node",
        "req_memory",
    )
)
_MOST_PROBLEMS = 100
SHORT = 16_384
"""Scripts up to this many characters are cached; longer ones could fill the memory."""
_MOST_JOINED = 100
"""Continuation lines of one directive."""


@dataclass(frozen=True, slots=True)
class Script:
    """A parsed script. Line numbers start at 1."""

    text: str
    scheduler: Scheduler | None
    interpreter: str | None
    directives: tuple[Directive, ...]
    """All options that the scheduler reads; those of the command line come last, with line 0."""
    components: tuple[Request, ...]
    """The request of each component of a heterogeneous job; other jobs have one."""
    commands: list[tuple[int, str]]
    problems: tuple[Problem, ...]
    last_directive: int
    """Line of the last directive; 0 if there is none."""
    effective: frozenset[int]
    """Indices of the directives in effect: readable and not overridden."""
    misread: tuple[Problem, ...] = ()
    """The problems that remain whatever options are added: those of lines, not of values that may be overridden."""
    zone: tzinfo | None = None

    @property
    def request(self) -> Request:
        """The request by field name of Job; for a heterogeneous job, its first component."""
        return self.components[0]

    @property
    def dialect(self) -> Dialect:
        """Slurm for a script without directives."""
        return DIALECTS[self.scheduler or Scheduler.SLURM]

    def component(self, index: int) -> "Script":
        """One component of a heterogeneous job."""
        own = [d for d in self.directives if d.line]
        given = [d for d in self.directives if not d.line]
        part = with_command_line(own, given)[index]
        return replace(
            self, directives=tuple(d for _, d in part), components=(self.components[index],), problems=()
        )

    def with_options(self, argv: Sequence[str], *, only_options: bool = False) -> "Script":
        """The same script submitted with these options, which override its directives.

        `argv` is the command line, with or without the submit command. It ends at the first word that is not an
        option, unless `only_options`: then such words are errors. Variables of sbatch may stand before it, as in a
        shell: `SBATCH_PARTITION=gpu sbatch -n 4`.
        """
        variables, argv = split_assignments(argv)
        words = [Word(word, range(len(word))) for word in argv]
        command = argv[0].rpartition("/")[2] if argv else ""
        known = [d for d in DIALECTS.values() if command in d.commands]
        if known and (self.scheduler is None or self.dialect not in known):
            again = parse(self.text, scheduler=known[0].scheduler, zone=self.zone)
            return again.with_options([*variables, *argv], only_options=only_options)
        dialect = self.dialect
        if known:
            words = words[2:] if command == "flux" else words[1:]
        errors: list[str] = []
        given = words if only_options else options_before_script(words, dialect.table)
        found: list[Directive] = []
        for number, part in enumerate(split_at_colons(given) if dialect is SLURM else [given]):
            found += [Directive(0, "hetjob", None)] * bool(number)
            found += read_options(part, dialect.table, 0, _nowhere, errors)
        own, earlier = self.directives, self.misread
        if dialect is SLURM:
            found = environment_options(variables, [*own, *found], dialect.table, errors) + found
        added = tuple(
            part._replace(source=directive.source)
            for directive in found
            for part in dialect.split(directive, _nowhere)
        )
        if any(directive.option == "--ignore-pbs" for directive in found):
            foreign = {problem.line for problem in earlier if problem.kind is ProblemKind.FOREIGN}
            own = tuple(d for d in own if d.line not in foreign)
            earlier = tuple(p for p in earlier if p.kind is not ProblemKind.FOREIGN)
        misread = *earlier, *(Problem(0, readable(error), _refusal(dialect)) for error in errors)
        problems = list(misread)
        both = own + added
        components, effective = _requests(dialect, own, added, problems, self.zone)
        return replace(
            self,
            scheduler=dialect.scheduler,
            directives=both,
            components=components,
            effective=effective,
            problems=tuple(dict.fromkeys(problems)),
            misread=misread,
        )


def parse(text: str | bytes, *, scheduler: Scheduler | None = None, zone: tzinfo | None = None) -> Script:
    """Parse any text; only binary content is refused.

    `scheduler` is the cluster's: sbatch reads `#SBATCH` lines even below `#PBS` lines. Without one, the script is for
    the scheduler with the most valid lines. `begin` is local time on the cluster, so it needs the cluster's zone.
    """
    if isinstance(text, bytes):
        text = decode(text)
    return (_remembered if len(text) <= SHORT else _parse)(text, scheduler, zone)


def _parse(text: str, scheduler: Scheduler | None, zone: tzinfo | None) -> Script:
    lines = split_lines(text)
    found = survey(lines)
    scheduler = scheduler or _detect_scheduler(found.directive_lines, lines)
    problems: list[Problem] = []
    directives: list[Directive] = []
    wrapped: list[DirectiveLine] = []
    last = 0
    if scheduler:
        dialect = DIALECTS[scheduler]
        marks = within_bounds(found.directive_lines, lines)
        if left := len(found.directive_lines) - len(marks):
            note = f"too many directives: {left:,} of {len(found.directive_lines):,}, in the middle, are not read"
            problems.append(Problem(0, note, ProblemKind.NOTE))
        for mark in marks:
            if mark.line < last:
                continue  # a continuation line, already read
            if mark.ignored or mark.scheduler is not scheduler:
                if scheduler is Scheduler.SLURM and mark.header and mark.scheduler in _WRAPPED:
                    wrapped.append(mark)
                elif mark.options:
                    problems.append(_unread(mark, scheduler))
            else:
                final = mark is marks[-1]
                last = max(last, _read_line(lines, mark, dialect, directives, problems, final=final))
        if wrapped and not any(d.option == "--ignore-pbs" for d in directives):
            directives += _read_wrapped(lines, wrapped, problems, alone=not directives)
    _whole(text, scheduler, problems)
    misread = tuple(problems[:_MOST_PROBLEMS])
    if scheduler:
        components, effective = _requests(DIALECTS[scheduler], directives, (), problems, zone)
    else:
        components, effective = ({},), frozenset()
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
        effective=effective,
        misread=misread,
        zone=zone,
    )


_remembered = lru_cache(maxsize=256)(_parse)
"""One verdict reads its script several times, and most scripts recur."""


def _detect_scheduler(marks: Sequence[DirectiveLine], lines: Sequence[str]) -> Scheduler | None:
    """The scheduler with the most valid lines in the header; the first in case of a tie.

    Without a header, the scheduler of the first directive: the script writes and submits other scripts.
    """
    header = [mark for mark in marks if mark.header] or marks[:1]
    valid = Counter[Scheduler]()
    for scheduler in dict.fromkeys(mark.scheduler for mark in header):
        own = [mark for mark in header if mark.scheduler is scheduler]
        if len(own) == len(header):
            return scheduler
        problems: list[Problem] = []
        directives: list[Directive] = []
        for mark in within_bounds(own, lines):
            _read_line(lines, mark, DIALECTS[scheduler], directives, problems)
        _requests(DIALECTS[scheduler], directives, (), problems, None)
        valid[scheduler] = len(own) - len({problem.line for problem in problems})
    return max(valid, key=lambda scheduler: valid[scheduler], default=None)


def to_json(script: Script) -> dict[str, Any]:
    """The output of `tocsin script FILE --json`: seconds and bytes; no limit is "UNLIMITED"."""
    return {
        "scheduler": script.scheduler and script.scheduler.value,
        "interpreter": script.interpreter,
        "directives": [
            {
                "line": d.line,
                "option": readable(d.option),
                "value": d.value and readable(d.value),
                "field": d.field,
                "effective": at in script.effective,
            }
            for at, d in enumerate(script.directives)
        ],
        "request": _plain(script.request),
        "components": [_plain(request) for request in script.components],
        "commands": [{"line": line, "text": readable(text)} for line, text in script.commands],
        "problems": [
            {"line": problem.line, "text": readable(problem.text), "kind": problem.kind.value}
            for problem in script.problems
        ],
    }


def _plain(request: Request) -> dict[str, Any]:
    return {name: "UNLIMITED" if value == UNLIMITED else value for name, value in request.items()}


def _read_line(
    lines: Sequence[str],
    mark: DirectiveLine,
    dialect: Dialect,
    directives: list[Directive],
    problems: list[Problem],
    *,
    final: bool = True,
) -> int:
    """Add the options of one directive and its continuation lines; return its last line.

    `final`: no other directive follows.
    """
    begun = (
        bool(problems) and problems[-1].kind is ProblemKind.UNCLEAR and problems[-1].text.endswith(_NO_VALUE)
    )
    number = mark.line + 1
    line = lines[mark.line].rstrip("\r")
    # (column in the joined line, physical line, physical column) of each piece
    segments = [(0, number, 0)]
    while len(segments) < _MOST_JOINED and number < len(lines) and len(line) < LONGEST_DIRECTIVE:
        glue = dialect.continuation(line)
        if glue is None:
            break
        following = lines[number].rstrip("\r")
        begin = len(dialect.prefix.rstrip()) if following.startswith(dialect.prefix.rstrip()) else 0
        if glue and not begin:
            break
        line = (line if glue else line[:-1]) + glue  # without the backslash
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

    words, error = dialect.words(line, mark.body)
    errors = [error] if error else []
    if dialect is SLURM and words and words[0].text.lower() in SEPARATORS:
        directives.append(Directive(mark.line + 1, words[0].text.lower(), None))
        words = words[1:]
    words = words[1:] if begun and problems[-1].line == mark.line else words
    for directive in read_options(words, dialect.table, mark.line + 1, locate, errors):
        directives.extend(dialect.split(directive, locate))
    problems.extend(
        Problem(mark.line + 1, readable(text), _severity(text, dialect, final)) for text in errors
    )
    return number


_NO_VALUE = "has no value"


def _severity(error: str, dialect: Dialect, final: bool) -> ProblemKind:
    """sbatch takes the first word of the next line for a missing value; where any text is a value, it goes on with that."""
    name, _, rest = error.partition(" ")
    goes_on = dialect is SLURM and rest == _NO_VALUE and not final
    option = dialect.table.find(name) if goes_on else None
    if option and option.name not in dialect.checks and option.field in (None, "name", "work_dir"):
        return ProblemKind.UNCLEAR
    return _refusal(dialect)


def _read_wrapped(
    lines: Sequence[str], marks: Sequence[DirectiveLine], problems: list[Problem], *, alone: bool
) -> Iterator[Directive]:
    """The options that sbatch takes from `#PBS` and `#BSUB` lines; seen on 22.05: it reads their values as its own."""
    for mark in marks:
        found: list[Directive] = []
        _read_line(lines, mark, DIALECTS[mark.scheduler], found, [])
        word = PREFIXES[mark.scheduler].word
        effect = "lines as its own options" if alone else "too, and it overrides #SBATCH"
        problems.append(Problem(mark.line + 1, f"sbatch reads #{word} {effect}", ProblemKind.FOREIGN))
        for directive in found:
            if directive.option.endswith(" ppn"):
                directive = directive._replace(field="tasks_per_node")
            if directive.option == "-l pmem":
                continue  # sbatch does not read it
            if directive.option in ("-l ncpus", "-l select ncpus"):
                yield directive._replace(option="--mincpus", field=None, per="", whole=None)
                continue
            if directive.option == "-M" and (directive.value or "").isdigit():
                directive = directive._replace(value=f"{directive.value}K")
            reader = SLURM.readers.get(directive.field or "", str)
            with suppress(InputError):  # sbatch ignores values that it does not know
                if (
                    directive.field in _WRAPPED_FIELDS
                    and directive.value
                    and reader(directive.value) is not None
                ):
                    yield directive._replace(per="node" if directive.per else "", whole=None)


def _requests(
    dialect: Dialect,
    own: Sequence[Directive],
    added: Sequence[Directive],
    problems: list[Problem],
    zone: tzinfo | None,
) -> tuple[tuple[Request, ...], frozenset[int]]:
    """The request of each component and the directives in effect."""
    readers = dialect.readers if zone is None else {**dialect.readers, "begin": _begin(zone)}
    effective = {at for at, d in enumerate([*own, *added]) if d.option in SEPARATORS}
    requests = []
    for part in with_command_line(own, added):
        draft = Draft(readers, dialect.one_cpu_per_task, dialect.checks, dialect.refuses, _refusal(dialect))
        for at, directive in _in_force(part, dialect):
            draft.take(
                directive if directive.field != "begin" or zone else directive._replace(field=None), at
            )
        requests.append(draft.finish())
        problems.extend(draft.problems)
        effective.update(draft.effective.values())
    return tuple(requests), frozenset(effective)


def _in_force(directives: list[Numbered], dialect: Dialect) -> list[Numbered]:
    """Drop options that a later one replaces completely: a second `-l nodes=` discards the GPUs of the first."""
    for option, first in dialect.replaced.items():
        heads = [at for at, d in directives if d.option == option and d.field == first]
        if len(heads) > 1:
            directives = [
                (at, d)
                for at, d in directives
                if at >= heads[-1] or (d.option != option and not d.option.startswith(option + " "))
            ]
    return directives


def _refusal(dialect: Dialect) -> ProblemKind:
    return ProblemKind.REFUSED if dialect.refuses else ProblemKind.UNCLEAR


def _begin(zone: tzinfo) -> Any:
    def begin(text: str) -> int | None:
        """Only full dates; `now+1hour`, `16:00` and `tomorrow` depend on the submission time."""
        try:
            return parse_instant(text, zone)
        except UnitError:
            return None

    return begin


def _unread(mark: DirectiveLine, scheduler: Scheduler) -> Problem:
    line, word = mark.line + 1, PREFIXES[mark.scheduler].word
    if mark.scheduler is not scheduler:
        text = f"#{word} is not read: {scheduler.value} reads this script"
    else:
        text = f"#{word} is ignored: {mark.ignored}"
    return Problem(line, text, ProblemKind.IGNORED)


def _whole(text: str, scheduler: Scheduler | None, problems: list[Problem]) -> None:
    """Properties of the file for which sbatch refuses it."""
    if scheduler not in (None, Scheduler.SLURM):
        return
    if not text.strip():
        problems.append(Problem(1, "the script is empty; sbatch refuses it", ProblemKind.SCRIPT))
    elif not text.startswith("#!"):
        why = "the first line does not start with #!; sbatch refuses the script"
        problems.append(Problem(1, why, ProblemKind.SCRIPT))
    if "\r\n" in text:
        why = "the script has Windows line endings (CR LF), which sbatch refuses; run dos2unix"
        problems.append(Problem(1, why, ProblemKind.SCRIPT))


def _nowhere(_start: int, _end: int) -> Place | None:
    return None
