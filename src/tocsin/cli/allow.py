"""`tocsin allow`: who may run which operation, and who said so."""

import getpass
import re
import time
from datetime import datetime, timedelta, tzinfo
from datetime import time as clock_time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tocsin.app.app import App
from tocsin.app.text import clock, count
from tocsin.cli import options
from tocsin.cli.output import Column, Listing, print_json, say
from tocsin.core.errors import InputError, NotFound
from tocsin.core.units import format_instant

if TYPE_CHECKING:
    from tocsin.core.allow_list import AllowEntry

__all__ = ["allow"]

_KINDS = ("user", "account", "group")
_INSTANT = re.compile(r":|^\s*now|midnight|^\s*\d{9,}\s*$", re.IGNORECASE | re.ASCII)
"""A time that names more than its day, though it may be at midnight."""


@click.group(invoke_without_command=True)
@click.pass_context
def allow(context: click.Context) -> None:
    """Say who may run which operation.

    What is said here is kept in the app.store, beside the file that the settings name (workload.allow_file).
    """
    if context.invoked_subcommand is None:
        context.invoke(list_)


@allow.command()
@click.argument("operation")
@click.option("-u", "--user", metavar="USER", help="Let this user.")
@click.option("-A", "--account", metavar="ACCOUNT", help="Let this account.")
@click.option("-g", "--group", metavar="GROUP", help="Let this group.")
@click.option("--from", "since", metavar="TIME", help="Jobs submitted from then on [default: all].")
@click.option(
    "--until", metavar="TIME", help="Jobs submitted before then; a day is included [default: for ever]."
)
@click.option("--reason", default="", metavar="TEXT", help="Why; it is in the verdicts.")
@options.as_json
@click.pass_obj
def add(
    app: App,
    operation: str,
    user: str | None,
    account: str | None,
    group: str | None,
    since: str | None,
    until: str | None,
    reason: str,
    as_json: bool,
) -> None:
    """Let a user, an account or a group run an operation."""
    from tocsin.app.times import parse_time
    from tocsin.core.allow_list import AllowEntry, SubjectKind
    from tocsin.store.allow import add as added

    named = {kind: name for kind, name in zip(_KINDS, (user, account, group), strict=True) if name}
    if len(named) != 1:
        raise click.UsageError("name one of --user, --account, --group")
    [(kind, name)] = named.items()
    zone, now = app.zone(), int(time.time())
    grant = AllowEntry(
        operation=_operation(app, operation),
        kind=SubjectKind(kind),
        name=name,
        since=parse_time(since, zone, now) if since else None,
        until=_until(until, zone, now) if until else None,
        reason=reason,
        granted_by=getpass.getuser(),
    )
    if grant.since is not None and grant.until is not None and grant.since >= grant.until:
        raise InputError(f"it would end ({until}) before it begins ({since}); change --from or --until")
    number = added(app.store, grant, at=now)
    _warn_if_pointless(app, grant.operation)
    if grant.until is not None and grant.until <= now:
        say("note: that is over, so it counts for jobs only that were submitted before then")
    if as_json:
        print_json({"permission": number, **_json(grant)})
    else:
        click.echo(f"permission {number}: {kind} {name} may run {operation}{_span(grant, zone)}")


@allow.command()
@click.argument("operation")
@click.argument("rule", type=click.Choice(["allowed", "listed", "never"]))
@click.option("--reason", default="", metavar="TEXT", help="Why.")
@options.as_json
@click.pass_obj
def default(app: App, operation: str, rule: str, reason: str, as_json: bool) -> None:
    """Set the rule for all who are not listed.

    allowed: everybody may; listed: those who are listed; never: nobody, listed or not.
    """
    from tocsin.core.allow_list import DefaultRule
    from tocsin.store.allow import set_default

    operation = _operation(app, operation)
    number = set_default(
        app.store, operation, DefaultRule(rule), at=int(time.time()), who=getpass.getuser(), reason=reason
    )
    from tocsin.app.allow import allow_book

    now = allow_book(app).current().default(operation)
    if as_json:
        print_json({"permission": number, "operation": operation, "default": rule})
    else:
        click.echo(f"{operation} is {_WORDS[rule]}")
    if now != rule:
        say(f"note: the allow-list file says {now}, and the file counts")


_WORDS = {
    "allowed": "allowed for everybody",
    "listed": "for listed ones only",
    "never": "never allowed",
}


@allow.command()
@click.argument("number", type=int)
@options.as_json
@click.pass_obj
def remove(app: App, number: int, as_json: bool) -> None:
    """Take a permission back, by its number.

    Jobs that were submitted before keep it.
    """
    from tocsin.store.allow import remove as removed

    grant = removed(app.store, number, at=int(time.time()), who=getpass.getuser())
    if as_json:
        print_json({"permission": number, **_json(grant)})
    else:
        click.echo(f"permission {number} is taken back: {grant.kind} {grant.name}, {grant.operation}")


