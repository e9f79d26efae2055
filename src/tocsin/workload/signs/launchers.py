"""Programs that run others: wrappers such as srun, options such as -exec, and what a program gets that is not known."""

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property

from tocsin.workload.signs.arguments import handed
from tocsin.workload.signs.computed_kinds import ENDPOINT, HANDS_FETCHED, HANDS_ON, RUNS, Found
from tocsin.workload.signs.effort import Effort
from tocsin.workload.signs.fetched import fetched_files
from tocsin.workload.signs.file_kinds import (
    PAPER,
    RECIPE,
    SCRIPT_FILE,
    SETTINGS_FILE,
    SHELL_FILE,
    STARTUP_FILE,
)
from tocsin.workload.signs.foreign import makes_text, runs_unwritten
from tocsin.workload.signs.given_files import given_files
from tocsin.workload.signs.host_and_port import names_host_and_port
from tocsin.workload.signs.host_names import names_host, strings_of
from tocsin.workload.signs.printing_programs import CODE
from tocsin.workload.signs.programs import EXECUTORS, NETWORK, RUN_SUBCOMMANDS, SHELLS
from tocsin.workload.signs.recipes import puts_together
from tocsin.workload.signs.run_text import RunText
from tocsin.workload.signs.sed_programs import sed_runs
from tocsin.workload.signs.server_addresses import has_address, has_host_and_port
from tocsin.workload.signs.statements import Statement
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
"""What stands before a command in a word: a setting's name, a transport of git, an option."""
_READ_ONLY = frozenset(
    "cat ls rm chmod chown head tail wc grep stat file du touch sha256sum md5sum cp mv sed ln".split()  # noqa: SIM905
)
"""Programs that leave a file as it is, or whose effect on it is followed."""
_SPLITS = re.compile(r"-\w*S|--split-")
_READS_WORDS = re.compile(r"-a|--arg-file")
_SED_OPTION = re.compile(r"-\w*([ef])$|--(expression|file)=?|-([ef])")
_IN_PLACE = re.compile(r"-\w*i|--in-place")
_TUNNEL = re.compile(r"(?:-\w{0,4}L\s?[\"']?(?:[\w.*\[\]-]{1,60}:)?|LocalForward\W{1,3})(\d{2,5})(?=[:\s])")
"""The port of this machine that leads to another one."""
_FILLED_COMMAND = re.compile(
    r"^[^#\n]{0,80}?(?:^|[=:!\"'\s])(?:\.{1,2}|~|%h|\$\{?\w+\}?|/\w[\w.-]*)?/[\w./-]++(?<=\w)\s+(?:[^\n#]{0,80}\s)?-{1,2}\w[\w-]*[ =][^\s#]{0,40}(?:[{$<]|%\w)",
    re.MULTILINE,
)
"""A command in settings of another program, with places that this one fills in."""
_CALLED_WITH_TEXT = re.compile(
    r"\w\s?\([^\n()]{0,200}[\"']|\([\w*-]+\s[^\n]{0,200}\"|\$\w+\s*=\s*\"|=\s*\"[^\"\n]*\"\s*[\^+.&]"
)
_MAIL = re.compile(
    r"(?:^|\.)(?:gmail|googlemail|outlook|hotmail|yahoo|icloud|protonmail|163|126|qq|gmx|web|mail)\.[a-z.]{2,6}$|[:/]"
)
"""Hosts of mail, and copies from another host."""
_SHOWN = re.compile(r"\s*(?:#|echo\s[^|>]*$)")
_NAME = re.compile(r"[\w.+-]+")
_SHELL_SCRIPT = re.compile(r"\s*#!.*sh\b")


