"""`tocsin check` and `tocsin explain`: a verdict in words, before a job is submitted or after."""

import gc
from pathlib import Path
from typing import Any

import click

from tocsin.app.app import App
from tocsin.app.ask import check as check_script
from tocsin.app.ask import explain as explain_job
from tocsin.app.check import CheckRequest, draw_risk
from tocsin.app.verdict_text import action_lines, check_headline, explain_headline, verdict_screen
from tocsin.cli import options
from tocsin.cli.output import print_json, print_line, print_message
from tocsin.core.ids import parse_key
from tocsin.core.stages import Stage
from tocsin.core.verdict import Level, Verdict

__all__ = ["check", "explain"]

NAGIOS = {Level.OK: 0, Level.WARNING: 1, Level.CRITICAL: 2, Level.UNKNOWN: 3}


class _CheckUsage(click.UsageError):
    exit_code = NAGIOS[Level.UNKNOWN]


class _Check(click.Command):
    """A command that exits with 3 on every error, as monitoring tools expect."""

    error_code = NAGIOS[Level.UNKNOWN]

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        try:
            return super().make_context(*arguments, **more)
        except click.UsageError as error:
            text = error.format_message()
            if isinstance(error, click.NoSuchOption) and not error.possibilities:
                text = f"{text.rstrip('.')}; options of sbatch come after --: tocsin check job.sh -- {error.option_name}"
            raise _CheckUsage(text, error.ctx) from error

    def invoke(self, context: click.Context) -> Any:
        gc.disable()  # the process ends within a second or two, a tenth of which would be garbage collection
        try:
            return super().invoke(context)
        finally:
            gc.freeze()  # skip the final collection, too
            gc.enable()


@click.command(cls=_Check)
@click.argument("script")
@click.argument("submit_options", nargs=-1, type=click.UNPROCESSED, metavar="[-- SBATCH OPTIONS]")
@click.option("-u", "--user", metavar="USER", help="Check as a job of this user [default: you].")
@click.option("-A", "--account", metavar="ACCOUNT", help="Account to be charged.")
@options.cluster
@options.local
@click.option("--follow", is_flag=True, help="Also read files that the script calls and the user may read.")
@options.as_json
@click.pass_obj
@options.gathered(CheckRequest, "request")
def check(app: App, request: CheckRequest, local: bool, as_json: bool) -> None:
    """Give a verdict on a job script before it is submitted.

    Nothing in the script is run; - reads it from standard input. Options of the submission may follow after --.
    Exit code: 0 ok, 1 warning, 2 critical, 3 unknown or error.
    """
    extra = request.submit_options
    if extra and not extra[0].startswith("-"):
        raise _CheckUsage(f'"{extra[0]}" is not an option; after -- come sbatch options such as --time=60')
    verdict = check_script(app, request, local=local)
    name = "standard input" if request.script == "-" else request.script
    _print(verdict, f"{name}: {check_headline(verdict)}", as_json)
    raise SystemExit(NAGIOS[verdict.level])


@click.command()
@click.argument("job", metavar="JOB")
@options.cluster
@click.option(
    "--stage",
    type=click.Choice([str(stage) for stage in Stage]),
    default="submit",
    show_default=True,
    callback=options.member(Stage),
    help="Use what was known at this stage.",
)
@click.option(
    "--out",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Write a waterfall chart of the risk (SVG) to FOLDER.",
)
@options.local
@options.as_json
@click.pass_obj
def explain(
    app: App, job: str, cluster: str | None, stage: Stage, out: Path | None, local: bool, as_json: bool
) -> None:
    """Explain the verdict on one job.

    Uses what was known at that stage of its life and shows all evidence. If the job failed, its output files are read, as
    its owner may read them, and the cause is named. Shows the allow-list decision made at the
    time; if today's models or rules differ, that is noted.
    """
    explained = explain_job(app, job, cluster=cluster, stage=stage, local=local)
    for path in draw_risk(explained.verdict, out) if out else ():
        print_message(f"wrote {path}")
    _print(explained.verdict, explain_headline(explained.verdict, explained.outcome), as_json)
    for line in (
        () if as_json else action_lines(explained.actions, app.zone(parse_key(explained.verdict.job).cluster))
    ):
        print_line(line)


def _print(verdict: Verdict, headline: str, as_json: bool) -> None:
    if as_json:
        print_json(verdict.to_json())
        return
    for line in verdict_screen(verdict, headline):
        print_line(line)
