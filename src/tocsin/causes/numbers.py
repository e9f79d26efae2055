"""Exit codes, signals and errno values that an output reports, whatever words it uses around the number."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["ERRNO", "EXIT", "SIGNAL", "Number", "find_numbers"]

EXIT, SIGNAL, ERRNO = "exit", "signal", "errno"
_MOST = 200
_FORMS = (
    # exit code 139, exitcode: -9, exited with code 137, exit status (127), return code = -11, err code: -6
    (
        EXIT,
        re.compile(
            r"\b(?:exit(?:ed|s)?|return(?:ed)?|status|err(?:or)?) ?(?:with )?(?:exit )?(?:code|status|value)"
            r"(?: is)? ?[:=(]?\s{0,8}(-?\d{1,3})\b(?!:\d)"
        ),
    ),
    # signal 11, Signal: 9, signal (15), signal number 8, <Signals.SIGKILL: 9>, signal SIGKILL (9)
    (SIGNAL, re.compile(r"\bsignals?(?: number)?[.:# (]{1,2}(?:sig[a-z]{2,6}[ :(]{1,2})?(\d{1,2})\b")),
    # Hydra gives the signal as an exit code:   =   EXIT CODE: 11
    (SIGNAL, re.compile(r"=\s{1,8}exit code: ([4-9]|11|15)\b")),
    # PBS: Exit_status=265; Slurm: ExitCode=0:9
    (EXIT, re.compile(r"\bexit_status ?= ?(\d{1,3})\b")),
    (SIGNAL, re.compile(r"\bexitcode ?[=:] ?\d{1,3}:(\d{1,2})\b")),
    (ERRNO, re.compile(r"\berrno\b[ :=]{0,3}(\d{1,3})\b")),
)


@dataclass(frozen=True, slots=True)
class Number:
    """A number with its meaning."""

    meaning: str
    value: int
    start: int
    end: int
    """The position of its first word in the text, and the position after its last digit."""


def find_numbers(text: str, start: int = 0) -> Iterator[Number]:
    """The numbers in a lower-case text from this position on; an exit code that means a signal is given as the signal.

    >>> [(n.meaning, n.value) for n in find_numbers("task 0: exited with exit code 137; errno: 28; signal (11)")]
    [('signal', 9), ('signal', 11), ('errno', 28)]
    """
    for meaning, form in _FORMS:
        for count, found in enumerate(form.finditer(text, start)):
            if count >= _MOST:
                break
            yield Number(*_normal(meaning, int(found[1])), found.start(), found.end())


def _normal(meaning: str, value: int) -> tuple[str, int]:
    """Shells add 128 to a signal, PBS 256, and Python makes it negative."""
    if meaning != EXIT:
        return meaning, value
    if value < 0:
        return SIGNAL, -value
    for base in (256, 128):
        if base < value < base + 65:
            return SIGNAL, value - base
    return EXIT, value
