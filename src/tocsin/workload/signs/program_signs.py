"""What each program of a script runs or gets, by what is known of that program."""

import re
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

from tocsin.workload.signs.arguments import is_built, is_computed, is_put_together
from tocsin.workload.signs.client_commands import redefined
from tocsin.workload.signs.computed_kinds import ENDPOINT, HANDS_ON, RUNS, Found
from tocsin.workload.signs.effort import Effort
from tocsin.workload.signs.host_and_port import names_host_and_port
from tocsin.workload.signs.host_names import names_host
from tocsin.workload.signs.inline_code import inline_code
from tocsin.workload.signs.launchers import HOOKS, Launchers
from tocsin.workload.signs.origins import Origins
from tocsin.workload.signs.printing_programs import CODE
from tocsin.workload.signs.programs import (
    DISPLAYS,
    ENDS,
    KNOWN,
    MAKERS,
    NETWORK,
    NO_PROGRAM,
    RUN_TEXT,
    WRAPPERS,
    is_known_path,
)
from tocsin.workload.signs.server_addresses import FAR_HOST, has_template
from tocsin.workload.signs.statements import Statement
from tocsin.workload.signs.values import COMPUTED, OWN, OWN_PIECE, Value, base

__all__ = ["IDLE", "MORE_HOOKS", "NEED_SERVERS", "RUN_OTHERS", "ProgramSigns"]

IDLE = frozenset(
    "module cd echo mkdir rm ls date sleep exit wait ml hostname ulimit unset cp mv pwd true".split()  # noqa: SIM905
)
"""Most commands of most scripts, which run nothing else."""
NEED_SERVERS = DISPLAYS | NETWORK
"""Programs for which a server's address is ordinary."""
RUN_OTHERS = RUN_TEXT | WRAPPERS
_COPIES = frozenset("ssh autossh sshpass scp sftp rsync lftp ftp git rclone globus".split())  # noqa: SIM905
"""Clients for which a host without a protocol is ordinary."""
_RELAY = re.compile(r"(?:nc|ncat|netcat|socat|telnet)$")
_ARRAY = re.compile(r"\"?\$(?:\{?([@*])\}?|\{(\w+)\[[@*]\]\})\"?$")
MORE_HOOKS = re.compile(
    r"(?:PS[0-4]|BASH_ALIASES\[[^\]]*\]|\w+_RSH|\w*(?:OPTIONS|FLAGS|OPTS?|ASKPASS|AGENT|SHELL|PROFILE|STARTUP))\+?="
)
"""Variables whose value other programs, or the shell, may run."""
_SUBCOMMANDS = frozenset("run exec".split())  # noqa: SIM905
"""Subcommands of known programs that run what follows."""
_BUILTINS = frozenset("fc hash enable jobs mapfile readarray compgen complete".split())  # noqa: SIM905
"""Shell builtins that may be told to run others."""


