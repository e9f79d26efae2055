"""The `tocsin` command: its subcommands, and how errors are shown."""

import io
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

import click

from tocsin import __version__
from tocsin.app.app import App
from tocsin.cli.output import ProgressBar, print_message
from tocsin.core.errors import TocsinError

__all__ = ["cli", "run"]

_COMMANDS = {  # name: (module, the first line of its help; a test compares them)
    "actions": ("undo:actions", "List actions on jobs: planned ones and those in force."),
    "allow": ("allow:allow", "Manage the allow-list: who may run which operation."),
    "answer": ("predict:answer", "Record how a job ends, as a label for the next training."),
    "backtest": ("backtest:backtest", "Back-test failure prediction on a LOG, or on the store."),
    "backup": ("prune:backup", "Copy store, scripts and models into a new folder."),
    "campaign": ("campaign:campaign", "Record or simulate labelled jobs for trace models."),
    "cases": ("cases:cases", "List and answer cases."),
    "check": ("check:check", "Give a verdict on a job script before it is submitted."),
    "classify": ("classify:classify", "Classify job scripts."),
    "completion": ("manual:completion", "Print the completion script for a shell."),
    "config": ("config:config", "Show and check the settings."),
    "connect": ("connect:connect", "Publish job events to other systems."),
    "demo": ("demo:demo", "Simulate a small cluster and report on its jobs."),
    "doctor": ("doctor:doctor", "Check settings, store and the connection to Slurm."),
    "expire": ("undo:expire", "Release held jobs whose time is over."),
    "explain": ("check:explain", "Explain the verdict on one job."),
    "import": ("importing:import_", "Read jobs into the store."),
    "job": ("jobs:job", "Show everything known about one job."),
    "jobs": ("jobs:jobs", "List jobs, with the filters of sacct."),
    "login": ("login:login", "Print a link that logs a browser in as you."),
    "manual": ("manual:manual", "Write the man pages to a folder."),
    "models": ("models:models", "List, show, verify and promote models."),
    "nightly": ("nightly:nightly", "Retrain models and promote those that are no worse than before."),
    "predict": ("predict:predict", "Predict how likely jobs are to fail."),
    "profiles": ("profiles:profiles", "Group the jobs of a LOG, or of the store, into profiles."),
    "prune": ("prune:prune", "Remove jobs that ended long ago, and old traces."),
    "relay": ("relay:relay", "Offer the service to the users of a login node."),
    "resubmit": ("resubmit:resubmit", "Submit a job of your own again, linked to the old one."),
    "schema": ("schema:schema", "Print the JSON Schema of a verdict."),
    "screen": ("watch:screen", "Classify new jobs and check them against the allow-list."),
    "script": ("script:script", "Show what a job script requests."),
    "serve": ("serve:serve", "Run the service: follow clusters and answer questions."),
    "slurm": ("slurm:slurm", "Install, remove and check the hooks in Slurm."),
    "threshold": ("train:threshold", "Show or set the threshold for failure alarms."),
    "tokens": ("tokens:tokens", "Manage tokens for programs and relays that use the service."),
    "traces": ("traces:traces", "Find anomalies in what jobs and nodes do over time."),
    "train": ("train:train", "Train models."),
    "undo": ("undo:undo", "Undo actions by their numbers: release held jobs, end leases."),
    "upgrade": ("upgrade:upgrade", "Migrate the store to the schema of this version."),
    "watch": ("watch:watch", "Follow a cluster and give verdicts on its jobs."),
}


class _Loaded(Mapping[str, click.Command]):
    """The commands, each imported only when used, so that every command starts fast."""

    def __getitem__(self, name: str) -> click.Command:
        module, _, attribute = _COMMANDS[name][0].partition(":")
        command: click.Command = getattr(import_module(f"tocsin.cli.{module}"), attribute)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


class _PipeClosed(Exception):
    """The reader of our output has closed the pipe."""


class _Tocsin(click.Group):
    """Its help imports no command; `... | head` is not an error, although click would exit with 1."""

    error_code = 1
    """The exit code for errors of the running command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        self.error_code = getattr(command, "error_code", 1)
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # click hands it in
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except BrokenPipeError:
            raise _PipeClosed from None


@click.group(cls=_Tocsin, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-V", "--version", message="tocsin %(version)s")
@click.option(
    "--config", "config_file", metavar="FILE", help="Read this settings file in addition to the others."
)
@click.option("--home", metavar="FOLDER", help="Folder for the store, models and scripts (as TOCSIN_HOME).")
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
@click.pass_context
def cli(context: click.Context, config_file: str | None, home: str | None) -> None:
    """Early warning for HPC jobs.

    tocsin reads what a cluster already knows about its jobs and warns before the damage is done.
    """
    bar = ProgressBar()
    context.call_on_close(bar.close)
    app = App(config_file, home, dict(os.environ), notify=bar.print_message, progress=bar.advance)
    context.obj = context.with_resource(app)


cli.commands = _Loaded()  # type: ignore[assignment]  # nothing is added to it


def run(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line; every error becomes one message on stderr and an exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    cli.error_code = 1
    if sys.stdout is None:  # closed by the caller: output is discarded
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  # open until the process ends
    elif isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # its encoding may lack a character
    try:
        code = _code(arguments)
        sys.stdout.flush()
    except (_PipeClosed, BrokenPipeError):  # no error, but nobody read the verdict of `check`
        code = 0 if cli.error_code == 1 else cli.error_code
    except Exception as error:
        code = _failed(error, arguments)
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError:  # Python would try once more, and exit with 120
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(code)


def _code(arguments: list[str]) -> int:
    """Run the command; returns its exit code."""
    try:
        code: Any = cli.main(args=arguments, prog_name="tocsin", standalone_mode=False)
    except SystemExit as ended:
        code = ended.code
    except click.ClickException as error:
        text = io.StringIO()
        error.show(text)
        for line in text.getvalue().rstrip("\n").split("\n"):
            print_message(line)
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        print_message("tocsin: interrupted.")
        code = 130
    return code if isinstance(code, int) else 0


def _failed(error: Exception, arguments: list[str]) -> int:
    """Print the error; returns its exit code."""
    if isinstance(error, TocsinError):
        message = f"tocsin: {error}"
    elif isinstance(error, OSError):
        message = f"tocsin: {error.strerror or error}" + (f": {error.filename}" if error.filename else "")
    else:
        kind = type(error).__name__
        message = f"tocsin: internal error: {kind}: {error} (--debug shows the traceback)"
    with suppress(OSError, ValueError):  # stderr may be closed or full, too
        if "--debug" in arguments:
            for line in "".join(traceback.format_exception(error)).rstrip("\n").split("\n"):
                print_message(line)
        print_message(message)
    return cli.error_code
