"""The variables and files of a shell script, with their values."""

import re
from collections.abc import Sequence

from tocsin.workload.signs.shell_patterns import MOST_STARS, as_expression
from tocsin.workload.signs.values import (
    A_NUMBER,
    CHANGED,
    COMPUTED,
    FROM_OUTSIDE,
    ITSELF,
    OUTSIDE,
    OWN,
    OWN_PIECE,
    PIECE,
    Value,
    is_exact,
)

__all__ = ["Variables"]

_SET_BY_OTHERS = frozenset(
    """BASH_REMATCH OPTARG REPLY MAPFILE COPROC BASH_COMMAND FUNCNAME DIRSTACK OLDPWD BASH_ARGV
    SLURM_JOB_NAME PBS_JOBNAME JOB_NAME LSB_JOBNAME""".split()  # noqa: SIM905
)
"""Variables that the shell or the scheduler sets to text that may be the script's own."""
_REQUESTED = frozenset(
    "_ SLURM_JOB_COMMENT SLURM_WCKEY SLURM_JOB_WCKEY SLURM_JOB_LICENSES SLURM_JOB_RESERVATION SLURM_JOB_EXTRA".split()  # noqa: SIM905
)
"""Variables that hold only text of the script: its last word, or what its directives request."""
_COUNTS = frozenset("# LINENO BASH_LINENO OPTIND SHLVL".split())  # noqa: SIM905
"""Variables that the shell sets to numbers that follow from the script's text."""
_MOST_POSITIONS = 9


class Variables:
    """What is known of them so far, in the order of the statements."""

    def __init__(self) -> None:
        self.values: dict[str, Value] = {}
        self.several: set[str] = set()
        """Variables that get more than one value, so that the last one need not be the relevant one."""
        self.settled = False
        """All values were seen once, so none is a second one."""
        self.vague = False
        """Treat such a variable as an unknown piece."""
        self.references: dict[str, str] = {}
        """Variables that stand for another one."""
        self.functions: set[str] = set()
        self.files: dict[str, int] = {}
        """Files that the script writes, by the origin of their content."""
        self.contents: dict[str, str] = {}
        """The content of short ones."""
        self.lists: dict[str, Sequence[str]] = {}
        """The first words that a loop's variable takes."""
        self.arrays: dict[str, str] = {}
        """The words of arrays and of the arguments, as written."""
        self.assembled: set[str] = set()
        """Files that are cut out of others or joined: data, unless they are run."""
        self.coprocess = False
        """A command runs beside the script, with its output in a descriptor."""
        self.loose = False
        """A file of computed text went through a program, so it may have any name."""
        self.missing: set[str] = set()
        """Variables that were read before they had a value."""
        self.late = False
        """One of them got a value later, which counts in the next iteration of a loop."""
        self.keyed: set[str] = set()
        """Arrays whose keys are texts."""
        self.integers: set[str] = set()
        """Variables that are declared as integers."""
        self.history = False
        """Words that begin with an exclamation mark refer to earlier ones."""
        self.input = OUTSIDE
        """The origin of the lines that its loops read."""
        self.depth = 0
        self.work = 0
        self._files = 0
        self._known: dict[str, Value] = {}
        """Cached values of words since a variable or a file last changed."""

    def matching(self, pattern: str) -> str:
        """A file that the script writes and whose name matches a pattern."""
        pattern = pattern.strip("\"'").rstrip("/").rpartition("/")[2]
        if not self.files or pattern.count("*") > MOST_STARS:
            return ""
        self.work += len(self.files) // 10
        matches = re.compile(as_expression(pattern), re.DOTALL).fullmatch
        return next((name for name in self.files if matches(name)), "")

    def notice_files(self) -> None:
        """Drop cached values of words if there are new files, from which they may be read."""
        if len(self.files) != self._files:
            self._known.clear()
            self._files = len(self.files)

    def variable(self, name: str) -> Value:
        if name == "*" and "IFS" in self.values and "@" in self.values:
            return CHANGED
        if name in ("0", "BASH_SOURCE", "BASH_ARGV0"):
            return Value(ITSELF, OUTSIDE)
        if name.isdigit() or name in "@*":
            return self.values.get(name) or self.values.get("@", FROM_OUTSIDE)
        if name in _COUNTS:
            return A_NUMBER
        if name in _REQUESTED:
            return CHANGED
        if self.vague and name in self.several:
            return Value(PIECE, max(OWN, self.values[name].origin))
        known = self.values.get(name)
        if known is None:
            self.missing.add(name)
            return OWN_PIECE if name in _SET_BY_OTHERS else FROM_OUTSIDE
        return known

    def put(self, name: str, value: Value) -> None:
        self._known.clear()
        old = self.values.get(name)
        if old is None:
            self.late = self.late or (name in self.missing and value.origin != OUTSIDE)
        else:
            if old.text != value.text and not self.settled and value.origin != OUTSIDE:
                self.several.add(name)
            if old.origin == COMPUTED:
                value = Value(value.text if is_exact(old) and self.settled else PIECE, COMPUTED)
        self.arrays.pop(name, None)
        if name == "@":
            for number in range(1, _MOST_POSITIONS + 1):
                self.values.pop(str(number), None)
        self.values[name] = value
