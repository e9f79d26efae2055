"""Text that shells and similar programs are given to run: as words, by a pipe, in a file or in a variable."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise

from tocsin.workload.signs.arguments import JOINED
from tocsin.workload.signs.computed_kinds import RUNS, TOO_MUCH, Found
from tocsin.workload.signs.file_kinds import CODE_FILE
from tocsin.workload.signs.foreign import runs_unwritten
from tocsin.workload.signs.origins import Origins
from tocsin.workload.signs.programs import SHELLS, SUBMITS
from tocsin.workload.signs.server_addresses import has_template
from tocsin.workload.signs.statements import Statement, statements
from tocsin.workload.signs.substitutions import substituted_commands
from tocsin.workload.signs.values import (
    COMPUTED,
    OWN,
    OWN_PIECE,
    PERHAPS,
    PIECE,
    UNKNOWN,
    WRITTEN,
    Value,
    base,
)
from tocsin.workload.signs.written_files import WrittenFiles

__all__ = ["RunText"]

_READ_COMMANDS = SHELLS | SUBMITS
_RUN_WHOLE = frozenset("eval coproc parallel systemd-run screen watch ssh tmux flock script".split())  # noqa: SIM905
"""Programs that run all their words as one command."""
_PLACEHOLDER = re.compile(r"\{[\w./#%-]{0,9}\}")
_MORE_THAN_A_PORT = re.compile(
    r"connect|send|recv|exec|eval|open|system|subprocess|__|\bos\b|import(?!\s+socket\b)|from\s+(?!contextlib|socket)|^(?!\s*(?:srun\s[^'\"]*)?python[\d.]*\s+-c\s)"
)
"""More than code that asks the system for a free port, as jobs with a server of their own do."""
_INPUT_OF_CRON = re.compile(r"(?<![\\+%-])%[A-Za-z]{3}")
"""What follows a percent sign is the input of the command."""
_LOCAL_FILE = re.compile(r"(?![-/~$])[\w./-]*\w$")
_MOST_NESTED = 1000
_DEEPEST = 6
_LONGEST_KEY = 12


class RunText(ABC):
    """What is known of a script's variables and files, and the text that it runs."""

    def __init__(self) -> None:
        self.origins = Origins()
        self.files = WrittenFiles(self.origins)
        self.depth = 0
        self._reading: set[tuple[str, Value | None]] = set()
        """Files whose commands are being walked, with their arguments."""
        self.renamed: set[str] = set()
        """Names that the script gives to another program."""
        self.addresses = False
        """The current text may have addresses of servers."""

    @abstractmethod
    def walk(self, found: Sequence[Statement]) -> Found:
        """The signs in statements, in order."""

    def text(self, statement: Statement, name: str, words: Sequence[str], given: Value | None) -> Found:
        """What a shell or similar program is given to run."""
        origins, line = self.origins, statement.line
        values = [origins.value(word) for word in words]
        for word, value in zip(words, values, strict=True):
            substituted = "$(" in word or "`" in word or ("<(" in word)
            if value.origin == COMPUTED or (
                value.origin == OWN and (substituted or JOINED.search(value.text))
            ):
                yield line, RUNS
            if word.startswith("--export=") or word.startswith("-v"):
                for setting in word.removeprefix("--export=").removeprefix("-v").split(","):
                    origins.assign(setting)
        if name in _READ_COMMANDS and sum(word[:1] != "-" for word in words) > 1:
            origins.put("@", OWN_PIECE)
        if name in ("tmux", "screen"):
            self.files.type_in(
                line,
                "".join(value.text for word, value in zip(words, values, strict=True) if _is_typed(word)),
            )
        read = next(
            (
                base(origins.value(target).text)
                for operator, target in statement.redirections
                if operator == "<"
            ),
            "",
        )
        if read in self.files.bodies:
            yield from self.file(line, read)
        elif given is not None:
            yield from self._fed(line, name, given)
        for word, value in zip(words, values, strict=True):
            file = base(value.text)
            if origins.loose and name in _READ_COMMANDS and _LOCAL_FILE.match(value.text):
                yield line, RUNS
            if (
                origins.files.get(file) == COMPUTED
                or file in origins.assembled
                or value.text.startswith(("/dev/fd/", "/proc/self/fd/"))
            ):
                yield line, RUNS
            elif file in self.files.bodies and name not in ("eval", "trap", "ssh", "alias"):
                yield from self.file(line, file)
            if value == PERHAPS:
                continue
            if " " in value.text or (word[:1] in "\"'$" and name == "eval"):
                yield from self.nested(line, value.text.removeprefix("--wrap="))
        if name in _RUN_WHOLE and words:
            whole = " ".join(
                word if value.origin == WRITTEN else value.text if value != PERHAPS else UNKNOWN
                for word, value in zip(words, values, strict=True)
            )
            yield from self.nested(
                line, _PLACEHOLDER.sub(PIECE, whole) if name == "parallel" else whole, skip=name == "parallel"
            )

    def _fed(self, line: int, name: str, given: Value) -> Found:
        """What a shell or similar program reads."""
        if given.origin == COMPUTED:
            yield line, RUNS
        elif name in _READ_COMMANDS:
            if given.text == PIECE or (name == "crontab" and _INPUT_OF_CRON.search(given.text)):
                yield line, RUNS
            else:
                yield from self.nested(line, given.text)
        elif runs_unwritten(given.text):
            yield line, RUNS

    def nested(self, line: int, text: str, *, skip: bool = False) -> Found:
        """The commands of a text that a shell is given."""
        if not text.strip():
            return
        if self.depth >= _DEEPEST:
            yield line, TOO_MUCH
            return
        self.origins.work += len(text) // 100
        self.depth += 1
        addresses, self.addresses = self.addresses, True
        try:
            found = statements(text.replace(UNKNOWN, "${_outside_}").replace(PIECE, "${_own_}")).found
            if len(found) > _MOST_NESTED:
                yield line, TOO_MUCH
                found = found[:_MOST_NESTED]
            self.origins.values["_own_"] = OWN_PIECE
            if skip and found:  # its own options and lists come first
                words = [word for word in found[0].words if word[:1] != "-"]
                found = [found[0]._replace(words=words), *found[1:]] if words else found
            yield from [(line, why) for _, why in self.walk(found)]
        finally:
            self.depth -= 1
            self.addresses = addresses

    def substituted(self, statement: Statement) -> Found:
        """The commands that a shell runs while it expands a statement's words."""
        for word in statement.words:
            if "${" in word and "=" in word:  # it may set a variable
                self.origins.value(word)
        for text in substituted_commands(statement):
            if "getsockname" in text and not _MORE_THAN_A_PORT.search(text):
                continue
            if self.depth >= _DEEPEST:
                yield statement.line, TOO_MUCH
                return
            self.depth += 1
            try:
                yield from [(statement.line, why) for _, why in self.walk(statements(text).found)]
            finally:
                self.depth -= 1

    def file(self, line: int, name: str) -> Found:
        """The commands of a file that the script wrote; one that calls itself with the same arguments adds nothing."""
        body = self.files.bodies.get(name, "")
        head = body.lstrip().partition("\n")[0]
        if (head[:2] == "#!" and "sh" not in head) or CODE_FILE.search(name):
            if runs_unwritten(body):
                yield line, RUNS
            return
        call = (name, self.origins.values.get("@"))
        if call not in self._reading:
            self._reading.add(call)
            yield from self.nested(line, body)
            self._reading.remove(call)

    def builtin(self, line: int, name: str, words: Sequence[str]) -> Found:
        """What a shell builtin is told to run later or instead."""
        if name == "fc":
            yield line, RUNS
        elif name == "hash":
            self.renamed.update(words[words.index("-p") + 2 :] if "-p" in words else ())
        elif name == "enable":
            self.renamed.update(words if any(word[:2] == "-f" for word in words) else ())
        elif name == "jobs":
            if "-x" in words:
                yield from self.nested(line, " ".join(words[words.index("-x") + 1 :]))
        else:
            for option, word in pairwise(words):
                if option in ("-C", "-W", "-F"):
                    value = self.origins.value(word)
                    if value.origin == COMPUTED:
                        yield line, RUNS
                    yield from self.nested(line, value.text)

    def hook(self, line: int, word: str) -> Found:
        """What is assigned to a variable whose value other programs run."""
        value = self.origins.value(word.partition("=")[2])
        if value.origin == COMPUTED or base(value.text) in self.files.bodies or has_template(value.text):
            yield line, RUNS
        elif " " in value.text:
            yield from self.nested(line, value.text.lstrip("|"))


def _is_typed(word: str) -> bool:
    """Whether a word of tmux or screen may be text that it types: not an option, subcommand, key or window name."""
    return word[:1] != "-" and (not word.isalpha() or len(word) > _LONGEST_KEY)
