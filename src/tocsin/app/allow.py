"""`allow`: who may run which operation, according to the store and the allow-list file."""

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from datetime import time as clock_time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tocsin.app.app import App
from tocsin.app.times import LAST, parse_time
from tocsin.core.errors import InputError, ModelError, NotFound
from tocsin.core.units import format_instant
from tocsin.store.home import user_name

if TYPE_CHECKING:
    from tocsin.app.allow_list_reader import AllowListReader
    from tocsin.core.allow_list import AllowEntry
    from tocsin.models.registry import Registry

__all__ = [
    "AllowRequest",
    "Rules",
    "add_entry",
    "allow_file",
    "allow_list_reader",
    "check_file",
    "entry_json",
    "list_entries",
    "operations",
    "remove_entry",
    "set_default",
]

ALLOW_FILE = Path("/etc/tocsin/allow.toml")
_INSTANT = re.compile(r":|^\s*now|midnight|^\s*\d{9,}\s*$", re.IGNORECASE | re.ASCII)
"""Matches a time that is more precise than a day, even if it is midnight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowRequest:
    operation: str
    kind: str
    """user, account or group"""
    name: str
    since: str | None = None
    until: str | None = None
    reason: str = ""


class Rules(NamedTuple):
    defaults: Mapping[str, str]
    """For each operation: allowed, listed or never."""
    entries: "Sequence[AllowEntry]"


def allow_file(app: App) -> Path | None:
    """The allow-list file; the default one need not exist, one named in the settings must."""
    named = app.settings.workload.allow_file
    return Path(named) if named else ALLOW_FILE if ALLOW_FILE.exists() else None


def allow_list_reader(app: App) -> "AllowListReader":
    """The allow-list in force."""
    from tocsin.app.allow_list_reader import AllowListReader
    from tocsin.store.allow import entries

    return AllowListReader(
        lambda: entries(app.store),
        allow_file(app),
        kept=app.home.prepare().cache / "allow.toml",
        zone=app.zone(),
        operations=lambda: operations(app),
        notify=lambda message: app.notify(f"tocsin: {message}"),
    )


def operations(app: App) -> dict[str, int | None]:
    """Every operation that any model knows, in use or not, and since when (None: shipped with tocsin)."""
    found: dict[str, int | None] = {}
    for version in app.registry.versions("workload"):  # the shipped one first, then by age
        with suppress(ModelError):  # errors are reported where that model is used
            found = _operations(app.registry, version) | found
    return found


@cache
def _operations(registry: "Registry", version: str) -> dict[str, int | None]:
    """Cached: a version never changes, and a site that trains daily has many."""
    card = registry.card("workload", version)
    return dict.fromkeys(card.operations, None if version == "builtin" else card.created)


def add_entry(app: App, request: AllowRequest, *, who: str | None = None) -> "tuple[int, AllowEntry]":
    """Add an entry to the store's allow-list and return its number; by default, it is granted by the current user."""
    from tocsin.core.allow_list import AllowEntry, SubjectKind
    from tocsin.store.allow import add

    zone, now = app.zone(), int(time.time())
    entry = AllowEntry(
        operation=_known_operation(app, request.operation),
        kind=SubjectKind(request.kind),
        name=request.name,
        since=parse_time(request.since, zone, now) if request.since else None,
        until=_end(request.until, zone, now) if request.until else None,
        reason=request.reason,
        granted_by=who or user_name(),
    )
    if entry.until is not None and (now if entry.since is None else entry.since) >= entry.until:
        begins, step = (
            (request.since, "change --from or --until")
            if request.since
            else ("now", "change --until, or add --from for jobs that were submitted earlier")
        )
        raise InputError(f"the entry would end ({request.until}) before it begins ({begins}); {step}")
    number = add(app.store, entry, at=now)
    rule = allow_list_reader(app).current().rule(entry.operation, now).name
    if rule != "listed":
        app.notify(
            f"note: the rule for {entry.operation} is {rule}, so this entry has no effect; "
            f"see: tocsin allow default {entry.operation} listed"
        )
    if entry.until is not None and entry.until <= now:
        app.notify("note: the entry has expired already: it counts only for jobs submitted before then")
    return number, entry


def set_default(app: App, operation: str, rule: str, reason: str = "") -> int:
    """Set the rule for everybody who is not listed; returns the number of the change."""
    from tocsin.core.allow_list import DefaultRule
    from tocsin.store.allow import set_default as store_default

    operation, now = _known_operation(app, operation), int(time.time())
    number = store_default(app.store, operation, DefaultRule(rule), at=now, who=user_name(), reason=reason)
    in_force = allow_list_reader(app).current().rule(operation, now).name
    if in_force != rule:
        app.notify(f"note: the allow-list file sets {in_force}, which takes precedence")
    return number


def remove_entry(app: App, number: int, *, who: str | None = None) -> "AllowEntry":
    """Revoke an entry; it still counts for jobs that were submitted before."""
    from tocsin.store.allow import remove

    return remove(app.store, number, at=int(time.time()), who=who or user_name())


def list_entries(app: App, *, everything: bool = False) -> Rules:
    """The rules and entries of the store and the file; with `everything`, expired and future entries as well."""
    now, current = int(time.time()), allow_list_reader(app).current()
    named = {*operations(app), *(entry.operation for entry in (*current.rules, *current.entries))}
    defaults = {operation: current.rule(operation, now).name for operation in sorted(named)}
    return Rules(defaults, [entry for entry in current.entries if everything or entry.counts(now)])


def check_file(app: App, file: str | None) -> tuple[Path, Rules]:
    """Read an allow-list file, by default the one in the settings; a broken one raises an error with its line."""
    from tocsin.app.allow_list_reader import read
    from tocsin.judge.allow_file import parse

    named = app.settings.workload.allow_file
    path = Path(file or named or ALLOW_FILE)
    if not file and not named and not path.exists():
        raise NotFound(f"{path} does not exist, and workload.allow_file is not set; name a file to check")
    rules, entries = parse(read(path), path, known=operations(app), zone=app.zone())
    return path, Rules({rule.operation: rule.name for rule in rules}, entries)


def entry_json(entry: "AllowEntry") -> dict[str, Any]:
    return {
        "operation": entry.operation,
        str(entry.kind): entry.name,
        "from": None if entry.since is None else format_instant(entry.since),
        "until": None if entry.until is None else format_instant(entry.until),
        "reason": entry.reason,
        "granted_by": entry.granted_by,
        "origin": entry.origin,
    }


def _known_operation(app: App, text: str) -> str:
    from tocsin.judge.allow_file import why_unknown

    if why := why_unknown(text, operations(app)):
        raise InputError(why)
    return text


def _end(text: str, zone: tzinfo, now: int) -> int | None:
    """The end of an entry, if any; a date without a time includes that day, as in the file."""
    end = parse_time(text, zone, now)
    if end >= LAST:
        return None
    day = datetime.fromtimestamp(end, zone)
    if day.time() != clock_time() or _INSTANT.search(text):
        return end
    return int(datetime.combine(day.date() + timedelta(days=1), clock_time(), zone).timestamp())
