"""The `tocsin` command: its subcommands, and how errors are shown."""

import os
import sys
import traceback
from typing import Any, NoReturn

import click

from tocsin import __version__
from tocsin.app.app import App
from tocsin.cli.allow import allow
from tocsin.cli.backtest import backtest
from tocsin.cli.cases import cases
from tocsin.cli.check import check, explain
from tocsin.cli.classify import classify
from tocsin.cli.config import config
from tocsin.cli.demo import demo
from tocsin.cli.doctor import doctor
from tocsin.cli.importing import import_
from tocsin.cli.jobs import job, jobs
from tocsin.cli.manual import completion, manual
from tocsin.cli.models import models
from tocsin.cli.output import ProgressBar, say
from tocsin.cli.predict import predict
from tocsin.cli.profiles import profiles
from tocsin.cli.prune import backup, prune
from tocsin.cli.schema import schema
from tocsin.cli.script import script
from tocsin.cli.train import threshold, train
from tocsin.cli.watch import screen, watch
from tocsin.core.errors import TocsinError

__all__ = ["cli", "run"]


class _PipeClosed(Exception):
    """The reader of our output has ended."""


class _Commands(click.Group):
    """A group for which `... | head` is no error: click itself would exit with 1."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except BrokenPipeError:
            raise _PipeClosed from None


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, "-V", "--version", message="tocsin %(version)s")
@click.option(
    "--config", "config_file", metavar="FILE", help="Read this settings file in addition to the others."
)
@click.option("--home", metavar="FOLDER", help="Folder for the store, models and scripts (as TOCSIN_HOME).")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def cli(context: click.Context, config_file: str | None, home: str | None, debug: bool) -> None:
    """Early warning for HPC jobs.

    tocsin reads what a cluster already knows about its jobs and warns before the damage is done.
    """
    context.meta["debug"] = debug
    bar = ProgressBar()
    context.call_on_close(bar.close)
    app = App(config_file, home, dict(os.environ), notify=bar.say, progress=bar.advance)
    context.obj = context.with_resource(app)


for command in (
    *(check, explain, watch, classify, screen, allow, cases, train),
    *(backtest, predict, threshold, profiles),
    *(import_, jobs, job, script, models),
    *(demo, doctor, config, schema, prune, backup, completion, manual),
):
    cli.add_command(command)


def run(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line; every error becomes one message on stderr and an exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments
    if sys.stdout is None:  # closed by the caller: output is discarded
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  # open until the process ends
    try:
        code: Any = cli.main(args=arguments, prog_name="tocsin", standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("tocsin: interrupted.", err=True)
        sys.exit(130)
    except (_PipeClosed, BrokenPipeError):  # no error, and nothing left to flush to
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except TocsinError as error:
        _fail(error, debug, f"tocsin: {error}")
    except OSError as error:
        _fail(
            error,
            debug,
            f"tocsin: {error.strerror or error}" + (f": {error.filename}" if error.filename else ""),
        )
    except Exception as error:
        _fail(
            error,
            debug,
            f"tocsin: internal error: {type(error).__name__}: {error} (--debug shows the traceback)",
        )


def _fail(error: BaseException, debug: bool, message: str) -> NoReturn:
    if debug:
        traceback.print_exception(error)
    say(message)
    sys.exit(1)
