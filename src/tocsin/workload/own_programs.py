"""The programs of a script that no catalogue knows: the script does not show what they do."""

import re
from collections.abc import Sequence

from tocsin.scripts.text import readable
from tocsin.workload.applications import Application
from tocsin.workload.signs.file_kinds import DATA_FILE, SCRIPT_FILE, SHELL_FILE
from tocsin.workload.signs.printing_programs import CODE
from tocsin.workload.signs.programs import KNOWN, MAKERS, NETWORK, RUN_TEXT, WRAPPERS, is_known_path
from tocsin.workload.signs.values import base

__all__ = ["own_programs"]

_MOST = 5
_PROGRAM = re.compile(r"[\w.~/+${}-]{1,200}")
_VARIABLE = re.compile(r"\$\w+|\$?\{\w*\}")
_LETTER = re.compile(r"(?!lib\d*$).*[A-Za-z]")
"""A name, and not the folder of a path that was split."""
_CONTAINERS = frozenset(
    ["singularity", "apptainer", "shifter", "docker", "podman", "charliecloud", "ch-run", "sarus", "enroot"]
)
_KNOWN = KNOWN | NETWORK | RUN_TEXT | _CONTAINERS


def own_programs(run: Sequence[str], named: Sequence[Application | None]) -> list[str]:
    """Their names as the script writes them; `named` are the applications that these commands name."""
    found = [_own_program(command) for command, known in zip(run, named, strict=True) if known is None]
    return list(dict.fromkeys(name for name in found if name))[:_MOST]


def _own_program(command: str) -> str | None:
    """What a command runs, if that is a path or follows a launcher; another bare name may be a function."""
    words: Sequence[str] = [word.strip("\"'") for word in command.split(None, 40)]
    program = words[0] if words and "/" in words[0] else None
    while words and base(words[0]) in WRAPPERS:
        words = _launched(words[1:])
        program = words[0] if words else None
    if program is None or not _PROGRAM.fullmatch(program):
        return None
    name = base(program)
    is_file = any(kind.search(name) for kind in (SCRIPT_FILE, SHELL_FILE, DATA_FILE))
    known = (name in _KNOWN and is_known_path(program)) or CODE.match(name) or MAKERS.match(name)
    return readable(program) if _LETTER.match(_VARIABLE.sub("", name)) and not (is_file or known) else None


def _launched(words: Sequence[str]) -> Sequence[str]:
    """The program that a launcher starts, and its words.

    A bare word after an option may be the program or that option's value; from there on, only a path is certain.
    """
    after_option = only_paths = False
    for place, word in enumerate(words):
        if word[:1] == "-":
            after_option = "=" not in word
        elif word[:1].isdigit() or "=" in word:
            after_option = False
        elif "/" in word or not (after_option or only_paths):
            return words[place:]
        else:
            only_paths = True
    return ()
