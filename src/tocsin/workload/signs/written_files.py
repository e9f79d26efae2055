"""Files that a script writes: their contents, and the signs in them."""

import re
from collections.abc import Sequence

from tocsin.workload.signs.computed_kinds import ENDPOINT, HANDS_ON, RUNS, Found
from tocsin.workload.signs.file_kinds import PAPER, SETTINGS_FILE, SHELL_FILE, is_file
from tocsin.workload.signs.foreign import runs_unwritten
from tocsin.workload.signs.origins import Origins
from tocsin.workload.signs.reserved_words import program_of
from tocsin.workload.signs.server_addresses import (
    has_address,
    has_built_address,
    has_host_and_port,
    has_template,
)
from tocsin.workload.signs.statements import Statement
from tocsin.workload.signs.values import COMPUTED, UNKNOWN, Value, base
from tocsin.workload.signs.write_targets import write_targets

__all__ = ["WrittenFiles"]

_SHELL_SCRIPT = re.compile(r"\s*#!.*sh\b|\s*#(?:SBATCH|PBS|BSUB|\$)")
_TYPED = "typed"
_PARTLY_NUMBERED = re.compile(
    r"(?<![\w.])(?:(?:\d{1,3}|%\w|\{\w*\})\.){3}(?:\d{1,3}|%\w|\{\w*\}):\d{2,5}(?![\w.])"
)
"""The address of a server with a number that another program fills in."""
_SPELLED_KEY = re.compile(r"\"\w*\\u00[4-7][0-9a-fA-F](?:\w|\\u00)*\"\s*:")
"""The name of a setting whose letters are escaped."""
_LONGEST_BODY = 65536


class WrittenFiles:
    """The files of one script, by name."""

    def __init__(self, origins: Origins) -> None:
        self.origins = origins
        self.bodies: dict[str, str] = {}
        """The contents of files that the script writes, if written out."""
        self.lines: dict[str, int] = {}
        """The line where each file is first written."""
        self.handed: list[Sequence[str]] = []
        """The words of programs, which may name files that they read."""

    def note(self, statement: Statement, given: Value | None) -> Found:
        """Record what a statement writes into a file."""
        origins = self.origins
        targets = [
            base(origins.value(target).text)
            for operator, target in statement.redirections
            if is_file(operator, target)
        ]
        place = program_of(statement.words)
        words = statement.words[place:]
        name = base(words[0]) if words else ""
        targets += [base(origins.value(word).text) for word in write_targets(name, words[1:])]
        if not targets:
            return
        value = origins.printed(statement, given)
        if name in ("cp", "mv", "install"):
            value = origins.given(statement, given) or value
        file = targets[0]
        if value.origin == COMPUTED:
            if SETTINGS_FILE.search(file):
                yield statement.line, HANDS_ON
            return
        if not value.text.strip(UNKNOWN):
            return
        if (
            not SHELL_FILE.search(file)
            and not PAPER.search(file)
            and not _SHELL_SCRIPT.match(value.text)
            and runs_unwritten(value.text)
        ):
            yield statement.line, RUNS
        for name in targets:
            self.bodies[name] = (self.bodies.get(name, "") + value.text)[-_LONGEST_BODY:]
            self.lines.setdefault(name, statement.line)

    def type_in(self, line: int, text: str) -> None:
        """Append text to what was typed before."""
        self.bodies[_TYPED] = (self.bodies.get(_TYPED, "") + text)[-_LONGEST_BODY:]
        self.lines.setdefault(_TYPED, line)

    def addresses(self) -> Found:
        """Addresses of servers in files that programs read."""
        papers = any(map(PAPER.search, self.lines))
        handed = {base(word) for words in self.handed for word in words} if papers else set()
        for name, line in self.lines.items():
            body = self.bodies.get(name, "")
            if (not PAPER.search(name) or name in handed) and (
                has_address(body)
                or (":" in body and _PARTLY_NUMBERED.search(body))
                or has_built_address(body)
                or has_host_and_port(body)
                or ("\\u00" in body and _SPELLED_KEY.search(body))
                or (not SHELL_FILE.search(name) and has_template(body))
            ):
                yield line, ENDPOINT
