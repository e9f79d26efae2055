"""Options shared by commands; options that sacct has mean the same as there."""

from collections.abc import Callable
from dataclasses import fields
from enum import StrEnum
from functools import wraps
from typing import Any

import click

from tocsin.app.logs import LogRequest
from tocsin.cli.output import Listing
from tocsin.core.errors import InputError
from tocsin.core.outcomes import Target
from tocsin.core.stages import Stage

__all__ = [
    "ListedByDefault",
    "as_json",
    "checked_rule",
    "cluster",
    "comma_separated",
    "gathered",
    "listing",
    "local",
    "log_format",
    "log_options",
    "member",
    "rule",
    "stage",
    "strict",
    "target",
    "time_zone",
    "window",
]

Decorator = Callable[[Any], Any]


class ListedByDefault(click.Group):
    """Commands of which `list` needs no name: `tocsin cases --all` is `tocsin cases list --all`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in self.get_help_option_names(ctx)):
            args = ["list", *args]
        return super().parse_args(ctx, args)


def gathered(kind: type[Any], name: str, *parameters: Decorator) -> Decorator:
    """Pass the parameters that are fields of `kind` to the command as one argument, `name`."""

    def decorate(command: Any) -> Any:
        @wraps(command)
        def gather(*given: Any, **values: Any) -> Any:
            values[name] = kind(**{field.name: values.pop(field.name) for field in fields(kind)})
            return command(*given, **values)

        for parameter in reversed(parameters):
            gather = parameter(gather)
        return gather

    return decorate


def member(kind: type[StrEnum]) -> Callable[..., Any]:
    """A callback that turns the chosen word into a member of its enumeration."""
    return lambda context, parameter, word: None if word is None else kind(word)  # noqa: ARG005  # click hands them in


def checked_rule(context: click.Context, parameter: click.Parameter, text: str | None) -> str | None:  # noqa: ARG001  # click hands them in
    """The text of a threshold rule, refused as a usage error if it is not KIND=VALUE."""
    if text is not None:
        from tocsin.app.threshold import parse_rule

        try:
            parse_rule(text)
        except InputError as error:
            raise click.UsageError(str(error)) from None
    return text


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
listing = gathered(
    Listing,
    "listing",
    click.option("-n", "--noheader", is_flag=True, help="Print no header line."),
    click.option("-P", "--parsable2", is_flag=True, help="Separate columns by pipes."),
    as_json,
)
local = click.option("--local", is_flag=True, help="Use local data only; ask no service.")
cluster = click.option("-M", "--cluster", metavar="NAME", help="Name of the cluster.")
strict = click.option("--strict", is_flag=True, help="Exit with 1 if a record was rejected.")
time_zone = click.option(
    "--tz",
    "tz",
    metavar="ZONE",
    help="Time zone of the times in the file, such as Europe/Rome [default: the cluster's].",
)
stage = click.option(
    "--stage",
    type=click.Choice([str(stage) for stage in (Stage.SUBMIT, Stage.START, Stage.EARLY)]),
    default="submit",
    show_default=True,
    callback=member(Stage),
    help="Stage of a job's life to predict at.",
)
target = click.option(
    "--target",
    type=click.Choice([str(target) for target in Target]),
    callback=member(Target),
    help="What counts as failure [default: unsuccessful for SWF, failed for Slurm].",
)
engine = click.option(
    "--engine",
    type=click.Choice(["lightgbm", "xgboost", "catboost", "bagged"]),
    default="lightgbm",
    show_default=True,
    help="Library that trains the trees; xgboost and catboost need the extra `engines`.",
)
shortest = click.option(
    "--shortest",
    type=click.IntRange(min=0),
    default=0,
    metavar="SECONDS",
    help="Leave out jobs that ran for less than SECONDS.",
)
rule = click.option(
    "--rule",
    metavar="KIND=VALUE",
    default="precision_at_least=0.8",
    show_default=True,
    callback=checked_rule,
    help="Rule that sets the alarm threshold, as in `tocsin threshold`.",
)


def window(command: Any) -> Any:
    """`-S` and `-E`, in any form that sacct accepts."""
    command = click.option("-E", "--endtime", metavar="TIME", help="Only jobs alive before TIME.")(command)
    return click.option("-S", "--starttime", metavar="TIME", help="Only jobs alive after TIME.")(command)


def comma_separated(*names: str, **more: Any) -> Decorator:
    """An option whose value is a comma-separated list."""

    def words(context: click.Context, parameter: click.Parameter, text: str | None) -> list[str]:  # noqa: ARG001  # click hands them in
        return [word.strip() for word in (text or "").split(",") if word.strip()]

    return click.option(*names, callback=words, **more)


def log_format(command: Any) -> Any:
    """How to read a file of jobs, as fields of a LogRequest."""
    for option in (
        click.option("--delimiter", metavar="TEXT", help="Delimiter of sacct text [default: found in the header]."),
        comma_separated("-o", "--format", "columns", metavar="COLUMNS", help="Columns of sacct text without a header."),
        click.option("-m", "--mapping", metavar="NAME|FILE", help="Mapping of a table's columns: slurm-database, f-data, "
                     "or a file of your own."),
        time_zone,
        cluster,
    ):  # fmt: skip
        command = option(command)
    return command


def log_options(*, store_by_default: bool = False) -> Decorator:
    """`LOG` or `--store`, and how to read the log, as one LogRequest: the options of `tocsin import`."""

    def decorate(command: Any) -> Any:
        @click.argument("path", required=False, metavar="[LOG]")
        @click.option("--store", "use_store", is_flag=True, help="Read the store, not a log.")
        @log_format
        @gathered(LogRequest, "log")
        @wraps(command)
        def checked(*given: Any, log: LogRequest, use_store: bool, **values: Any) -> Any:
            if (log.path and use_store) or not (log.path or use_store or store_by_default):
                raise click.UsageError("name either a LOG, or --store for the jobs in the store")
            if not log.path and (log.columns or log.delimiter or log.tz or log.mapping):
                raise click.UsageError("-m, -o, --delimiter and --tz are for a LOG, not for the store")
            if (log.columns or log.delimiter) and log.mapping:
                raise click.UsageError(
                    "-m is for tables, -o and --delimiter for sacct text; name one of them"
                )
            return command(*given, log=log, **values)

        return checked

    return decorate
