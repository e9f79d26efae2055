"""Names of mining in a script where no rule applies: in a command of any kind, or in text that may be run.

Text that is only printed does not matter. But a script that also runs text of its own making, reads itself or what
Slurm stores about the job may run what it prints, in more ways than can be followed.
"""

import re
from collections.abc import Sequence

from tocsin.workload.commands import Line
from tocsin.workload.signs.mining_names import NAMES
from tocsin.workload.signs.unread import run_files

__all__ = ["NAMED", "has_command", "named"]

NAMED = "mentions mining in text that it may run"
_COMMAND = re.compile(r"-o[ _/=+,]{1,3}[\w.+:/-]{4,80}:\d{3,5}(?!\d)")
"""A miner's option and its pool."""
_RUNS_TEXT = re.compile(
    r"(?<![\w-])eval\s|\b(?:ba|da|z|k|c|tc|fi)?sh\s+(?:-\w{1,9}\s+){0,3}-\w{0,3}c\s|\|\s{0,9}(?:\S{0,40}/)?(?:ba|da|z|k|c|tc|fi)?sh\b"
    r"|(?:^|[;&|]\s{0,9}|\b(?:do|then|else|exec|nohup|srun|time|command)\s+)[\"']?(?:\$\(|`|\$@|\$\*|\$\{\w{1,40}[^\w}])"
    r"|(?:\bsource|(?:^|[;&|]\s{0,9})\.)\s+(?:<\(|/dev/fd|/proc)|/proc/(?:self|\$)|\bBASH_COMMAND\b"
    r"|(?:\b(?:sed|[gm]?awk|[ef]?grep|tail|head|cat|cp|cut|tr|tac|perl|python[\d.]*|dd|ed|ex|vim)\s[^;|&\n]{0,99}|<\s{0,3}[\"']?)\$\{?(?:0\b|BASH_SOURCE)"
    r"|\b(?:SLURM_JOB_(?:NAME|COMMENT)|PBS_JOBNAME|JOB_NAME|LSB_JOBNAME)\b|(?:\$\(|`)[^()`\n]{0,99}\b(?:squeue|sacct|scontrol\s+show|qstat|bjobs)\s"
    r"|\b(?:system|popen|exec\w{0,4}|spawn\w{0,4}|execute|subprocess\.\w{2,12}|shell-command|check_\w{4,6})\s?[(\[{]|(?:^|[;&|]\s{0,9})(?:fc|history|coproc|script|at|batch|scrontab|crontab)\s",
    re.MULTILINE,
)
"""Ways to run text that is made, read back or stored elsewhere."""
_TARGET = re.compile(
    r"(?<![<&\d-])>>?\s{0,9}[\"']?([\w./~${}-]{1,200})|^#\w{2,6}\s+(?:-[oej]|--output|--error)[ =]{1,3}(\S{1,200})|\btee\s+(?:-a\s+)?([\w./~${}-]{1,200})",
    re.MULTILINE,
)
_OUTPUT = re.compile(r"slurm-.{0,40}\.out$|\.[oe]\$")
"""The default file names of a job's output."""


def has_command(text: str) -> bool:
    """Whether a miner's option with its pool occurs anywhere in a script."""
    return "-o" in text and _COMMAND.search(text) is not None


def named(text: str, acts: Sequence[Line]) -> int | None:
    """The line of such a name: in what the script executes (`acts`), or anywhere if the script runs text."""
    if (number := next((number for number, line in acts if NAMES.search(line)), None)) is not None:
        return number
    if (found := NAMES.search(text) or _COMMAND.search(text)) and (
        _RUNS_TEXT.search(text) or _runs_own_file(text)
    ):
        return text.count("\n", 0, found.start()) + 1
    return None


def _runs_own_file(text: str) -> bool:
    """Whether a script runs a file that it writes, or its own output."""
    ran = {name for line in text.split("\n") if line[:1] != "#" for name in run_files(line)}
    made = {name.rpartition("/")[2] for names in _TARGET.findall(text) for name in names if name}
    return not ran.isdisjoint(made - {""}) or any(map(_OUTPUT.search, ran))
