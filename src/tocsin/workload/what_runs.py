"""What a script runs: its commands without those that only prepare for them, and whether it only holds its nodes."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from tocsin.workload.applications import Application
from tocsin.workload.commands import command_lines

__all__ = ["IDLE", "INTERACTIVE", "holder", "run_by_lines", "run_commands"]

INTERACTIVE, IDLE = "interactive", "idle"
"""Domains of jobs that hold their nodes for a person, or for nothing."""

_SEPARATOR = re.compile(r"[;&|]+|\b(?:then|do|else)\b")
_BEFORE = re.compile(
    r"(?:[({!\s]|(?:time|nohup|exec|env|command|if|while|until|elif|setsid)\s"
    r"|\w{1,64}=(?:\"[^\"]{0,512}\"|'[^']{0,512}'|(?:[^\s\"'`$(]|\$(?!\()){0,512})\s+(?=\S)){1,32}"
)
_HAS_BEFORE = re.compile(r"[({!]|(?:time|nohup|exec|env|command|if|while|until|elif|setsid)\s|\w{1,64}=")
_ASSIGNERS = ("export", "declare", "local", "readonly", "setenv", "set", "typeset", "unset")
_ASSIGNS = re.compile(rf"(?:{'|'.join(_ASSIGNERS)})\b|\w{{1,64}}\+?=\S*$")
_PREPARES = frozenset(
    """module ml modulecmd source . cd pushd popd mkdir echo printf ulimit umask cp mv rm ls ln cat rsync tar gzip unzip git
    wget curl which type chmod chgrp touch date hostname pwd trap wait exit return true false fi done esac shift test [ [[ :
    pip pip3 apt apt-get deactivate activate head wc sort printenv df du free uname whoami squeue scontrol sacct sinfo
    nvidia-smi lscpu uptime find basename dirname read eval grep egrep fgrep zgrep sed""".split()  # noqa: SIM905  # a list of words reads best so
)
_CAPTURES = re.compile(r"\w{1,64}=[\"']?(?:\$\(|`)\s*")
"""A command whose output becomes a value."""
_SUBSTITUTED = re.compile(r"[^)`]*+(?:[)`]\S*\s*)?")
"""The rest of a substitution."""
_FILTERS = frozenset("awk cut tr tail tee".split())  # noqa: SIM905  # likewise
"""Filters, which end many substitutions; what follows the bracket is a command: `N=$(lscpu | tail -n 1) ./solve`."""
_LOOKS_UP = (_PREPARES | _FILTERS) - {"which", "type"}
"""Those whose output names no program."""
_PREPARES_AT_ONCE = _PREPARES.union(_ASSIGNERS)
"""First words that need no further check; most commands have one."""
_MANAGERS = frozenset("conda mamba micromamba spack poetry uv pixi virtualenv venv".split())  # noqa: SIM905  # likewise
"""They prepare, unless they are told to run something: `conda run -n env python x.py`."""

_MANAGED = re.compile(rf"(?:{'|'.join(_MANAGERS)})\s+run\b")
_MODULE = re.compile(r"(?<=\s-m\s)([A-Za-z_]\w{0,99})(?=\.)")
"""`python -m vllm.entrypoints.api_server` runs vllm."""
_HOLDERS = (
    ("jupyter", r"\bjupyter(?:hub-singleuser|[- ](?:lab|notebook|server|hub|nbclassic)|lab)\b|\bbatchspawner-singleuser\b"),
    ("vscode", r"\bcode(?:-insiders|-cli)?\s+(?:tunnel|serve-web)\b|\b(?:code|openvscode|vscode)-server\b(?![.\w])"),
    ("rstudio", r"\brserver\b(?![.\w])|\brstudio(?:-server)?(?![.\w/-])"),
    ("desktop", r"\b(?:vncserver|x0vncserver|xvnc|startxfce4|websockify)\b|\bxpra\s+start|\bdcv\s+create-session"),
    ("ssh", r"\bsshd\b[^;|]{0,80}\s-D\b|\bdropbear\b|\btmate\b"),
)  # fmt: skip
_HOLDER_MARKS = (
    "jupyter", "batchspawner", "tunnel", "serve-web", "code-server", "rserver", "rstudio", "vnc", "xfce4", "websockify",
    "xpra", "dcv", "sshd", "dropbear", "tmate",
)  # fmt: skip
"""Commands without any of these hold nothing; checking for all of them at once is fast."""
_HOLDS = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in _HOLDERS), re.IGNORECASE)
_SLEEP = re.compile(r"\bsleep\b|\btail\s+-[fF]\s+/dev/null")
_LONG_SLEEP = re.compile(
    r"\bsleep\s+[\"']?(?:inf|\d{4,}|\d+(?:\.\d+)?[hd]\b|\d{2,}m\b|\$)|\btail\s+-[fF]\s+/dev/null"
)
"""From a quarter of an hour on, or for a time given by a variable."""
_ENDLESS = re.compile(r"\bwhile\s+(?:true|:|\[\[?\s*1\s*\]\]?|\(\(\s*1\s*\)\))")


def run_commands(lines: Sequence[str]) -> list[str]:
    """The commands of these lines that run something, with variables expanded, without the prefixes of their programs."""
    return run_by_lines(line for _, line in command_lines("\n".join(lines)))


def run_by_lines(lines: Iterable[str]) -> list[str]:
    """The same for lines whose variables are expanded."""
    return [command for line in lines for command in _run_by(line)]


@lru_cache(maxsize=4096)  # half of the lines of many scripts also occur in others
def _run_by(line: str) -> tuple[str, ...]:
    """The commands of one line that run something."""
    several = ";" in line or "&" in line or "|" in line or "then" in line or "do" in line or "else" in line
    found = []
    for piece in _SEPARATOR.split(line) if several else (line,):
        command = piece.strip()
        if command.partition(" ")[0] in _PREPARES_AT_ONCE:
            continue
        if _HAS_BEFORE.match(command) and (before := _BEFORE.match(f"{command} ")):
            command = command[before.end() :]
        captures = _CAPTURES.match(command) if "=" in command else None
        inside = command[captures.end() :] if captures else command
        if inside.partition(" ")[0] in (_LOOKS_UP if captures else _FILTERS if _closes(inside) else ()):
            command = _SUBSTITUTED.sub("", inside, count=1)
        if command and not _prepares(command):
            command = _MANAGED.sub("", command) if "run" in command else command
            found.append(_MODULE.sub(r"\1 \1", command) if "-m" in command else command)
    return tuple(found)


def _closes(command: str) -> bool:
    """Whether a command may end a substitution."""
    return ")" in command or "`" in command


def _prepares(command: str) -> bool:
    words = command.split(None, 3)
    head = words[0].rpartition("/")[2]
    if head in _MANAGERS:
        return words[1:2] != ["run"]
    if head.startswith("python") and words[1:3] in (["-m", "pip"], ["-m", "venv"]):
        return True
    return head in _PREPARES or _ASSIGNS.match(command) is not None


def holder(lines: Sequence[str], run: Sequence[str]) -> Application | None:
    """What holds the nodes of a job that computes nothing itself; `run` are the commands of these lines."""
    text = "\n".join(run).lower()
    for command in run if any(mark in text for mark in _HOLDER_MARKS) else ():
        if found := _HOLDS.search(command):
            return Application(str(found.lastgroup), INTERACTIVE)
    if not run or not all(map(_SLEEP.search, run)):
        return None
    endless = any(map(_LONG_SLEEP.search, run)) or any(map(_ENDLESS.search, lines))
    return Application("sleep", IDLE) if endless else None
