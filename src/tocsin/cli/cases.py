"""`tocsin cases`: what people are asked to look into, and their answers."""

from collections import Counter
from collections.abc import Sequence

import click

from tocsin.app.app import App
from tocsin.app.cases import CaseDetails, answer_cases, list_cases, show_case
from tocsin.app.service_address import note_own_data
from tocsin.app.text import clock
from tocsin.cli import options
from tocsin.cli.output import Column, Listing, print_json, print_line, print_message
from tocsin.core.verdict import CaseStatus

__all__ = ["cases"]

_WIDEST = 200
_MOST_JOBS = 50
_MOST_SCRIPTS = 10


@click.group(cls=options.ListedByDefault)
@click.pass_obj
def cases(app: App) -> None:
    """List and answer cases.

    A dismissed case raises no more alarms for what was dismissed; a confirmed one still does.
    """
    note_own_data(app)


@cases.command("list")
@click.option("-a", "--all", "everything", is_flag=True, help="Include answered cases.")
@options.listing
@click.pass_obj
def list_(app: App, everything: bool, listing: Listing) -> None:
    """List open cases, the oldest first.

    A script with a clear sign of misuse has a case of its own. Of several such cases of one user, the first is listed,
    with their number; --all and --json list each.
    """
    found = list_cases(app, everything=everything)
    if listing.as_json:
        print_json({"cases": [case.to_json() for case in found]})
        return
    zone = app.zone()
    groups = Counter(case.group or case.cause for case in found)
    shown = (
        found if everything else list({case.group or case.cause: case for case in reversed(found)}.values())
    )
    rows = [
        {
            **case.to_json(),
            "opened": clock(case.opened, zone),
            "cases": "" if everything else groups[case.group or case.cause],
        }
        for case in sorted(shown, key=lambda case: case.id)
    ]
    listing.print_table(rows, _COLUMNS)
    if not found:
        print_message(
            "no case has been opened yet"
            if everything
            else "no case is open; --all lists answered cases, too"
        )


@cases.command()
@click.argument("number", type=int)
@options.as_json
@click.pass_obj
def show(app: App, number: int, as_json: bool) -> None:
    """Show one case: the lines of its scripts, its jobs and all answers."""
    _print(app, show_case(app, number), as_json)


def _answer(name: str, status: CaseStatus, doc: str) -> None:
    """`confirm` and `dismiss` differ in one word."""

    @cases.command(name, help=doc)
    @click.argument("numbers", type=int, nargs=-1, required=True, metavar="NUMBER...")
    @click.option("--note", default="", metavar="TEXT", help="The reason, kept with the answer.")
    @options.as_json
    @click.pass_obj
    def command(app: App, numbers: tuple[int, ...], note: str, as_json: bool) -> None:
        for details in answer_cases(app, numbers, status, note):
            _print(app, details, as_json)


_answer("confirm", CaseStatus.CONFIRMED, "Confirm that cases are what they seem.")
_answer("dismiss", CaseStatus.DISMISSED, "Dismiss cases as false alarms; jobs held for them are released.")


def _column(title: str, width: int) -> Column:
    return Column(title, lambda row: str(row.get(title.lower()) or ""), width)


_COLUMNS = [
    _column("Case", 5),
    _column("Status", 9),
    _column("Opened", 19),
    _column("User", 10),
    _column("Job", -28),
    _column("Cases", 5),
    Column("Text", lambda row: str(row.get("finding", {}).get("text", "")), -60),
]


def _print(app: App, details: CaseDetails, as_json: bool) -> None:
    if as_json:
        print_json(details.to_json())
        return
    case = details.case
    zone = app.zone(case.job.cluster)
    finding = case.document.get("finding", {})
    print_line(f"case {case.id} is {case.status}: {finding.get('text', case.cause)}")
    for line in finding.get("evidence", []):
        print_line(f"  {line}")
    for number, script in enumerate(details.scripts[:_MOST_SCRIPTS]):
        if number:
            print_line(f"  script   {script.digest or 'unknown'}, used by {_few(script.jobs)}")
        for line, text in script.lines.items():
            print_line(f"  {line:>6}  {text[:_WIDEST]}{'…' if len(text) > _WIDEST else ''}")
        if script.no_lines:
            print_line(f"  script   {script.no_lines}")
    if len(details.scripts) > _MOST_SCRIPTS:
        print_line(f"  and {len(details.scripts) - _MOST_SCRIPTS:,} more scripts; --json lists them all")
    if details.others:
        print_line(
            f"  others   {_few(details.others)} for other scripts of this user: each has its own answer"
        )
    print_line(f"  user     {case.document.get('user') or ''}")
    print_line(f"  account  {case.document.get('account') or ''}")
    print_line(f"  opened   {clock(case.opened, zone)} for {case.job}")
    print_line(f"  cause    {case.cause}")
    print_line(f"  jobs     {len(details.jobs):,}")
    for verdict in details.jobs[:_MOST_JOBS]:
        name = f", name {verdict.name}" if verdict.name else ""
        print_line(
            f"    {verdict.job} at {clock(verdict.at, zone)}: {verdict.level} at {verdict.stage}{name}"
        )
    if len(details.jobs) > _MOST_JOBS:
        print_line(f"    and {len(details.jobs) - _MOST_JOBS:,} more; --json lists them all")
    for answer in case.answers:
        note = f": {answer.note}" if answer.note else ""
        print_line(f"  {answer.answer} by {answer.who} at {clock(answer.at, zone)}{note}")


def _few(names: Sequence[object]) -> str:
    more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
    return ", ".join(map(str, names[:5])) + more
