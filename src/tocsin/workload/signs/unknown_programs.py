"""Unknown programs: what they get, and the files that they may read."""

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
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
from tocsin.workload.signs.foreign import makes_text, names_files, runs_unwritten
from tocsin.workload.signs.given_files import given_files
from tocsin.workload.signs.host_and_port import names_host_and_port
from tocsin.workload.signs.host_names import names_host, strings_of
from tocsin.workload.signs.printing_programs import CODE
from tocsin.workload.signs.programs import NETWORK, SHELLS
from tocsin.workload.signs.recipes import puts_together
from tocsin.workload.signs.run_text import RunText
from tocsin.workload.signs.server_addresses import has_address, has_host_and_port
from tocsin.workload.signs.statements import Statement
from tocsin.workload.signs.values import COMPUTED, WRITTEN, Value, base

__all__ = ["UnknownPrograms"]

_TUNNEL = re.compile(r"(?:-\w{0,4}L\s?[\"']?(?:[\w.*\[\]-]{1,60}:)?|LocalForward\W{1,3})(\d{2,5})(?=[:\s])")
"""A local port that leads to another machine."""
_FILLED_COMMAND = re.compile(
    r"^[^#\n]{0,80}?(?:^|[=:!\"'\s])(?:\.{1,2}|~|%h|\$\{?\w+\}?|/\w[\w.-]*)?/[\w./-]++(?<=\w)\s+(?:[^\n#]{0,80}\s)?-{1,2}\w[\w-]*[ =][^\s#]{0,40}(?:[{$<]|%(?!(?<=[ =]%)[ot](?!\S))\w)",
    re.MULTILINE,
)
"""A command in the settings of another program, with placeholders that this one fills in; the number of a task is fine."""
_CALLED_WITH_TEXT = re.compile(
    r"\w\s?\([^\n()]{0,200}[\"']|\([\w*-]+\s[^\n]{0,200}\"|\$\w+\s*=\s*\"|=\s*\"[^\"\n]*\"\s*[\^+.&]"
)
_MAIL = re.compile(
    r"(?:^|\.)(?:gmail|googlemail|outlook|hotmail|yahoo|icloud|protonmail|163|126|qq|gmx|web|mail)\.[a-z.]{2,6}$|[:/]"
)
"""Mail hosts, and copies from another host."""
_COMPILED = re.compile(r"\.(?:[fF]\d*|c|cc|cpp|cu)$")
"""Code of compiled languages."""
_SHOWN = re.compile(r"\s*(?:#|echo\s[^|>]*$)")
_NAME = re.compile(r"[\w.+-]+")
_SHELL_SCRIPT = re.compile(r"\s*#!.*sh\b")


class UnknownPrograms(RunText):
    """What the unknown programs of a script get."""

    def __init__(self, script: str, effort: Effort) -> None:
        super().__init__()
        self.script = script
        self.effort = effort
        self._walked: set[str] = set()
        """Files that the script wrote and whose commands were walked."""

    @cached_property
    def fetched(self) -> frozenset[str]:
        """The names of settings files that it fetches."""
        lines = [line for line in self.script.split("\n") if "://" in line] if "://" in self.script else []
        names = (base(name) for line in lines for name in fetched_files(line))
        return frozenset(filter(SETTINGS_FILE.search, names))

    @cached_property
    def tunnels(self) -> frozenset[str]:
        """Local ports that lead to another machine."""
        if "ssh" not in self.script:
            return frozenset()
        lines = [line for line in self.script.split("\n") if not _SHOWN.match(line)]
        return frozenset(port for line in lines for port in _TUNNEL.findall(line))

    def _is_tunnel(self, text: str) -> bool:
        """Whether a word names the end of a tunnel: its port, or this machine with the usual port of the program."""
        value = text.rpartition("=")[2]
        return value.rpartition(":")[2] in self.tunnels or value in ("localhost", "127.0.0.1")

    @cached_property
    def _names(self) -> Counter[str]:
        """How often each word, or part of a path, occurs in the script."""
        return Counter(_NAME.findall(self.script))

    @property
    @abstractmethod
    def redefined(self) -> frozenset[str]:
        """Names that may not have their usual meaning."""

    @abstractmethod
    def program(
        self, statement: Statement, words: Sequence[str], given: Value | None, settings: Sequence[str] = ()
    ) -> Found:
        """The signs in a program with its words."""

    def file(self, line: int, name: str) -> Found:
        self._walked.add(name)
        yield from super().file(line, name)

    def unnamed_files(self) -> Found:
        """Commands of files that the script wrote but did not run by name: hooks, and files that a shell reads at start."""
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
                or (_COMPILED.search(name) and any(map(SETTINGS_FILE.search, names_files(body))))
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

    def unknown(
        self, statement: Statement, words: Sequence[str], given: Value | None, settings: Sequence[str] = ()
    ) -> Found:
        """What an unknown program gets: computed words, files that the script wrote, and hosts."""
        origins, line = self.origins, statement.line
        program, words = words[0], words[1:]
        yield from handed(origins, line, words, given, settings)
        texts = [origins.value(word).text for word in words]
        given_settings = [origins.value(setting.partition("=")[2]).text for setting in settings]
        is_client = program[:1] == "-" or (program in NETWORK and program not in self.redefined)
        may_name = (
            self.addresses or any(text != word for text, word in zip(texts, words, strict=True)) or settings
        )
        if (
            not is_client
            and may_name
            and (
                names_host(" ".join([*texts, *given_settings]), institutions=True)
                or any(map(_is_user_at_host, texts))
                or names_host_and_port(texts)
                or (self.tunnels and any(map(self._is_tunnel, texts)))
            )
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
            elif _has_server(given.text):
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
                if body and _has_server(body):
                    yield line, ENDPOINT


def _is_user_at_host(text: str) -> bool:
    """Whether a word is a user at a host, and not a person's email address."""
    user, sign, host = text.rpartition("@")
    return bool(sign and user) and not _MAIL.search(host) and names_host(host, web=False)


def _is_code(text: str) -> bool:
    """Whether a text looks like code: brackets and quoted texts, close to each other."""
    return _CALLED_WITH_TEXT.search(text) is not None


def _is_interpreter(name: str) -> bool:
    return name in SHELLS or CODE.match(name) is not None


def _has_server(settings: str) -> bool:
    return has_address(settings) or has_host_and_port(settings) or names_host(settings)
