"""Programs that run others: wrappers such as srun, and options such as -exec."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from tocsin.workload.signs.computed_kinds import HANDS_ON, RUNS, Found
from tocsin.workload.signs.given_files import given_files
from tocsin.workload.signs.printing_programs import DECODERS, FILTERS
from tocsin.workload.signs.programs import EXECUTORS, RUN_SUBCOMMANDS
from tocsin.workload.signs.sed_programs import sed_runs
from tocsin.workload.signs.statements import Statement
from tocsin.workload.signs.unknown_programs import UnknownPrograms
from tocsin.workload.signs.values import CHANGED, COMPUTED, OWN, OWN_PIECE, PIECE, WRITTEN, Value, base

__all__ = ["HOOKS", "Launchers"]

_TAKES = re.compile(r"-(?:n|N|c|p|np|t|w|s|k|I|d|L|P|a|G|x|H|C|m|A|J|o|e|D|host|hosts|-\w[\w-]*)$")
"""Options of wrappers that may have a value of their own."""
HOOKS = re.compile(
    r"(?:BASH_ENV|PROMPT_COMMAND|LD_PRELOAD|LD_AUDIT|MAKEFILES|VIMINIT|PYTHONSTARTUP|PERL5OPT|RUBYOPT|NODE_OPTIONS|GIT_\w+|PAGER|EDITOR"
    r"|VISUAL|LESSOPEN|LESSCLOSE|MANPAGER|BROWSER|SSH_ASKPASS|R_PROFILE\w*|BASH_FUNC_[^=\s]+|ENV)="
)
"""Variables whose value other programs run."""
_EXECUTES = re.compile(
    r"-exec(?:dir)?$|-ok(?:dir)?$|--to-command|--checkpoint-action|--use-compress-program|--rsh|--filter|--exec$|ProxyCommand|LocalCommand"
)
_COMMAND_OF_SSH = re.compile(r"^(?:Proxy|Local|Remote|KnownHosts)Command[ =]")
_BEFORE_COMMAND = re.compile(r"(?:-{0,2}[\w.-]*=|\w+::|[!|]|-\w(?=[./~!]))+")
"""What precedes a command in a word: a setting's name, a transport of git, an option."""
_READ_ONLY = frozenset(
    "cat ls rm chmod chown head tail wc grep stat file du touch sha256sum md5sum cp mv sed ln".split()  # noqa: SIM905
)
"""Programs that do not change a file, or whose effect on it is followed."""
_CHANGES = DECODERS | FILTERS
"""Programs that print their input in another form."""
_SPLITS = re.compile(r"-\w*S|--split-")
_READS_WORDS = re.compile(r"-a|--arg-file")
_SED_OPTION = re.compile(r"-\w*([ef])$|--(expression|file)=?|-([ef])")
_IN_PLACE = re.compile(r"-\w*i|--in-place")


