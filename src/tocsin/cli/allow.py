"""`tocsin allow`: who may run which operation."""

from datetime import tzinfo
from typing import TYPE_CHECKING

import click

from tocsin.app.allow import (
    AllowRequest,
    add_entry,
    check_file,
    entry_json,
    list_entries,
    remove_entry,
    set_default,
)
from tocsin.app.app import App
from tocsin.app.service_address import note_own_data
from tocsin.app.text import clock, count
from tocsin.cli import options
from tocsin.cli.output import Column, Listing, print_json, print_line, text_of

if TYPE_CHECKING:
    from tocsin.core.allow_list import AllowEntry

__all__ = ["allow"]

_KINDS = ("user", "account", "group")
_RULES = {
    "allowed": "allowed for everybody",
    "listed": "allowed for listed users, accounts and groups only",
    "never": "never allowed",
}


@click.group(cls=options.ListedByDefault)
@click.pass_obj
def allow(app: App) -> None:
    """Manage the allow-list: who may run which operation.

    Entries are kept in the store, beside the file named by the setting workload.allow_file.
    """
    note_own_data(app)


@allow.command()
@click.argument("operation")
@click.option("-u", "--user", metavar="USER", help="Allow this user.")
@click.option("-A", "--account", metavar="ACCOUNT", help="Allow this account.")
@click.option("-g", "--group", metavar="GROUP", help="Allow this group.")
@click.option("--from", "since", metavar="TIME", help="For jobs submitted from TIME on [default: now].")
@click.option(
    "--until", metavar="TIME", help="For jobs submitted before TIME; a day is included [default: no end]."
)
@click.option("--reason", default="", metavar="TEXT", help="The reason, shown in verdicts.")
@options.as_json
@click.pass_obj
def add(
    app: App,
    /,
    operation: str,
    since: str | None,
    until: str | None,
    reason: str,
    as_json: bool,
    **who: str | None,
) -> None:
    """Allow a user, an account or a group to run an operation."""
    named = {kind: name for kind in _KINDS if (name := who[kind])}
    if len(named) != 1:
        raise click.UsageError("name one of --user, --account, --group")
    [(kind, name)] = named.items()
    request = AllowRequest(operation=operation, kind=kind, name=name, since=since, until=until, reason=reason)
    number, entry = add_entry(app, request)
    if as_json:
        print_json({"entry": number, **entry_json(entry)})
        return
    since, end = clock(entry.since, app.zone()), " ".join(_end(entry.until, app.zone()))
    span = (f" from {since}" if since else "") + (f" {end}" if entry.until else "")
    print_line(f"allow-list entry {number}: {kind} {name} may run {operation}{span}")


@allow.command()
@click.argument("operation")
@click.argument("rule", type=click.Choice(list(_RULES)))
@click.option("--reason", default="", metavar="TEXT", help="The reason.")
@options.as_json
@click.pass_obj
def default(app: App, operation: str, rule: str, reason: str, as_json: bool) -> None:
    """Set the default rule of an operation.

    allowed: for everybody; listed: for listed users, accounts and groups; never: for nobody, listed or not.
    """
    number = set_default(app, operation, rule, reason)
    if as_json:
        print_json({"entry": number, "operation": operation, "default": rule})
    else:
        print_line(f"{operation} is {_RULES[rule]}")


@allow.command()
@click.argument("number", type=int)
@options.as_json
@click.pass_obj
def remove(app: App, number: int, as_json: bool) -> None:
    """Remove an allow-list entry by its number.

    It still counts for jobs that were submitted before.
    """
    entry = remove_entry(app, number)
    if as_json:
        print_json({"entry": number, **entry_json(entry)})
    else:
        print_line(f"removed allow-list entry {number}: {entry.kind} {entry.name}, {entry.operation}")


@allow.command("list")
@click.option("-a", "--all", "everything", is_flag=True, help="Include expired and future entries.")
@options.listing
@click.pass_obj
def list_(app: App, everything: bool, listing: Listing) -> None:
    """List the rules and entries in force, from the store and from the file."""
    defaults, entries = list_entries(app, everything=everything)
    if listing.as_json:
        print_json({"default": defaults, "allow": [entry_json(entry) for entry in entries]})
        return
    zone = app.zone()
    rows = [{"operation": name, "who": "everybody", "rule": rule} for name, rule in defaults.items()]
    listing.print_table(
        [*rows, *({**entry_json(entry), **_shown(entry, zone)} for entry in entries)], _COLUMNS
    )


@allow.command()
@click.argument("file", required=False)
@options.as_json
@click.pass_obj
def check(app: App, file: str | None, as_json: bool) -> None:
    """Check an allow-list FILE, by default the one in the settings.

    A broken file is refused with the line and the reason; exits with 1.
    """
    path, (defaults, entries) = check_file(app, file)
    if as_json:
        print_json(
            {"file": str(path), "default": defaults, "allow": [entry_json(entry) for entry in entries]}
        )
    else:
        noun = "entry" if len(entries) == 1 else "entries"
        print_line(f"{path} is valid: {count(len(defaults), 'rule')}, {len(entries)} {noun}")


def _shown(entry: "AllowEntry", zone: tzinfo) -> dict[str, str]:
    return {
        "who": f"{entry.kind} {entry.name}",
        "rule": "allowed",
        "from": clock(entry.since, zone),
        "until": " ".join(_end(entry.until, zone)).removeprefix("until "),
    }


def _end(until: int | None, zone: tzinfo) -> tuple[str, str]:
    """`until` an instant, or `through` a day if it is midnight."""
    if until is not None and clock(until, zone).endswith("T00:00:00"):
        return "through", clock(until - 1, zone)[:10]
    return "until", clock(until, zone)


_COLUMNS = [
    Column("Operation", text_of("operation"), -14),
    Column("Who", text_of("who"), -24),
    Column("Rule", text_of("rule"), -8),
    Column("From", text_of("from"), 19),
    Column("Until", text_of("until"), 19),
    Column("GrantedBy", text_of("granted_by"), -10),
    Column("Where", text_of("origin"), -16),
    Column("Reason", text_of("reason"), -40),
]
