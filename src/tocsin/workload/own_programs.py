"""The programs of a script that no catalogue knows: the script does not show what they do."""

import re
from collections.abc import Sequence
from itertools import islice

from tocsin.scripts.text import readable
from tocsin.workload.applications import Application, applications
from tocsin.workload.signs.file_kinds import DATA_FILE, SCRIPT_FILE, SHELL_FILE
from tocsin.workload.signs.printing_programs import CODE
from tocsin.workload.signs.programs import (
    ENDS,
    EXECUTORS,
    KNOWN,
    MAKERS,
    NETWORK,
    NO_PROGRAM,
    RUN_TEXT,
    SHELLS,
    WRAPPERS,
    is_known_path,
)
from tocsin.workload.signs.reserved_words import DECLARES, program_of
from tocsin.workload.signs.statements import statements
from tocsin.workload.signs.values import base
from tocsin.workload.words import joined_words

__all__ = ["bare_commands", "own_programs"]

_MOST = 5
_MOST_BARE = 200
"""A script with more lines like this is no shell script."""
_WORDS = 4
"""Of a command, those that may name its application."""
_PROGRAM = re.compile(r"(?!/dev/)[\w.~/+${}@-]{1,200}")
_VARIABLE = re.compile(r"\$\w+|\$?\{\w*\}")
_LETTER = re.compile(r"(?!lib\d*$).*[A-Za-z]")
"""A name, and not the folder of a path that was split."""
_BARE = re.compile(r"[A-Za-z][\w.+@-]{0,99}$")
_INTERPRETER = re.compile(r"#!\s*(?:\S*/env\s+(?:-\S+\s+)*)?(\S+)")
_COMMON = frozenset(
    """activate apptainer base64 c++ cargo ch-run charliecloud clang clang++ compgen convert deactivate docker
    dot enroot gpg gpustat hpcrun icpc icpx icx ifort ifx ipcluster java javac jupyter jupyter-lab ldd lfs
    lsb_release lspci lstopo-no-graphics micromamba mpic++ mpicxx mpifort mpiicc mpiifort msub ncu nsys
    nvidia-docker nvprof ompi_info openssl podman poetry print pv pyenv ray redis-server rpm rsh sarus sbcast
    seff shifter singularity sinteractive ssh-keygen strigger svn systemctl tree ucx_info udocker uv virtualenv
    xvfb-run zgrep""".split()  # noqa: SIM905  # a list of words reads best so
)
"""Containers, compilers and tools that many scripts use and no other list has."""
_TAKES_PATHS = frozenset("srun mpirun mpiexec mpiexec.hydra aprun jsrun orterun prun time".split())  # noqa: SIM905
_PATH_OPTIONS = frozenset(
    """-D --chdir -o --output -e --error -i --input --prolog --epilog --task-prolog --task-epilog --container-image
    --container-mounts -hostfile --hostfile -machinefile --machinefile -f -rankfile --rankfile -wdir --wdir -configfile""".split()  # noqa: SIM905
)
"""Options of these launchers whose value is the path of a file or folder."""
_KNOWN = KNOWN | NETWORK | RUN_TEXT | EXECUTORS | ENDS | NO_PROGRAM | DECLARES | _COMMON


def own_programs(run: Sequence[str], named: Sequence[Application | None], bare: Sequence[str]) -> list[str]:
    """Their names as the script writes them.

    `run` are its commands with variables expanded, `named` the applications that these name, and `bare` the commands
    that `bare_commands` found.
    """
    found = [_own_program(command) for command, known in zip(run, named, strict=True) if known is None]
    found += [
        command.partition(" ")[0]
        for command, known in zip(bare, applications(bare, joined_words("\n".join(bare))), strict=True)
        if known is None
    ]
    return list(dict.fromkeys(name for name in found if name))[:_MOST]


def bare_commands(text: str) -> list[str]:
    """The commands of a shell script that begin with a bare name, unless it is known or a function of the script."""
    interpreter = _INTERPRETER.match(text)
    if interpreter and base(interpreter[1]) not in SHELLS:
        return []
    found = statements(text).found
    functions = {name for each in found if (name := _defined(each.words))}
    bodies = (each.words[2:] if each.words[:1] == ["function"] else each.words for each in found)
    commands = (_launched_by(words[program_of(words) :]) for words in bodies)
    unknown = (
        " ".join(words[:_WORDS])
        for words in commands
        if words and words[0] not in functions and _BARE.match(words[0]) and not _is_known(words[0])
    )
    return list(dict.fromkeys(islice(unknown, _MOST_BARE)))


def _defined(words: Sequence[str]) -> str | None:
    """The function whose definition begins with these words."""
    if words[1:2] == ["()"]:
        return words[0]
    return words[1] if words[:1] == ["function"] and len(words) > 1 else None


def _own_program(command: str) -> str | None:
    """What a command runs, if that is a path or follows a launcher; text of a here-document may look like a bare name."""
    words = [word.strip("\"'") for word in command.split(None, 40)]
    inner = _launched_by(words)
    program = inner[0] if inner and (inner is not words or "/" in words[0]) else None
    if program is None or not _PROGRAM.fullmatch(program):
        return None
    return (
        readable(program)
        if _LETTER.match(_VARIABLE.sub("", base(program))) and not _is_known(program)
        else None
    )


def _is_known(program: str) -> bool:
    """Whether it is a known program, or a file that can be read."""
    name = base(program)
    if any(kind.search(name) for kind in (SCRIPT_FILE, SHELL_FILE, DATA_FILE)):
        return True
    known = name in _KNOWN or name in WRAPPERS
    return (known and is_known_path(program)) or bool(CODE.match(name) or MAKERS.match(name))


def _launched_by(words: Sequence[str]) -> Sequence[str]:
    """The words from the program on, without those that launch it."""
    while words and (
        base(words[0]) in WRAPPERS or words[0][:1] == "-"
    ):  # an option, without the `env` before it
        words = _launched(words)
    return words


def _launched(words: Sequence[str]) -> Sequence[str]:
    """The program that a launcher starts, and its words.

    A bare word after an option may be the program or that option's value; from there on, only a path is certain.
    """
    takes_paths = base(words[0]) in _TAKES_PATHS
    after_option = only_paths = is_path = False
    for place, word in enumerate(words[1:], 1):
        if is_path:
            after_option = is_path = False
        elif word[:1] == "-":
            after_option = "=" not in word
            is_path = takes_paths and word in _PATH_OPTIONS
        elif word[:1].isdigit() or "=" in word:
            after_option = False
        elif "/" in word or not (after_option or only_paths):
            return words[place:]
        else:
            only_paths = True
    return ()