class ProgramSigns(Launchers):
    """The programs of a script, with their words."""

    def __init__(self, script: str, effort: Effort) -> None:
        super().__init__(script, effort)
        self.built: list[tuple[int, str, str, str]] = []
        """Words that are not written out: line, program, word and value."""

    @cached_property
    def redefined(self) -> frozenset[str]:
        """Names that may not have their usual meaning."""
        return redefined(self.script)

    def is_own_client(self, name: str, words: Sequence[str]) -> bool:
        """Whether a client may be another program of that name: the script sets where programs are, and gives it a host."""
        return (
            name not in _COPIES and "PATH" in self.origins.values and names_host(" ".join(words), web=False)
        )

    def program(
        self, statement: Statement, words: Sequence[str], given: Value | None, settings: Sequence[str] = ()
    ) -> Found:
        origins, line = self.origins, statement.line
        if words[0] in IDLE and not settings and given is None and words[0] not in origins.functions:
            if words[0] != "echo":
                yield from _address_for(origins, line, words[1:])
            return
        self.built += [(line, words[0], word, origins.value(word).text) for word in words if is_built(word)]
        program = origins.value(words[0])
        if is_computed(program, words[0]):
            yield line, RUNS
            return
        if origins.arrays and (found := _ARRAY.match(words[0])) and (found[1] or found[2]) in origins.arrays:
            yield from self.nested(line, f"{origins.arrays[found[1] or found[2]]} {' '.join(words[1:])}")
            return
        if program == OWN_PIECE and words[0].startswith("${_own_}"):
            yield line, RUNS
            return
        if " " in program.text and words[0][:1] == "$":  # a whole command in a variable
            yield from self.nested(line, f"{program.text} {' '.join(words[1:])}")
            return
        name = base(program.text)
        if name in NO_PROGRAM or name in ENDS:
            return
        if name not in DISPLAYS and any("'" in word and has_template(word) for word in words[1:]):
            yield line, HANDS_ON
        if origins.files.get(name) == COMPUTED or (name in origins.assembled and name not in KNOWN):
            yield line, RUNS
        yield from self._by_kind(statement, program.text, words, given, settings)
        if name in self.files.bodies and name not in KNOWN:
            if len(words) > 1:
                origins.put("@", OWN_PIECE)
            yield from self.file(line, name)

    def _by_kind(
        self,
        statement: Statement,
        path: str,
        words: Sequence[str],
        given: Value | None,
        settings: Sequence[str],
    ) -> Found:
        """The signs in a program's words, by what is known of the program."""
        origins, line, name = self.origins, statement.line, base(path)
        if name in ("export", "declare", "typeset", "readonly"):
            for word in words[1:]:
                if HOOKS.match(word) or MORE_HOOKS.match(word):
                    yield from self.hook(line, word)
        elif name in self.renamed:
            yield from self.unknown(statement, words, given, settings)
        elif name in _BUILTINS:
            yield from self.builtin(line, name, words[1:])
        elif name in origins.functions:
            texts = [origins.value(word).text for word in words[1:]]
            if names_host(" ".join(texts)) or names_host_and_port(texts):
                yield line, ENDPOINT
        elif not is_known_path(path) and not CODE.match(name) and name not in RUN_OTHERS:
            yield from self.unknown(statement, words, given, settings)
        elif name in RUN_TEXT:
            yield from self.text(statement, name, words[1:], given)
        elif name in WRAPPERS:
            if name == "xargs" and given is not None and names_host(given.text):
                yield line, HANDS_ON
            yield from self.wrapped(statement, name, words, given)
        elif CODE.match(name) or MAKERS.match(name):
            code = _without_settings(words[1:]) if name.endswith("awk") else words[1:]
            yield from inline_code(self.files, line, name, code, given)
        elif name in KNOWN:
            if not _SUBCOMMANDS.isdisjoint(words[1:4]):
                at = next(at for at, word in enumerate(words) if at and word in _SUBCOMMANDS)
                yield from self.nested(line, " ".join(words[at + 1 :]))
            if name not in NEED_SERVERS:
                yield from _address_for(origins, line, words[1:])
            yield from self.known(statement, name, words[1:], given)
        else:
            if name in ("cpio", "bsdtar", "7z", "ar") and given is not None and given.origin >= OWN:
                yield line, RUNS
            if _RELAY.match(name) and FAR_HOST.search(" ".join(words[1:])):
                yield line, ENDPOINT
            yield from self.unknown(statement, words, given, settings)


def _address_for(origins: Origins, line: int, words: Sequence[str]) -> Found:
    """An address that is put together, for a program of which only the name is known."""
    for word in words:
        if ":" in word and is_built(word) and is_put_together(origins.value(word), word):
            yield line, HANDS_ON


def _without_settings(words: Sequence[str]) -> list[str]:
    """The words of awk without the values of its variables, which are data unless its code runs them."""
    return [word for option, word in pairwise(("", *words)) if "-v" not in (option, word)]
