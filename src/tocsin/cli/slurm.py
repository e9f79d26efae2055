"""`tocsin slurm`: the hooks in Slurm's own plug-ins."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from tocsin.app.app import App
from tocsin.app.slurm_hooks import (
    CLI_FILTER,
    JOB_SUBMIT,
    HookRequest,
    apply_hooks,
    hook_status,
    plan_hooks,
    plan_removal,
)
from tocsin.cli import options
from tocsin.cli.output import print_json, print_line, print_message

if TYPE_CHECKING:
    from tocsin.slurm.hooks import Change

__all__ = ["slurm"]


def _request(command: Any) -> Any:
    socket = click.option(
        "--socket",
        metavar="PATH",
        help="Socket of the service, or of its relay [default: service.socket, else as installed].",
    )
    folder = click.option(
        "--folder", metavar="FOLDER", help="Folder of slurm.conf [default: found with scontrol]."
    )
    return folder(socket(options.gathered(HookRequest, "request")(command)))


_hooks = click.argument("hooks", nargs=-1, type=click.Choice([CLI_FILTER, JOB_SUBMIT]), metavar="[HOOK]...")
_yes = click.option("--yes", is_flag=True, help="Make the changes; without this option they are only shown.")


@click.group()
def slurm() -> None:
    """Install, remove and check the hooks in Slurm.

    cli_filter prints advice in sbatch, on login nodes; job_submit is the screening window, in slurmctld.
    """


@slurm.command()
@_hooks
@_yes
@options.as_json
@click.pass_obj
@_request
def install(app: App, request: HookRequest, yes: bool, as_json: bool) -> None:
    """Install HOOKs: a Lua library of tocsin, and one line in the site's Lua file that loads it.

    Shows what it will do, and does it with --yes. By default cli_filter, and job_submit if policy.screening_seconds is
    set. Every file is checked to be valid Lua before Slurm sees it.
    """
    _do(plan_hooks(app, request), yes, as_json)
    if yes and not as_json:
        for status in hook_status(app, request):
            if status.installed and status.fix:
                print_message(f"{status.hook}: {status.fix}")


@slurm.command()
@_hooks
@_yes
@options.as_json
@click.pass_obj
@_request
def uninstall(app: App, request: HookRequest, yes: bool, as_json: bool) -> None:
    """Remove HOOKs, by default all: the site's files are restored byte for byte.

    Shows what it will do, and does it with --yes. While slurm.conf names lua, a file that `install` created stays and
    does nothing, because Slurm fails without it; take lua out of slurm.conf, and run this again.
    """
    removal = plan_removal(app, request)
    _do(removal.changes, yes, as_json, removal.next_steps)


@slurm.command()
@_hooks
@options.as_json
@click.pass_obj
@_request
def status(app: App, request: HookRequest, as_json: bool) -> None:
    """Show whether HOOKs, by default all, are installed and enabled, and how long jobs wait for them."""
    found = hook_status(app, request)
    if as_json:
        print_json({"hooks": [status.to_json() for status in found]})
        return
    for one in found:
        print_line(f"{one.hook:<11} {one.text}")
        if one.fix:
            print_line(f"{'':<11} → {one.fix}")


def _do(changes: "list[Change]", yes: bool, as_json: bool, next_steps: Sequence[str] = ()) -> None:
    if yes:
        apply_hooks(changes)
    if as_json:
        shown = [{"file": str(c.path), "change": c.text} for c in changes]
        print_json({"done": yes, "changes": shown, "next_steps": list(next_steps)})
        return
    for change in changes:
        print_line(f"{change.path}: {change.text}")
    if not changes:
        print_message("nothing to change")
    elif not yes:
        print_message("nothing was changed yet; run this again with --yes")
    for step in next_steps:
        print_message(step)
