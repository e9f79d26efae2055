"""Parses an allow-list file: TOML that is either valid as a whole, or refused with the line and the reason."""

import re
import tomllib
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from tocsin.core.allow_list import AllowEntry, DefaultRule, SubjectKind
from tocsin.core.errors import SettingsError
from tocsin.core.toml import parse_toml

__all__ = ["WHO", "parse", "why_unknown"]

WHO = (SubjectKind.USER, SubjectKind.ACCOUNT, SubjectKind.GROUP)
_FIRST_YEAR, _LAST_YEAR = 1970, 9998
_SHOWN = 60  # characters shown of an invalid line
_KEYS = ("operation", "user", "account", "group", "from", "until", "reason", "granted_by")


def why_unknown(operation: str, known: Collection[str]) -> str | None:
    """Why this is not an operation, with the names that exist: a rule for an unknown one would have no effect."""
    if operation in known:
        return None
    near = get_close_matches(operation.lower(), known, 1)
    start = f"did you mean {near[0]}? The" if near else "the"
    return (
        f'"{operation}" is not an operation; {start} operations are {", ".join(sorted(known))} '
        "and those trained with `tocsin train workload`"
    )


def parse(
    text: str, path: Path, *, known: Collection[str] | None, zone: tzinfo = UTC
) -> tuple[list[AllowEntry], list[AllowEntry]]:
    """The rules for everybody and the entries in a file; anything invalid is refused with its line.

    `known` are the existing operations; None: do not check. Dates are days in `zone`, including the last one.
    """
    try:
        document = parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        where = re.search(r"\(at line (\d+).*?\)|at end of document", str(error))
        line = where[1] if where and where[1] else str(text.count("\n") + 1)
        reason = re.sub(r"\s*\(at .*\)", "", str(error))
        wrong = text.split("\n")[int(line) - 1].strip()[:_SHOWN]
        quotes = "; put text in quotes" if reason == "Invalid value" else ""
        raise SettingsError(f"the allow-list {path}, line {line}: {reason}{quotes}: {wrong}") from None
    except ValueError as error:
        raise SettingsError(f"the allow-list {path}, line 1: {error}") from None
    places = _Places(text, path)
    for section in document:
        if section not in ("default", "allow"):
            raise places.wrong(None, section, f'"{section}" is neither [default] nor [[allow]]')
    rules, listed = document.get("default", {}), document.get("allow", [])
    if not isinstance(rules, dict):
        raise places.wrong(None, "default", "default is not a section; write [default]")
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise places.wrong(None, "allow", "allow is not a list of sections; write [[allow]] above each")
    defaults = [_rule(operation, value, places, known, zone) for operation, value in rules.items()]
    found = [_grant(entry, number, places, zone) for number, entry in enumerate(listed)]
    for number, grant in enumerate(found):
        if known is not None and (why := why_unknown(grant.operation, known)):
            raise places.wrong(number, "operation", why)
    return defaults, found


def _rule(
    operation: str, value: Any, places: "_Places", known: Collection[str] | None, zone: tzinfo
) -> AllowEntry:
    """`"never"`, or `{ rule = "never", from = 2026-11-01 }`."""
    if known is not None and (why := why_unknown(operation, known)):
        raise places.wrong(None, operation, why)
    dated = value if isinstance(value, dict) else {"rule": value}
    word = dated.get("rule")
    if word not in list(DefaultRule) or not dated.keys() <= {"rule", "from", "until"}:
        raise places.wrong(
            None,
            operation,
            f'{operation} is {value!r}; write "allowed", "listed" or "never", '
            'or { rule = "never", from = 2026-11-01 } for jobs submitted from that day on',
        )
    return AllowEntry(
        operation=operation,
        kind=SubjectKind.DEFAULT,
        name=word,
        since=_instant(dated, "from", None, places, zone),
        until=_instant(dated, "until", None, places, zone),
        origin=f"{places.path}, line {places.line(None, operation)}",
    )


def _grant(entry: dict[str, Any], number: int, places: "_Places", zone: tzinfo) -> AllowEntry:
    for key, value in entry.items():
        if key not in _KEYS:
            raise places.wrong(
                number, key, f'"{key}" is not a key of [[allow]]; the keys are {", ".join(_KEYS)}'
            )
        if key not in ("from", "until") and not (isinstance(value, str) and value.strip()):
            raise places.wrong(number, key, f"{key} is {value!r}; it must be text")
    if "operation" not in entry:
        raise places.wrong(number, None, "this [[allow]] names no operation")
    who = [kind for kind in WHO if str(kind) in entry]
    if len(who) != 1:
        raise places.wrong(number, None, "this [[allow]] must name one of user, account, group")
    since = _instant(entry, "from", number, places, zone)
    until = _instant(entry, "until", number, places, zone)
    if since is not None and until is not None and since >= until:
        raise places.wrong(number, "until", "it ends before it begins")
    return AllowEntry(
        operation=entry["operation"],
        kind=who[0],
        name=entry[str(who[0])],
        since=since,
        until=until,
        reason=entry.get("reason", ""),
        granted_by=entry.get("granted_by", ""),
        origin=f"{places.path}, line {places.line(number, None)}",
    )


def _instant(
    entry: dict[str, Any], key: str, number: int | None, places: "_Places", zone: tzinfo
) -> int | None:
    value = entry.get(key)
    if isinstance(value, str):
        with suppress(ValueError):
            value = date.fromisoformat(value)
    if value is None:
        return None
    if isinstance(value, date) and not _FIRST_YEAR <= value.year <= _LAST_YEAR:
        if key == "until" and value.year > _LAST_YEAR:
            return None  # for ever
        raise places.wrong(
            number, key, f"{key} is {value}; the year must be from {_FIRST_YEAR} to {_LAST_YEAR}"
        )
    if isinstance(value, datetime):
        return int((value if value.tzinfo else value.replace(tzinfo=zone)).timestamp())
    if isinstance(value, date):
        day = value + timedelta(days=1) if key == "until" else value
        return int(datetime.combine(day, time(), zone).timestamp())
    raise places.wrong(number, key, f'{key} is "{value}"; write a date such as 2026-12-31')


class _Places:
    """Finds the line of an error, which tomllib does not report."""

    def __init__(self, text: str, path: Path) -> None:
        self.path = path
        self._lines = text.split("\n")
        self._entries = [i for i, line in enumerate(self._lines) if re.match(r"\s*\[\[\s*[\"']?allow", line)]

    def line(self, entry: int | None, key: str | None) -> int:
        first, last = 0, len(self._lines)
        if entry is not None and entry < len(self._entries):
            first = self._entries[entry]
            last = self._entries[entry + 1] if entry + 1 < len(self._entries) else last
        if key is not None:
            spelt = re.compile(rf"\s*\[*\s*[\"']?{re.escape(key)}[\"']?\s*(?:[=.\]]|$)")
            for number in range(first, last):
                if spelt.match(self._lines[number]):
                    return number + 1
        return first + 1

    def wrong(self, entry: int | None, key: str | None, reason: str) -> SettingsError:
        return SettingsError(f"the allow-list {self.path}, line {self.line(entry, key)}: {reason}")
