"""`tocsin resubmit`: submit a job again, linked to the old one."""

import click

from tocsin.app.app import App
from tocsin.app.resubmit import ResubmitRequest
from tocsin.app.resubmit import resubmit as submit_again
from tocsin.cli import options
from tocsin.cli.output import print_json, print_line

__all__ = ["resubmit"]


@click.command()
@click.argument("job", metavar="JOB")
@click.argument("script", required=False)
@click.argument("submit_options", nargs=-1, type=click.UNPROCESSED, metavar="[-- SBATCH OPTIONS]")
@options.cluster
@options.local
@options.as_json
@click.pass_obj
@options.gathered(ResubmitRequest, "request")
def resubmit(app: App, request: ResubmitRequest, local: bool, as_json: bool) -> None:
    """Submit a job of your own again, linked to the old one.

    Shows what that does to its risk of failure. SCRIPT is the changed script; without it, the one that was submitted. Options of sbatch may follow after --.
    """
    if request.script and request.script.startswith("-"):
        raise click.UsageError(f'name the SCRIPT before options such as "{request.script}"')
    done = submit_again(app, request, local=local)
    if as_json:
        print_json(done.to_json())
        return
    print_line(f"submitted {done.new} to replace {done.old}")
    risks = [f"{risk:.0%}" if risk is not None else "unknown" for risk in (done.risk_before, done.risk_after)]
    print_line(f"risk of failure: {risks[0]} before, {risks[1]} now")
