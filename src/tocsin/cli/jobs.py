"""`tocsin jobs` and `tocsin job`: the store's jobs, filtered and printed as sacct does."""

from datetime import tzinfo

import click

from tocsin.app.app import App
from tocsin.app.ask import list_jobs, show_job
from tocsin.app.jobs import NEWEST, JobsRequest, JobWithVerdicts
from tocsin.app.text import clock, count
from tocsin.cli import options
from tocsin.cli.columns import DEFAULT, columns, needed_fields
from tocsin.cli.output import Listing, print_json, print_line, print_message, print_table
from tocsin.core.fields import FIELDS, Part
from tocsin.core.job_json import to_json

__all__ = ["job", "jobs"]


def _no_effect(*names: str, why: str) -> options.Decorator:
    """A flag of sacct that changes nothing here."""
    return click.option(*names, is_flag=True, expose_value=False, help=f"No effect: {why}.")


@click.command()
@click.option("-j", "--jobs", "ids", metavar="IDS", help="Only these: 17, 17_4, comma-separated.")
@options.comma_separated("-u", "--user", "users", metavar="USERS", help="Only jobs of these users.")
@options.comma_separated("-A", "--accounts", metavar="ACCOUNTS", help="Only jobs of these accounts.")
@options.comma_separated("-M", "--clusters", metavar="NAMES", help="Only jobs of these clusters.")
@options.comma_separated(
    "-r", "--partition", "partitions", metavar="NAMES", help="Only jobs of these partitions."
)
@options.comma_separated("-s", "--state", "states", metavar="STATES",
                         help="Only jobs in these states: F,TO,OOM or full names.")  # fmt: skip
@options.comma_separated("--name", "names", metavar="NAMES", help="Only jobs with these names.")
@options.comma_separated("--domain", "domains", metavar="NAMES",
                         help="Only jobs of these domains, such as chemistry, interactive or idle, by their verdicts.")  # fmt: skip
@options.window
@click.option(
    "-o", "--format", "spec", default=DEFAULT, metavar="COLUMNS", help="Columns; NAME%N sets a width."
)
@options.listing
@click.option("-p", "--parsable", is_flag=True, help="As -P, with a pipe at the end of each line.")
@_no_effect("-X", "--allocations", why="steps are always part of jobs")
@_no_effect("-a", "--allusers", why="jobs of all users are listed")
@_no_effect("-D", "--duplicates", why="each requeue is a job")
@click.option(
    "--limit",
    type=click.IntRange(0, 10**9),
    metavar="N",
    help=f"List the newest N only; 0 is all [default: {NEWEST}].",
)
@options.local
@click.pass_obj
@options.gathered(JobsRequest, "request")
def jobs(app: App, request: JobsRequest, spec: str, listing: Listing, parsable: bool, local: bool) -> None:
    """List jobs, with the filters of sacct.

    Oldest first. A pending array is one line until its tasks start.
    """
    shown = columns(spec, app.zone(request.cluster))
    found = list_jobs(app, request, None if listing.as_json else needed_fields(spec), local=local)
    if listing.as_json:
        print_json({"jobs": [to_json(row) for row in found.rows]})
        return
    pipes = parsable or listing.parsable2
    print_table(found.rows, shown, header=not listing.noheader, parsable=pipes, end="|" if parsable else "")
    if not found.number:
        print_message("no job in the store matches")
    if request.limit is None and request.newest and found.number == request.newest:
        print_message(f"showing the newest {NEWEST} jobs; use -S, -E, -j or --limit for others")


@click.command()
@click.argument("which", metavar="ID")
@click.option("-M", "--cluster", metavar="NAME", help="Name of the cluster, if several have this id.")
@options.local
@options.as_json
@click.pass_obj
def job(app: App, which: str, cluster: str | None, local: bool, as_json: bool) -> None:
    """Show everything known about one job.

    ID is 17, 17_4 or a key such as lab:17_4@1794775393.
    """
    found = show_job(app, which, cluster, local=local)
    if as_json:
        documents = [{**to_json(job.row), "verdicts": [v.to_json() for v in job.verdicts]} for job in found]
        print_json({"jobs": documents})
        return
    zone = app.zone(found[0].key.cluster)
    for number, each in enumerate(found):
        if number:
            print_line()
        _show(each, zone)
    if len(found) > 1:
        print_message(f"{count(len(found), 'submission')} or tasks have this id")


def _show(job: JobWithVerdicts, zone: tzinfo) -> None:
    """Fields that have a value, grouped by topic, and the verdicts by stage."""
    row = job.row
    print_line(str(job.key))
    print_line(f"  submitted            {columns('submit', zone)[0].value(row)}")
    for part in Part:
        names = [name for name, field in FIELDS.items() if field.part is part and row[name] is not None]
        if part is Part.IDENTITY or not names:
            continue
        print_line(f"  {part}")
        for name in names:
            value = columns(name, zone)[0].value(row)
            print_line(f"    {name:<20} {value}")
    if job.verdicts:
        print_line("  verdicts")
    for verdict in job.verdicts:
        findings = "; ".join(finding.text for finding in verdict.findings)
        late = " (late)" if verdict.late else ""
        at = clock(verdict.at, zone)
        print_line(f"    {verdict.stage:<8} {at} {verdict.level:<8} {findings or 'nothing found'}{late}")
