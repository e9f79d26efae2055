"""`tocsin traces train` and `tocsin traces score`: train the trace detector, and score recorded traces with it."""

from pathlib import Path
from typing import Any

import click

from tocsin.app.app import App
from tocsin.app.text import count
from tocsin.app.traces_request import TraceRequest
from tocsin.app.traces_train import TraceTraining, score_traces, train_traces
from tocsin.cli import options
from tocsin.cli.output import Column, number_of, print_json, print_line, print_message, print_table, text_of

__all__ = ["score", "train"]

_since = click.option(
    "-S", "--starttime", metavar="TIME", help="Only stored traces after TIME [default: 7 days ago]."
)
_until = click.option("-E", "--endtime", metavar="TIME", help="Only stored traces before TIME.")


@click.command()
@click.argument("folders", nargs=-1, metavar="[FOLDER]...", type=click.Path(path_type=Path))
@options.cluster
@_since
@_until
@click.option(
    "--architecture",
    type=click.Choice(["vanilla", "job_graph"]),
    default="vanilla",
    show_default=True,
    help="Train on single CPUs, or on all CPUs of a job on a node.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 20),
    default=1,
    show_default=True,
    metavar="N",
    help="Train N models with different seeds and use their mean error.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="First seed.")
@click.option("--seconds", type=click.FloatRange(min=1), metavar="S", help="Stop training after S seconds.")
@click.option(
    "--rate",
    type=click.FloatRange(1e-6, 0.2),
    default=0.001,
    show_default=True,
    help="Share of normal windows that may exceed the threshold; 3 windows in a row raise an alarm.",
)
@click.option("--promote/--no-promote", default=True, show_default=True, help="Use the model from now on.")
@options.as_json
@click.pass_obj
@options.gathered(TraceTraining, "request")
def train(app: App, request: TraceTraining, as_json: bool) -> None:
    """Train the model that raises an alarm when a running job's traces are not normal.

    Learns from the campaigns in FOLDERs; those recorded for tests are only measured on. Without a FOLDER, it learns from
    the stored traces of jobs that raised no alarm. Thresholds are set on jobs that were held back, for each kind of job
    (user and name) with at least 200 windows, else over all. Training needs the extra `traces`.
    """  # fmt: skip
    report = train_traces(app, request)
    if as_json:
        print_json(report)
        return
    in_use = "now in use" if report["promoted"] else "stored, not in use"
    print_line(
        f"traces {report['version']}: {count(report['windows'], 'window')} of {count(report['jobs'], 'job')}, {in_use}"
    )
    for each in report["thresholds"]:
        print_line(
            f"  {each['model']}: threshold {each['value']:.3g} ({each['rule']}); {count(each['kinds'], 'kind')} with their own"
        )
    for name, value in report["figures"].items():
        print_line(f"  {name}: {'–' if value is None else f'{value:.4g}'}")


@click.command()
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@options.cluster
@_since
@_until
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the error of each window to FILE (Parquet).",
)
@options.as_json
@click.pass_obj
@options.gathered(TraceRequest, "request")
def score(app: App, request: TraceRequest, out: Path | None, as_json: bool) -> None:
    """Score recorded traces with the model in use.

    Reads the campaign in FOLDER or, without one, the stored traces. Prints for each job its windows, how many of them are
    unusual, the mean error of its CPUs, the largest error in multiples of the threshold, and when it would first have
    raised an alarm. Nothing is stored.
    """  # fmt: skip
    report = score_traces(app, request, out)
    if out:
        print_message(f"wrote {out}")
    if as_json:
        print_json(report)
        return
    columns = [
        Column("job", text_of("job"), 24),
        Column("name", lambda row: row["label"] or row["name"] or "", 14),
        Column("windows", number_of("windows"), 7),
        Column("unusual", number_of("unusual"), 7),
        Column("error", _figure("error"), 9),
        Column("× threshold", _figure("largest"), 11),
        Column("first alarm", lambda row: row["first_alarm"] or "–", 20),
    ]
    print_table(report["jobs"], columns, header=True, parsable=False)


def _figure(name: str) -> Any:
    return lambda row: "–" if row[name] is None else f"{row[name]:.3g}"
