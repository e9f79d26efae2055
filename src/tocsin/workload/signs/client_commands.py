"""Commands of well-known clients, for which a host and a user are ordinary options: proxies, data servers, databases."""

import re
from collections.abc import Collection

from tocsin.workload.signs.programs import CLIENTS, is_known_path
from tocsin.workload.signs.reserved_words import ASSIGNS
from tocsin.workload.signs.simple_commands import PREFIXES, Command, simple_commands

__all__ = ["redefined", "without_clients"]

_DEFINES = tuple(
    (word, re.compile(rf"{word}\s([^;|&\n]{{1,400}})"))
    for word in ("alias", "function", "hash", "enable", "cp", "mv", "ln", "install", "chmod")
)
_MADE = re.compile(r">\s{0,9}([^\s;|&<>()]{1,200})|-[oO](?<=\s-[oO])\s{0,9}([^\s;|&<>()]{1,200})")
_FUNCTION = re.compile(r"\(\s{0,9}\)")
_LONGEST_NAME = 50
"""Names that a script redefines: aliases, files that it makes, and functions. Searching for plain letters is fast."""
_WORD = re.compile(r"[^\s=\"'/;|&(){}]+")
_RUNS_OTHERS = re.compile(r"[$<>]\(|`|!|\bPATH=|\s(?:run|exec)\s|\s-?-(?:exec|command)\b")
"""A nested command, or another place to find it."""
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'")
_OPTION = re.compile(r"\s-\w")
"""In quoted text, it is an option of another program."""


def redefined(text: str) -> frozenset[str]:
    """Names in a script that may not have their usual meaning."""
    parts = [found[1] for word, pattern in _DEFINES if word in text for found in pattern.finditer(text)]
    parts += [found[1] or found[2] for found in _MADE.finditer(text)]
    for found in _FUNCTION.finditer(text):
        parts += text[max(0, found.start() - _LONGEST_NAME) : found.start()].split()[-1:]
    return frozenset(word for part in parts for word in _WORD.findall(part))


def without_clients(line: str, redefined: Collection[str]) -> str:
    """A line without the commands of clients whose names are not redefined, unless they run something else."""
    commands = simple_commands(line)
    if commands[-1].open:
        return line
    return "".join(command.text for command in commands if not _is_client(command, redefined))


def _is_client(command: Command, redefined: Collection[str]) -> bool:
    program = next(
        (word for word in command.text.split() if word not in PREFIXES and not ASSIGNS.match(word)), ""
    )
    name = program.rpartition("/")[2]
    return (
        name in CLIENTS
        and name not in redefined
        and is_known_path(program)
        and not _RUNS_OTHERS.search(command.text)
        and not any(map(_OPTION.search, _QUOTED.findall(command.text)))
    )