class Launchers(UnknownPrograms):
    """What a script runs through another program."""

    def nested(self, line: int, text: str, *, skip: bool = False) -> Found:
        if _COMMAND_OF_SSH.match(text):
            text = _COMMAND_OF_SSH.sub("", text, count=1).replace("%h", PIECE).replace("%p", PIECE)
        yield from super().nested(line, text, skip=skip)

    def wrapped(self, statement: Statement, name: str, words: Sequence[str], given: Value | None) -> Found:
        line = statement.line
        if name == "env" and any(map(_SPLITS.match, words)):
            texts = [_SPLITS.sub("", word, count=1) if word[:1] == "-" else word for word in words[1:]]
            yield from self.text(statement, "eval", texts, None)
            return
        if name == "command" and words[1:2] in (["-v"], ["-V"]):
            return
        if name == "xargs" and given is not None and given.origin >= OWN:
            yield line, HANDS_ON
        place = 1
        while place < len(words):
            word = words[place]
            if word[:1] == "-":
                if word.startswith("--export="):
                    for setting in word[9:].split(","):
                        self.origins.assign(setting)
                if name == "xargs" and _READS_WORDS.match(word):
                    files = given_files([word, *words[place + 1 : place + 2]])
                    if any(self.origins.files.get(file, 0) >= OWN for file in files):
                        yield line, HANDS_ON
                if (
                    _TAKES.match(word)
                    and place + 1 < len(words)
                    and not _looks_like_program(words[place + 1])
                ):
                    place += 1
                yield from self._command_in(line, words[place])
            elif name == "env" and "=" in word:
                self.origins.assign(word)
                if HOOKS.match(whole := self.origins.value(word).text):
                    self.origins.put("@", OWN_PIECE)
                    yield from self.hook(line, f"{whole.partition('=')[0]}='{whole.partition('=')[2]}'")
            elif not (word[:1].isdigit() or word == ":"):
                break
            place += 1
        if place >= len(words):
            return
        rest = words[place:]
        if name == "xargs" and given is not None and given.origin == WRITTEN:
            self.origins.put("@", OWN_PIECE)
            mark = next(
                (word[2:] or words[at + 1] for at, word in enumerate(words[:-1]) if word[:2] == "-I"), "{}"
            )
            rest = [word.replace(mark, "${_own_}") for word in rest]
            self.origins.values["_own_"] = OWN_PIECE
        yield from self.program(statement, rest, given)

    def known(self, statement: Statement, name: str, words: Sequence[str], given: Value | None) -> Found:
        """What a known program is told to run."""
        line = statement.line
        if name in ("tar", "unzip") and given is not None and given.origin >= OWN:
            yield line, RUNS
        if not self.origins.loose and name not in _READ_ONLY:
            self.origins.loose = any(self.origins.files.get(file) == COMPUTED for file in given_files(words))
        if name in self.origins.files and "PATH" in self.origins.values:  # it may be one of its own
            yield from self.unknown(statement, [f"./{name}", *words], given)
        if name in ("conda", "mamba") and "vars" in words:  # set when the environment is activated
            for word in words:
                self.origins.assign(word)
        if name == "sed":
            yield from self._sed(line, words, given)
        elif name in EXECUTORS:
            yield from self._executor(statement, name, words, given)

    def _executor(self, statement: Statement, name: str, words: Sequence[str], given: Value | None) -> Found:
        line = statement.line
        if (name == "hash" and "-p" in words) or (name == "enable" and "-f" in words):
            yield line, RUNS  # a name is redefined
        if name == "git" and any(map(_changes_at_checkout, pairwise(words))):
            yield line, HANDS_ON  # a checkout changes files
        if name == "split":
            self.origins.put("FILE", CHANGED)  # the names that it makes
        for place, word in enumerate(words):
            if ("-" in word or "Command" in word) and _EXECUTES.search(word.strip("\"'").partition("=")[0]):
                if "=" not in word:
                    yield from self.program(statement, words[place + 1 :], None)
                    return
            elif word in RUN_SUBCOMMANDS or (name == "jobs" and word == "-x"):
                yield from self._run_by(statement, words[place + 1 :])
                return
            if self.origins.value(word).origin == COMPUTED:
                yield line, HANDS_ON
            else:
                yield from self._command_in(line, word)
        if given is not None:
            if given.origin == COMPUTED and name == "sftp":
                yield line, RUNS
            for command in given.text.split("\n") if "!" in given.text else ():
                if command[:1] == "!":
                    yield from self.nested(line, command[1:])

    def _run_by(self, statement: Statement, words: Sequence[str]) -> Found:
        """The command after such words as `conda run`, with its options in between."""
        place = 0
        while place < len(words) and words[place][:1] == "-":
            takes = _TAKES.match(words[place]) and not _looks_like_program(
                "".join(words[place + 1 : place + 2])
            )
            place += 2 if takes else 1
        if words[place:]:
            yield from self.walk([statement._replace(words=list(words[place:]), plain=False)])

    def _command_in(self, line: int, word: str) -> Found:
        """A command that a word of a program may be."""
        text = self.origins.value(word).text
        text = _BEFORE_COMMAND.sub("", text, count=1) if _BEFORE_COMMAND.match(text) else text
        if " " not in text and ",-" in text:
            text = text.replace(",", " ")
        if " " in text.strip():
            if "$" in text:
                self.origins.put("@", OWN_PIECE)
            yield from self.nested(line, text)

    def _sed(self, line: int, words: Sequence[str], given: Value | None) -> Found:
        origins = self.origins
        for text, is_file in _sed_programs(words):
            value = origins.value(text)
            file = base(value.text)
            if is_file and origins.files.get(file) == COMPUTED:
                yield line, RUNS
            read = (
                given.text
                if is_file and given and file in ("-", "stdin")
                else self.files.bodies.get(file, "")
            )
            if sed_runs(read if is_file else value.text):
                yield line, RUNS
        if any(map(_IN_PLACE.match, words)):
            origins.note_changed([file for file in given_files(words) if file in origins.files])


def _sed_programs(words: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """The programs among the words of sed, and whether each is the name of a file."""
    named = False
    place = 0
    while place < len(words):
        word = words[place]
        if found := _SED_OPTION.match(word) if word[:1] == "-" else None:
            named = True
            is_file = (found[1] or found[2] or found[3])[0] == "f"
            rest = word[found.end() :]
            if not rest:
                place += 1
                rest = words[place] if place < len(words) else ""
            yield rest, is_file
        place += 1
    if not named:
        yield next((word for word in words if word[:1] != "-"), ""), False


def _changes_at_checkout(words: tuple[str, str]) -> bool:
    """Whether a setting of git is a filter that changes the text of files at checkout."""
    setting, command = words
    return setting.endswith(".smudge") and base(command.strip("\"'").partition(" ")[0]) in _CHANGES


def _looks_like_program(word: str) -> bool:
    return word[:1] in "./~" or "/bin/" in word
