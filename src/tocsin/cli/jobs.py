"""`tocsin jobs` and `tocsin job`: what the store knows, filtered and printed as sacct does."""

import time
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any

import click

from tocsin.app.app import App
from tocsin.app.jobs import find_jobs, parse_ids
from tocsin.app.text import count, plain
from tocsin.cli import options
from tocsin.cli.columns import DEFAULT, columns, needed_fields
from tocsin.cli.output import print_json, print_table, say
from tocsin.core.fields import FIELDS, Part
from tocsin.core.ids import JobKey

if TYPE_CHECKING:
    from tocsin.core.verdict import Verdict

__all__ = ["job", "jobs"]

NEWEST = 100


@click.command()
@click.option("-j", "--jobs", "ids", metavar="IDS", help="Only these: 17, 17_4, comma-separated.")
@click.option("-u", "--user", "users", metavar="USERS", help="Only jobs of these users.")
@click.option("-A", "--accounts", metavar="ACCOUNTS", help="Only jobs of these accounts.")
@click.option("-M", "--clusters", metavar="NAMES", help="Only jobs of these clusters.")
@click.option("-r", "--partition", "partitions", metavar="NAMES", help="Only jobs of these partitions.")
@click.option(
    "-s", "--state", "states", metavar="STATES", help="Only jobs in these states: F,TO,OOM or full names."
)
@click.option("--name", "names", metavar="NAMES", help="Only jobs with these names.")
@options.window
@click.option(
    "-o", "--format", "spec", default=DEFAULT, metavar="COLUMNS", help="Columns, with %N for a width."
)
@options.no_header
@options.parsable
@options.as_json
@click.option("-p", "--parsable", is_flag=True, help="As -P, with a pipe at the end of each line too.")
@click.option(
    "-X", "--allocations", is_flag=True, expose_value=False, help="As always here: steps are folded in."
)
@click.option("-a", "--allusers", is_flag=True, expose_value=False, help="As always here: all users' jobs.")
@click.option(
    "-D", "--duplicates", is_flag=True, expose_value=False, help="As always here: every requeue is a job."
)
@click.option(
    "--limit", type=click.IntRange(0, 10**9), help=f"The newest N only; 0 is all [default: {NEWEST}]."
)
@click.pass_obj
def jobs(
    app: App,
    ids: str | None,
    users: str | None,
    accounts: str | None,
    clusters: str | None,
    partitions: str | None,
    states: str | None,
    names: str | None,
    starttime: str | None,
    endtime: str | None,
    spec: str,
    noheader: bool,
    parsable2: bool,
    as_json: bool,
    parsable: bool,
    limit: int | None,
) -> None:
    """List jobs, with sacct's filters.

    Oldest first. An array that waits is one line until its tasks start.
    """
    from tocsin.app.times import parse_time
    from tocsin.store.jobs import Filter, load

    named = options.words(clusters)
    zone = app.zone(named[0] if len(named) == 1 else None)
    shown = columns(spec, zone)
    now = time.time()
    narrowed = any((ids, starttime, endtime))
    most = limit if limit is not None else (0 if narrowed else NEWEST)
    wanted = Filter(
        clusters=named,
        ids=parse_ids(ids),
        users=options.words(users),
        accounts=options.words(accounts),
        partitions=options.words(partitions),
        states=options.states_of(states),
        names=options.words(names),
        since=parse_time(starttime, zone, now) if starttime else None,
        until=parse_time(endtime, zone, now) if endtime else None,
        order="-submit" if most else "submit",
        limit=most or None,
    )
    frame = load(app.store, wanted, None if as_json else needed_fields(spec))
    if most:
        frame = frame.reverse()
    if as_json:
        from tocsin.core.frames import to_json

        print_json({"jobs": [to_json(row) for row in frame.iter_rows(named=True)]})
        return
    end = "|" if parsable else ""
    pipes = parsable or parsable2
    print_table(frame.iter_rows(named=True), shown, header=not noheader, parsable=pipes, end=end)
    if frame.is_empty():
        say("no job in the store is like that")
    if most and limit is None and frame.height == most:
        say(f"the newest {most} jobs; -S, -E, -j or --limit show others")


@click.command()
@click.argument("which", metavar="ID")
@click.option("-M", "--cluster", metavar="NAME", help="Name of the cluster, where several know this id.")
@options.as_json
@click.pass_obj
def job(app: App, which: str, cluster: str | None, as_json: bool) -> None:
    """Show all that is known of one job.

    ID is 17, 17_4 or a key such as lab:17_4@1794775393.
    """
    from tocsin.store.verdicts import of_job

    rows = find_jobs(app, which, cluster).to_dicts()
    verdicts = {str(_key(row)): of_job(app.store, _key(row)) for row in rows}
    if as_json:
        from tocsin.core.frames import to_json

        said = {key: [verdict.to_json() for verdict in found] for key, found in verdicts.items()}
        print_json({"jobs": [{**to_json(row), "verdicts": said[str(_key(row))]} for row in rows]})
        return
    zone = app.zone(rows[0]["cluster"])
    for number, row in enumerate(rows):
        if number:
            click.echo()
        _show(row, zone)
        _timeline(verdicts[str(_key(row))], zone)
    if len(rows) > 1:
        say(f"{count(len(rows), 'submission')} or tasks have this id")


def _timeline(verdicts: "list[Verdict]", zone: tzinfo) -> None:
    """What was said of it, stage by stage."""
    if verdicts:
        click.echo("  verdicts")
    for verdict in verdicts:
        at = datetime.fromtimestamp(verdict.at, zone).strftime("%Y-%m-%dT%H:%M:%S")
        said = "; ".join(finding.text for finding in verdict.findings) or "nothing found"
        click.echo(
            f"    {verdict.stage:<8} {at} {verdict.level:<8} {said}{' (late)' if verdict.late else ''}"
        )


def _show(row: dict[str, Any], zone: tzinfo) -> None:
    """Fields that have a value, grouped by what they tell about."""
    click.echo(plain(str(_key(row))))
    click.echo(f"  submitted            {columns('submit', zone)[0].value(row)}")
    for part in Part:
        names = [name for name, field in FIELDS.items() if field.part is part and row[name] is not None]
        if part is Part.IDENTITY or not names:
            continue
        click.echo(f"  {part}")
        for name in names:
            value = columns(name, zone)[0].value(row)
            click.echo(f"    {name:<20} {plain(value)}")


def _key(row: dict[str, Any]) -> JobKey:
    return JobKey(row["cluster"], row["job_id"], row["task"], row["submit"])
