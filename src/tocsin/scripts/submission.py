"""A job's script together with the command line that submitted it."""

import shlex
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from tocsin.core.detector import Known
from tocsin.core.errors import ScriptError
from tocsin.scripts.edits import apply, edit
from tocsin.scripts.environment import options_set, split_assignments
from tocsin.scripts.options import Directive
from tocsin.scripts.request import Value
from tocsin.scripts.scheduler import Scheduler
from tocsin.scripts.script import SHORT, Script, parse

__all__ = ["Submission", "components", "edited", "read_submissions", "without_environment"]

_LONGEST_LINE = 100_000


@dataclass(frozen=True, slots=True)
class Submission:
    """A script with its command line, and what the job record does not contain."""

    script: Script
    fixed: bool
    """The number of nodes is given, and is not a range."""
    memory_per: str | None
    """What requested memory is counted per: node, cpu or gpu; None without a request."""

    submit_line: str | None = None

    @property
    def environment(self) -> list[Directive]:
        """The options in effect that the submitter's environment sets."""
        script = self.script
        return [d for at, d in enumerate(script.directives) if d.source and at in script.effective]

    @property
    def set_by_environment(self) -> set[str]:
        """The options that variables set, also those that written options override."""
        with suppress(ValueError):  # an unclosed quote
            return options_set(split_assignments(shlex.split(self.submit_line or ""))[0])
        return set()

    def value(self, option: str) -> str:
        """The value of its last occurrence; empty if there is none."""
        given = self.last(option)
        return (given.value if given else None) or ""

    def values(self, option: str) -> list[str]:
        """The value of each occurrence, in order."""
        return [d.value or "" for d in self.script.directives if d.option == option]

    def last(self, option: str) -> Directive | None:
        """The last occurrence of the option; the command line comes last."""
        return next((d for d in reversed(self.script.directives) if d.option == option), None)


def read_submissions(
    known: Known, submitted: Iterable[tuple[str | None, str | None]]
) -> list[Submission | None]:
    """One for each (script digest, submit line); None if the script is not stored."""
    texts: dict[str, str | None] = {}
    scheduler = None if known.machine is None else Scheduler.SLURM  # only nodes of Slurm clusters are read
    found: list[Submission | None] = []
    for digest, submit_line in submitted:
        if digest is not None and digest not in texts:
            texts[digest] = known.script(digest)
        text = texts[digest] if digest is not None else None
        found.append(None if text is None else _submission(text, submit_line, scheduler))
    return found


def edited(submission: Submission, field: str, value: Value) -> Submission | None:
    """The submission with its script edited; None if no directive can express the change."""
    try:
        text = apply(submission.script.text, [edit(submission.script, field, value)])
    except ScriptError:
        return None
    return _submission(text, submission.submit_line, submission.script.scheduler)


def without_environment(submission: Submission) -> Submission:
    """The same submission with the options of the command line alone."""
    words = shlex.split(submission.submit_line or "")
    line = shlex.join(split_assignments(words)[1])
    return _submission(submission.script.text, line, submission.script.scheduler)


def _submission(text: str, submit_line: str | None, scheduler: Scheduler | None) -> Submission:
    short = len(text) + len(submit_line or "") <= SHORT
    return (_remembered if short else _read)(text, submit_line, scheduler)


def _read(text: str, submit_line: str | None, scheduler: Scheduler | None) -> Submission:
    script = parse(text, scheduler=scheduler)
    if submit_line and submit_line.strip() and len(submit_line) < _LONGEST_LINE:
        with suppress(ValueError):  # an unclosed quote
            words = shlex.split(submit_line)
            # before submission there are only options, without the command; a colon ends an empty component
            first = next(iter(split_assignments(words)[1]), "-")
            script = script.with_options(words, only_options=first.startswith(("-", ":")))
    if len(script.components) > 1:  # it is unknown which component the job is
        return Submission(script=script, fixed=False, memory_per=None, submit_line=submit_line)
    return _described(script, submit_line)


_remembered = lru_cache(maxsize=256)(_read)


def components(submission: Submission) -> list[Submission]:
    """The components of a heterogeneous job, each as a submission of its own."""
    script = submission.script
    return [
        _described(script.component(index), submission.submit_line) for index in range(len(script.components))
    ]


def _described(script: Script, submit_line: str | None) -> Submission:
    nodes = [d for d in script.directives if d.field == "req_nodes"]
    memory = [d for d in script.directives if d.field == "req_memory"]
    return Submission(
        script=script,
        fixed=bool(nodes) and (nodes[-1].value or "").isdigit() and bool((nodes[-1].value or "").strip("0")),
        memory_per=memory[-1].per if memory else None,
        submit_line=submit_line,
    )
