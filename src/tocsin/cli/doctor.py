"""`tocsin doctor`: check everything from settings to Slurm, and say how to fix what is missing."""

from dataclasses import asdict

import click

from tocsin.app.app import App
from tocsin.app.doctor import Status
from tocsin.app.doctor import doctor as examine
from tocsin.cli import options
from tocsin.cli.output import print_json, print_line

__all__ = ["doctor"]

_MARKS = {Status.FINE: "ok", Status.NOTE: "note", Status.ABSENT: "-", Status.BROKEN: "BAD"}


@click.command()
@options.as_json
@click.pass_obj
def doctor(app: App, as_json: bool) -> None:
    """Check settings, store and the connection to Slurm.

    Each problem comes with the command that fixes it. Exits with 1 if something is broken.
    """
    findings = list(examine(app))
    if as_json:
        print_json({"links": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            print_line(f"{_MARKS[finding.status]:>4}  {finding.link:<20} {finding.text}")
            if finding.fix:
                print_line(f"      {'':<20} → {finding.fix}")
    if any(finding.status is Status.BROKEN for finding in findings):
        raise SystemExit(1)
