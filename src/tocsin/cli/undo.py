"""`tocsin actions`, `tocsin undo` and `tocsin expire`: list actions on jobs, undo them, and release expired ones."""

from datetime import tzinfo
from typing import TYPE_CHECKING, Any

import click

from tocsin.app.actions import ActionRequest, list_actions
from tocsin.app.actions import expire as release_expired
from tocsin.app.actions import undo as undo_actions
from tocsin.app.app import App
from tocsin.app.service_address import note_own_data
from tocsin.app.text import clock, count
from tocsin.cli import options
from tocsin.cli.output import Column, Listing, print_json, print_line, print_message, text_of

if TYPE_CHECKING:
    from tocsin.store.actions import Action

__all__ = ["actions", "expire", "undo"]


@click.command()
@click.option(
    "-a", "--all", "everything", is_flag=True, help="Include shadow, control, failed and ended actions."
)
@click.option("-u", "--user", metavar="USER", help="Only jobs of this user.")
@click.option("-j", "--job", metavar="JOB", help="Only this job, by its id or key.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the last N.")
@options.listing
@click.pass_obj
@options.gathered(ActionRequest, "request")
def actions(app: App, request: ActionRequest, listing: Listing) -> None:
    """List actions on jobs: planned ones and those in force.

    While policy.mode is shadow, nothing is done; --all lists what would have been done.
    """
    note_own_data(app)
    found = list_actions(app, request)
    if listing.as_json:
        print_json({"actions": [action.to_json() for action in found]})
        return
    listing.print_table([_shown(action, app.zone(action.job.cluster)) for action in found], _COLUMNS)
    if not found:
        print_message(
            "no action is planned or in force" + ("" if request.everything else "; --all lists the others")
        )


@click.command()
@click.argument("numbers", nargs=-1, type=int, metavar="[ACTION]...")
@click.option("--all", "everything", is_flag=True, help="Undo all actions that are planned or in force.")
@click.option("--note", default="", metavar="TEXT", help="The reason, kept in the audit trail.")
@options.as_json
@click.pass_obj
def undo(app: App, numbers: tuple[int, ...], everything: bool, note: str, as_json: bool) -> None:
    """Undo actions by their numbers: release held jobs, end leases.

    A job gets its own earliest start back. It works while the service is down, too.
    """
    if bool(numbers) == everything:
        raise click.UsageError("name the numbers of actions, or --all")
    note_own_data(app)
    done = undo_actions(app, numbers, everything=everything, note=note)
    if as_json:
        print_json({"actions": [action.to_json() for action in done]})
        return
    for action in done:
        print_line(f"action {action.id} ({action.kind} of {action.job}) is {action.status}: {action.note}")
    if not done:
        print_message("no action is planned or in force")


@click.command()
@options.as_json
@click.pass_obj
def expire(app: App, as_json: bool) -> None:
    """Release held jobs whose time is over.

    For a timer: it needs the store and Slurm, not the service. Exits with 1 if a cluster did not answer.
    """
    done = release_expired(app)
    if as_json:
        print_json(
            {
                "clusters": [
                    {"cluster": one.cluster, "released": one.released, "problem": one.problem or None}
                    for one in done
                ]
            }
        )
    for one in done if not as_json else ():
        if one.problem:
            print_message(f"tocsin: {one.cluster}: {one.problem}")
        if one.released:
            print_line(f"{one.cluster}: released {count(one.released, 'job')}")
    if any(one.problem for one in done):
        raise SystemExit(1)


def _shown(action: "Action", zone: tzinfo) -> dict[str, Any]:
    document = action.to_json()
    times = {name: clock(getattr(action, name), zone) for name in ("at", "expires")}
    return {**document, **times, "action": str(action.id), "note": action.note or action.reason}


_COLUMNS = [
    Column("Action", text_of("action"), 6),
    Column("Kind", text_of("kind"), -7),
    Column("Status", text_of("status"), -8),
    Column("Planned", text_of("at"), 19),
    Column("Expires", text_of("expires"), 19),
    Column("User", text_of("user"), 10),
    Column("Job", text_of("job"), -28),
    Column("Text", text_of("note"), -60),
]