class Launchers(RunText):
    """What a script runs by way of another program."""

    def __init__(self, script: str, effort: Effort) -> None:
        super().__init__()
        self.script = script
        self.effort = effort
        self._walked: set[str] = set()
        """Files that the script wrote and whose commands were walked."""

    @cached_property
    def fetched(self) -> frozenset[str]:
        """The names of files of settings that it fetches."""
        lines = [line for line in self.script.split("\n") if "://" in line] if "://" in self.script else []
        names = (base(name) for line in lines for name in fetched_files(line))
        return frozenset(filter(SETTINGS_FILE.search, names))

    @cached_property
    def tunnels(self) -> frozenset[str]:
        """Ports of this machine that lead to another one."""
        if "ssh" not in self.script:
            return frozenset()
        lines = [line for line in self.script.split("\n") if not _SHOWN.match(line)]
        return frozenset(port for line in lines for port in _TUNNEL.findall(line))

    @cached_property
    def _names(self) -> Counter[str]:
        """How often each word, or part of a path, is in the script."""
        return Counter(_NAME.findall(self.script))

    @property
    @abstractmethod
    def redefined(self) -> frozenset[str]:
        """Names that may have another meaning than the usual one."""

    @abstractmethod
    def program(
        self, statement: Statement, words: Sequence[str], given: Value | None, settings: Sequence[str] = ()
    ) -> Found:
        """The signs in a program with its words."""

    def file(self, line: int, name: str) -> Found:
        self._walked.add(name)
        yield from super().file(line, name)

    def nested(self, line: int, text: str, *, skip: bool = False) -> Found:
        if _COMMAND_OF_SSH.match(text):
            text = _COMMAND_OF_SSH.sub("", text, count=1).replace("%h", PIECE).replace("%p", PIECE)
        yield from super().nested(line, text, skip=skip)

    def unnamed_files(self) -> Found:
        """Commands of files that the script wrote and did not run by name: hooks, and what a shell reads when it starts."""
        for name, body in list(self.files.bodies.items()):
            if self.effort.over():
                return
            line = self.files.lines.get(name, 1)
            read = not PAPER.search(name) or self._names[name] > 1
            text = strings_of(body) if SCRIPT_FILE.search(name) else body
            if read and names_host(text, web=SETTINGS_FILE.search(name) is not None):
                yield line, ENDPOINT
            if (
                (RECIPE.search(name) and puts_together(body))
                or (SCRIPT_FILE.search(name) and makes_text(body))
                or (
                    not SHELL_FILE.search(name)
                    and not SCRIPT_FILE.search(name)
                    and _FILLED_COMMAND.search(body)
                )
            ):
                yield line, RUNS
            elif name not in self._walked and (
                SHELL_FILE.search(name) or STARTUP_FILE.match(name) or _SHELL_SCRIPT.match(body)
            ):
                yield from self.file(line, name)

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
        if name == "sed":
            yield from self._sed(line, words, given)
        elif name in EXECUTORS:
            yield from self._executor(statement, name, words, given)

    def _executor(self, statement: Statement, name: str, words: Sequence[str], given: Value | None) -> Found:
        line = statement.line
        if (name == "hash" and "-p" in words) or (name == "enable" and "-f" in words):
            yield line, RUNS  # a name gets another meaning
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
            origins.files |= {file: COMPUTED for file in given_files(words) if file in origins.files}

    def unknown(
        self, statement: Statement, words: Sequence[str], given: Value | None, settings: Sequence[str] = ()
    ) -> Found:
        """What a program gets that is not known: computed words, files that the script wrote, and hosts."""
        origins, line = self.origins, statement.line
        program, words = words[0], words[1:]
        yield from handed(origins, line, words, given, settings)
        texts = [origins.value(word).text for word in words]
        given_settings = [origins.value(setting.partition("=")[2]).text for setting in settings]
        is_client = program[:1] == "-" or (program in NETWORK and program not in self.redefined)
        if not is_client and (
            names_host(" ".join([*texts, *given_settings]), institutions=True)
            or any(map(_is_user_at_host, texts))
            or names_host_and_port(texts)
            or any(text.rpartition(":")[2].rpartition("=")[2] in self.tunnels for text in texts)
        ):
            yield line, ENDPOINT
        inner = next((place for place, text in enumerate(texts) if _is_interpreter(base(text))), None)
        if inner is not None:  # a container or another program that runs one
            yield from self.program(statement, words[inner:], given)
        for text in texts:
            if " " in text and "(" in text and (runs_unwritten(text, surely=True) or makes_text(text)):
                yield line, RUNS
        if given is not None:
            if given.origin == COMPUTED or (
                given.origin == WRITTEN and _is_code(given.text) and makes_text(given.text)
            ):
                yield line, HANDS_ON
            elif _tells_server(given.text):
                yield line, ENDPOINT
        if self.fetched and not self.fetched.isdisjoint(given_files(texts)):
            yield line, HANDS_FETCHED
        if origins.files:
            inputs = [
                origins.value(target).text for operator, target in statement.redirections if operator == "<"
            ]
            for file in given_files([*texts, *inputs]):
                if origins.files.get(file) == COMPUTED:
                    yield line, HANDS_ON
                body = self.files.bodies.get(file)
                if body and _tells_server(body):
                    yield line, ENDPOINT


def _is_user_at_host(text: str) -> bool:
    """Whether a word is a user at a host, and no address of mail that people have."""
    user, sign, host = text.rpartition("@")
    return bool(sign and user) and not _MAIL.search(host) and names_host(host, web=False)


def _is_code(text: str) -> bool:
    """Whether a text looks like code: brackets and texts in quotes, close to each other."""
    return _CALLED_WITH_TEXT.search(text) is not None


def _is_interpreter(name: str) -> bool:
    return name in SHELLS or CODE.match(name) is not None


def _tells_server(settings: str) -> bool:
    return has_address(settings) or has_host_and_port(settings) or names_host(settings)


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


def _looks_like_program(word: str) -> bool:
    return word[:1] in "./~" or "/bin/" in word
