"""`tocsin cases`: what people are asked to look into, and their answers."""

import getpass
import time
from typing import Any

import click

from tocsin.app.app import App
from tocsin.app.text import clock
from tocsin.cli import options
from tocsin.cli.output import Column, Listing, print_json, say
from tocsin.core.verdict import CaseStatus

__all__ = ["cases"]


@click.group(invoke_without_command=True)
@click.pass_context
def cases(context: click.Context) -> None:
    """List cases and answer them.

    A dismissed case is silent from then on for what was dismissed; a confirmed one goes on ringing.
    """
    if context.invoked_subcommand is None:
        context.invoke(list_)


@cases.command("list")
@click.option("-a", "--all", "everything", is_flag=True, help="Answered ones too.")
@options.listing
@click.pass_obj
def list_(app: App, everything: bool, listing: Listing) -> None:
    """List open cases, the oldest first."""
    from tocsin.store.cases import list_cases

    found = list_cases(app.store, None if everything else CaseStatus.OPEN)
    if listing.as_json:
        print_json({"cases": [case.to_json() for case in found]})
        return
    zone = app.zone()
    rows = [
        {
            "case": str(case.id),
            "status": str(case.status),
            "opened": clock(case.opened, zone),
            "user": str(case.document.get("user") or ""),
            "job": str(case.job),
            "text": str(case.document.get("finding", {}).get("text", "")),
        }
        for case in found
    ]
    listing.print_table(rows, _COLUMNS)
    if not found:
        say("no case has been opened yet" if everything else "no case is open; --all lists answered ones too")


@cases.command()
@click.argument("number", type=int)
@options.as_json
@click.pass_obj
def show(app: App, number: int, as_json: bool) -> None:
    """Show one case with all of its answers."""
    from tocsin.store.cases import show as shown

    _print(app, shown(app.store, number), as_json)


def _answer(name: str, status: str, doc: str) -> click.Command:
    """`confirm` and `dismiss` differ in a word."""

    @cases.command(name, help=doc)
    @click.argument("number", type=int)
    @click.option("--note", default="", metavar="TEXT", help="Why; it is kept with the answer.")
    @options.as_json
    @click.pass_obj
    def command(app: App, number: int, note: str, as_json: bool) -> None:
        from tocsin.store.cases import answer

        case = answer(
            app.store, number, CaseStatus(status), who=getpass.getuser(), at=int(time.time()), note=note
        )
        _print(app, case, as_json)

    return command


confirm = _answer("confirm", "confirmed", "Say that a case is what it seems.")
dismiss = _answer("dismiss", "dismissed", "Say that a case is nothing.")


def _column(title: str, width: int) -> Column:
    return Column(title, lambda row: row[title.lower()], width)


_COLUMNS = [
    _column("Case", 5),
    _column("Status", 9),
    _column("Opened", 19),
    _column("User", 10),
    _column("Job", -28),
    _column("Text", -60),
]


def _print(app: App, case: Any, as_json: bool) -> None:
    if as_json:
        print_json(case.to_json())
        return
    zone = app.zone(case.job.cluster)
    finding = case.document.get("finding", {})
    click.echo(f"case {case.id} is {case.status}: {finding.get('text', case.cause)}")
    for line in finding.get("evidence", []):
        click.echo(f"  {line}")
    click.echo(f"  job      {case.job}")
    click.echo(f"  user     {case.document.get('user') or ''}")
    click.echo(f"  opened   {clock(case.opened, zone)}")
    click.echo(f"  cause    {case.cause}")
    for said in case.answers:
        note = f": {said.note}" if said.note else ""
        click.echo(f"  {said.answer} by {said.who} at {clock(said.at, zone)}{note}")
