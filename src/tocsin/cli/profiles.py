"""`tocsin profiles`: the kinds of jobs in a log, what they request and how they end."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from tocsin.app.app import App
from tocsin.app.logs import LogRequest
from tocsin.app.profiles import profiles as run
from tocsin.app.text import count
from tocsin.cli import options
from tocsin.cli.output import Column, number_of, print_json, print_line, print_message, print_table

__all__ = ["profiles"]

_METHODS = {"mixture": "a Gaussian mixture", "kmeans": "K-means"}


@click.command()
@options.log_options()
@click.option(
    "--kind",
    type=click.Choice(["request", "usage"]),
    default="request",
    show_default=True,
    help="Group by what jobs requested, or by what finished jobs used.",
)
@click.option("--method", type=click.Choice(list(_METHODS)), default="mixture", show_default=True,
              help="Gaussian mixture, or K-means.")  # fmt: skip
@click.option(
    "--k", type=click.IntRange(min=1), metavar="N", help="Make N profiles [default: chosen at the knee]."
)
@click.option(
    "--out",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Write profiles.json and charts (SVG) to FOLDER.",
)
@options.as_json
@click.pass_obj
def profiles(
    app: App, log: LogRequest, kind: Any, method: Any, k: int | None, out: Path | None, as_json: bool
) -> None:
    """Group the jobs of a LOG, or of the store, into profiles.

    Without --k, the number of profiles is chosen at the knee of K-means' distortion or of the mixture's BIC. Tables show the jobs of
    each profile, who runs them and how they end.
    """
    report, files = run(app, log, kind, method, k, out)
    for path in files:
        print_message(f"wrote {path}")
    if as_json:
        print_json(report)
    else:
        _print(report)


def _print(report: dict[str, Any]) -> None:
    curves, rows, shown = report["curves"], report["rows"], report["tables"]
    print_line(
        f"{count(len(report['profiles']), report['kind'] + ' profile')} of {count(rows, 'job')} by "
        f"{_METHODS[report['clusters']['method']]} (knee of distortion at {curves['elbow']}, of BIC at {curves['bic_knee']})"
    )
    for number, profile in enumerate(report["profiles"], start=1):
        print_line(
            f"  {number}  {profile['name']}: {count(profile['jobs'], 'job')} ({profile['jobs'] / rows:.0%})"
        )
    for name, why in report["left_out"].items():
        print_message(f"note: left out: {name} ({why})")
    _table("Resources and times, mean ± standard deviation", shown["resources"], _RESOURCES)
    _table(
        "Jobs by run time (short: under 1 h, long: 8 h or more)",
        shown["durations"],
        _numbers("short", "medium", "long"),
    )
    _table(
        "Users by activity (new: 1 job, infrequent: up to 20)",
        shown["activity"],
        _numbers("frequent", "infrequent", "new"),
    )
    target = report["target"]
    _table(f"Jobs by outcome (target: {target})", shown["outcomes"], [*_numbers("completed", target), _SHARE])
    if shown["types"]:
        _table("Jobs by memory per CPU", shown["types"], _numbers("balanced", "compute", "memory"))
    else:
        print_message("note: no job has a memory request, so there is no table of compute and memory jobs")


def _table(title: str, rows: list[dict[str, Any]], columns: list[Column]) -> None:
    if rows:
        print_line()
        print_line(title)
        print_table(rows, [_NUMBER, *columns], header=True, parsable=False)


def _numbers(*names: str) -> list[Column]:
    return [Column(name, number_of(name), max(12, len(name))) for name in names]


def _spread(name: str, form: str, row: dict[str, Any]) -> str:
    from tocsin.profiles import columns

    shown: Callable[[float], str] = getattr(columns, form)
    mean, deviation = row[f"{name}_mean"], row[f"{name}_deviation"]
    return "–" if mean is None else f"{shown(mean)} ± {shown(deviation or 0.0)}"


_NUMBER = Column("profile", lambda row: str(row["profile"] + 1), 7)
_SHARE = Column("share", lambda row: "–" if row["share"] is None else f"{row['share']:.1%}", 7)
_RESOURCES = [
    *_numbers("jobs"),
    Column("users", number_of("users"), 7),
    Column("CPUs", partial(_spread, "cpus", "whole"), 21),
    Column("memory per node", partial(_spread, "memory", "memory"), 21),
    Column("run time", partial(_spread, "run_time", "duration"), 21),
    Column("wait", partial(_spread, "wait", "duration"), 21),
]
