"""Instants as --begin and --deadline take them: words, dates and times, in any order."""

import re

from tocsin.core.errors import UnitError

__all__ = ["moment"]

_SKIPPED = re.compile(r"[ \tT-]+")
_WORD = re.compile(r"today|tomorrow|midnight|noon|fika|teatime|elevenses", re.IGNORECASE)
_NOW = re.compile(
    r"now[ \t]*(?:$|[+-]\s*\d[\d\s]*(?:(?:second|minute|hour|day|week)s?)?)", re.ASCII | re.IGNORECASE
)
_IS_CLOCK = re.compile(r".{1,2}:")
_CLOCK = re.compile(
    r"(?:0?\d|1[0-2]):[0-5]\d(?::[0-5]\d)?\s*[ap]m|(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?(?!\s*[ap]m)\s*",
    re.ASCII | re.IGNORECASE,
)
_DAY = r"(?:[12]\d|3[01]|0[1-9]|[1-9](?!\d))"
_DATE = re.compile(
    rf"\d{{4}}-(?:0[1-9]|1[0-2])-{_DAY}|(?:1[0-2]|0[1-9]|[1-9](?!\d))[./]?{_DAY}[./]?(?:\d\d|(?!\d))",
    re.ASCII,
)


def moment(text: str) -> None:
    """Refuse what sbatch refuses; it reads one part after the other and never goes back."""
    at, parts = 0, 0
    while at < len(text):
        if skipped := _SKIPPED.match(text, at):
            at = skipped.end()
            continue
        found = _WORD.match(text, at) or _NOW.match(text, at)
        if not found:
            found = (_CLOCK if _IS_CLOCK.match(text, at) else _DATE).match(text, at)
        if not found:
            parts = 0
            break
        at, parts = found.end(), parts + 1
    if text[:3].lower() == "uts":
        parts = len(re.findall(r"^uts\s*\+?0*[1-9]\d{6,17}$", text, re.ASCII | re.IGNORECASE))
    if not parts:
        raise UnitError(f'"{text[:60]}" is not a time; write 2027-01-31T16:00, 16:00 or now+1hour')
