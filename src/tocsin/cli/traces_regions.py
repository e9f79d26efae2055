"""`tocsin traces regions`: regions of traces that people confirmed as bad."""

import click

from tocsin.app.app import App
from tocsin.app.traces_regions import dismiss_region, list_regions
from tocsin.cli import options
from tocsin.cli.output import Column, Listing, number_of, print_json, print_line, print_message, text_of

__all__ = ["regions"]


@click.group(cls=options.ListedByDefault)
def regions() -> None:
    """List and dismiss regions of traces that were confirmed as bad."""


@regions.command("list")
@options.listing
@click.pass_obj
def list_(app: App, listing: Listing) -> None:
    """List the confirmed regions, the oldest first.

    A region belongs to a version of the model. For another version it is computed again from the windows that were kept
    with it; where that is impossible, it is stale and not compared with anything.
    """
    found = list_regions(app)
    if listing.as_json:
        print_json({"regions": found})
        return
    listing.print_table(found, _COLUMNS)
    if not found:
        print_message(
            "no region has been confirmed yet; confirm a job with: tocsin traces diagnose JOB --confirm NAME"
        )


@regions.command()
@click.argument("number", type=int)
@click.option("--note", default="", metavar="TEXT", help="The reason, kept in the audit trail.")
@options.as_json
@click.pass_obj
def dismiss(app: App, number: int, note: str, as_json: bool) -> None:
    """Dismiss a region: jobs that enter it no longer raise an alarm."""
    region = dismiss_region(app, number, note)
    if as_json:
        print_json(region)
    else:
        print_line(f'region {region["number"]} "{region["name"]}" of {region["job"]} is dismissed')


_COLUMNS = [
    Column("Region", number_of("number"), 6),
    Column("Name", text_of("name"), -16),
    Column("Job", text_of("job"), -28),
    Column("Windows", number_of("windows"), 8),
    Column("Confirmed", text_of("at"), 20),
    Column("By", text_of("who"), -10),
    Column("Model", text_of("model"), 6),
    Column("Stale", text_of("stale"), -60),
]
