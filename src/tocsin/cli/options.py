"""Options that several commands share; each means what it means in sacct."""

from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import click

from tocsin.cli.settings import Context
from tocsin.core.errors import InputError
from tocsin.core.outcomes import SHORT_STATES, STATES

__all__ = [
    "as_json",
    "cluster",
    "no_header",
    "parsable",
    "states_of",
    "strict",
    "time_zone",
    "window",
    "words",
    "zone_of",
]

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
no_header = click.option("-n", "--noheader", is_flag=True, help="Print no header line.")
parsable = click.option("-P", "--parsable2", is_flag=True, help="Separate columns by pipes.")
cluster = click.option("-M", "--cluster", metavar="NAME", help="Name of the cluster.")
strict = click.option("--strict", is_flag=True, help="Exit 1 when a record was rejected.")
time_zone = click.option(
    "--tz",
    "tz",
    metavar="ZONE",
    help="Time zone of the times in it, such as Europe/Rome [default: the cluster's].",
)


def window(command: Any) -> Any:
    """`-S` and `-E`, as text in any form that sacct takes."""
    command = click.option("-E", "--endtime", metavar="TIME", help="Jobs that were alive before this time.")(
        command
    )
    return click.option("-S", "--starttime", metavar="TIME", help="Jobs that were alive after this time.")(
        command
    )


def words(text: str | None) -> list[str]:
    """The parts of a comma-separated option."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def states_of(text: str | None) -> list[str]:
    """Full names of `-s F,TO,cancelled`."""
    names = []
    for word in words(text):
        name = SHORT_STATES.get(word.upper(), word.upper())
        if name not in STATES:
            raise InputError(f'"{word}" is no job state; there are {", ".join(STATES)}')
        names.append(name)
    return names


def zone_of(context: Context, cluster: str | None, named: str | None = None) -> ZoneInfo:
    """The zone named on the line, else the cluster's setting, else this host's."""
    settings = context.settings.cluster.get(cluster or "")
    name = named or (settings.timezone if settings else "")
    try:
        return ZoneInfo(name) if name else _host_zone(context)
    except (KeyError, ValueError, OSError):
        raise InputError(f'"{name}" is no time zone; write one such as Europe/Rome or UTC') from None


def _host_zone(context: Context) -> ZoneInfo:
    """This host's zone with its history of summer times, as TZ or the link /etc/localtime names it; else UTC."""
    link = str(Path("/etc/localtime").resolve()).partition("/zoneinfo/")[2]
    for name in (context.environ.get("TZ", "").lstrip(":"), link):
        try:
            return ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            continue
    return ZoneInfo("UTC")
