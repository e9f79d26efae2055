"""Times as sacct accepts them for -S and -E."""

import re
from datetime import datetime, timedelta, tzinfo

from tocsin.core.errors import UnitError

__all__ = ["LAST", "parse_time"]

LAST = 253_370_764_799
"""The end of the year 9998: a later time means no end, and calendars end soon after."""

_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_RELATIVE = re.compile(r"now\s*(?P<sign>[+-])\s*(?P<number>\d{1,9})\s*(?P<unit>[a-z]*)", re.ASCII)
_HOURS = {"midnight": 0, "today": 0, "elevenses": 11, "noon": 12, "fika": 15, "teatime": 16}
_FORMATS = ("%m%d%y", "%m/%d/%y", "%m.%d.%y", "%m/%d/%Y", "%m.%d.%Y")
_CLOCKS = ("%H:%M", "%H:%M:%S")


def parse_time(text: str, zone: tzinfo, now: float) -> int:
    """Epoch seconds of `2026-11-15[THH:MM[:SS]]`, `1115`, `11/15[/26]`, `14:30`, `now-3days`, `today`, `noon` …

    >>> from datetime import UTC
    >>> parse_time("now-2hours", UTC, 1794771952), parse_time("2026-11-15", UTC, 0), parse_time("today", UTC, 1794771952)
    (1794764752, 1794700800, 1794700800)
    """
    return min(max(_parsed(text, zone, now), 0), LAST)


def _parsed(text: str, zone: tzinfo, now: float) -> int:
    word = text.strip().lower()
    here = datetime.fromtimestamp(now, zone)
    if word == "now":
        return int(now)
    if found := _RELATIVE.fullmatch(word):
        unit = _unit(found["unit"] or "seconds", text)
        return int(now) + (1 if found["sign"] == "+" else -1) * int(found["number"]) * unit
    day = here.replace(hour=0, minute=0, second=0, microsecond=0)
    if word in ("yesterday", "tomorrow"):
        return int((day + timedelta(days=1 if word == "tomorrow" else -1)).timestamp())
    if word in _HOURS:
        return int(day.replace(hour=_HOURS[word]).timestamp())
    if word.isascii() and word.isdigit() and len(word) >= 9:
        return int(word)
    moment = _dated(text.strip(), here)
    if moment is None:
        raise UnitError(
            f'"{text}" is not a time; write YYYY-MM-DD[THH:MM[:SS]], HH:MM, MM/DD/YY, today or now-3days'
        )
    if not 1 < moment.year <= 9998:
        return 0 if moment.year == 1 else LAST
    return int((moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp())


def _unit(word: str, text: str) -> int:
    matches = [
        seconds for name, seconds in _UNITS.items() if name.startswith(word.removesuffix("s")) and word
    ]
    if not matches:
        raise UnitError(
            f'"{word}" in "{text}" is not a unit of time; write seconds, minutes, hours, days or weeks'
        )
    return matches[0]


def _dated(text: str, here: datetime) -> datetime | None:
    if not re.fullmatch(r"\d{8}", text):  # sacct has no date of eight plain digits
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            pass
    for clock in _CLOCKS:
        if (found := _strptime(text, clock)) is not None:
            return here.replace(hour=found.hour, minute=found.minute, second=found.second, microsecond=0)
    date, _, clock_text = text.partition("-") if "-" in text else text.partition("T")
    for year, form in [
        ("", "%m%d%y"),
        *(("", form) for form in _FORMATS),
        *((f"/{here.year}", f) for f in ("%m%d/%Y", "%m/%d/%Y")),
    ]:
        if (found := _strptime(date + year, form)) is not None:
            if not clock_text:
                return found
            times = [t for clock in _CLOCKS if (t := _strptime(clock_text, clock)) is not None]
            return (
                found.replace(hour=times[0].hour, minute=times[0].minute, second=times[0].second)
                if times
                else None
            )
    return None


def _strptime(text: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(text, form)  # the caller adds the zone
    except ValueError:
        return None