@allow.command("list")
@click.option("-a", "--all", "everything", is_flag=True, help="Those that count no more, or not yet, too.")
@options.listing
@click.pass_obj
def list_(app: App, everything: bool, listing: Listing) -> None:
    """List the rules and permissions that count, of the store and of the file."""
    from tocsin.app.allow import allow_book, operations

    now = int(time.time())
    current = allow_book(app).current()
    named = {*operations(app), *current.defaults, *(grant.operation for grant in current.entries)}
    rules = {operation: str(current.default(operation)) for operation in sorted(named)}
    found = [grant for grant in current.entries if everything or grant.counts(now)]
    if listing.as_json:
        print_json({"default": rules, "allow": [_json(grant) for grant in found]})
        return
    zone = app.zone()
    rows = [_row({"operation": name, "who": "everybody", "rule": rule}) for name, rule in rules.items()]
    rows += [_row({**_json(grant), **_shown(grant, zone)}) for grant in found]
    listing.print_table(rows, _COLUMNS)


@allow.command()
@click.argument("file", required=False)
@options.as_json
@click.pass_obj
def check(app: App, file: str | None, as_json: bool) -> None:
    """Check the file of an allow-list.

    FILE, or the one that the settings name. A broken one is refused with its line and the reason; exit code 1.
    """
    from tocsin.app.allow import ALLOW_FILE, operations
    from tocsin.judge.allow_file import parse, read

    named = Path(file or app.settings.workload.allow_file or ALLOW_FILE)
    if not file and not app.settings.workload.allow_file and not named.exists():
        raise NotFound(
            f"there is no {named}, and the settings name no workload.allow_file; nothing is to be checked"
        )
    zone = app.zone()
    defaults, found = parse(read(named), named, known=operations(app), zone=zone)
    if as_json:
        rules = {operation: str(rule) for operation, rule in defaults.items()}
        print_json({"file": str(named), "default": rules, "allow": [_json(grant) for grant in found]})
        return
    click.echo(f"{named} is good: {count(len(defaults), 'rule')}, {count(len(found), 'permission')}")


def _operation(app: App, text: str) -> str:
    from tocsin.app.allow import operations
    from tocsin.judge.allow_file import why_unknown

    if why := why_unknown(text, operations(app)):
        raise InputError(why)
    return text


def _until(text: str, zone: tzinfo, now: int) -> int | None:
    """The instant at which it ends, if ever; a day, which has no clock, is included as in the file."""
    from tocsin.app.times import LAST, parse_time

    end = parse_time(text, zone, now)
    if end >= LAST:
        return None
    day = datetime.fromtimestamp(end, zone)
    if day.time() != clock_time() or _INSTANT.search(text):
        return end
    return int(datetime.combine(day.date() + timedelta(days=1), clock_time(), zone).timestamp())


def _warn_if_pointless(app: App, operation: str) -> None:
    from tocsin.app.allow import allow_book

    rule = str(allow_book(app).current().default(operation))
    if rule != "listed":
        say(
            f"note: {operation} is {_WORDS[rule]}, so this changes nothing; see: tocsin allow default {operation} listed"
        )


def _span(grant: "AllowEntry", zone: tzinfo) -> str:
    shown = _shown(grant, zone)
    return "".join(f" {word} {shown[word]}" for word in ("from", "until") if shown[word])


def _shown(grant: "AllowEntry", zone: tzinfo) -> dict[str, str]:
    return {
        "who": f"{grant.kind} {grant.name}",
        "rule": "may",
        "from": clock(grant.since, zone),
        "until": clock(grant.until, zone),
    }


def _json(grant: "AllowEntry") -> dict[str, Any]:
    return {
        "operation": grant.operation,
        str(grant.kind): grant.name,
        "from": None if grant.since is None else format_instant(grant.since),
        "until": None if grant.until is None else format_instant(grant.until),
        "reason": grant.reason,
        "granted_by": grant.granted_by,
        "origin": grant.origin,
    }


def _row(values: dict[str, Any]) -> dict[str, Any]:
    return {**dict.fromkeys(("from", "until", "reason", "granted_by", "origin"), ""), **values}


def _column(title: str, key: str, width: int) -> Column:
    return Column(title, lambda row: str(row[key]), width)


_COLUMNS = [
    _column("Operation", "operation", -14),
    _column("Who", "who", -24),
    _column("Rule", "rule", -8),
    _column("From", "from", 19),
    _column("Until", "until", 19),
    _column("GrantedBy", "granted_by", -10),
    _column("Where", "origin", -16),
    _column("Reason", "reason", -40),
]
