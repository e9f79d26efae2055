"""`tocsin traces embed` and `diagnose`: embeddings and errors of kinds of jobs, and of one job, by the trace model."""

import re
from pathlib import Path
from typing import Any

import click

from tocsin.app.app import App
from tocsin.app.text import count
from tocsin.app.traces_diagnose import DiagnoseRequest, diagnose_kinds, embed_traces
from tocsin.app.traces_of_job import JobRequest
from tocsin.app.traces_regions import confirm_region, diagnose_job
from tocsin.app.traces_request import TraceRequest
from tocsin.cli import options
from tocsin.cli.output import Column, number_of, print_json, print_line, print_message, print_table
from tocsin.cli.traces_analyse import trace_request

__all__ = ["diagnose", "embed"]

_JOB = re.compile(r"[^/:\s]+:\d+(_\d+)?@\d+|\d+(_\d+|\+\d+)?", re.ASCII)
_model = click.option(
    "--model", metavar="VERSION", default="champion", show_default=True, help="Version of the trace model."
)


@click.command()
@trace_request
@_model
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="Write the embeddings to FILE (Parquet).",
)
@options.as_json
@click.pass_obj
def embed(app: App, request: TraceRequest, model: str, out: Path, as_json: bool) -> None:
    """Write the embedding of each window to a Parquet file.

    Reads the campaign in FOLDER or, without one, the stored traces. One row for each window: job, node, CPU, end (`at`),
    kind, error and embedding. Embeddings of different model versions cannot be compared.
    """
    report = embed_traces(app, request, model, out)
    if as_json:
        print_json(report)
        return
    print_line(
        f"{count(report['windows'], 'window')} of {count(len(report['kinds']), 'kind')} of jobs, {report['size']} values "
        f"each, by model {report['model']} ({report['architecture']}): {report['file']}"
    )


@click.command()
@click.argument("target", required=False, metavar="[JOB|FOLDER]")
@click.option(
    "--confirm", metavar="NAME", help="Confirm that JOB was bad, and name what was wrong, such as bad_io."
)
@click.option("--note", default="", metavar="TEXT", help="The reason, kept with --confirm.")
@options.comma_separated(
    "--bad", metavar="KINDS", help="Kinds of jobs that count as bad, separated by commas."
)
@click.option(
    "--kind",
    metavar="KIND",
    help="Kind of job whose waits for I/O are drawn [default: the kind in which they vary most].",
)
@click.option("--cpu", "cpus", metavar="NODE:CPU", multiple=True, help="Draw this CPU; may be repeated.")
@_model
@options.cluster
@click.option("-S", "--starttime", metavar="TIME", help="Only traces after TIME.")
@click.option("-E", "--endtime", metavar="TIME", help="Only traces before TIME.")
@click.option(
    "--out",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Write diagnosis.json and charts (SVG) to FOLDER.",
)
@options.as_json
@click.pass_obj
def diagnose(
    app: App,
    /,
    target: str | None,
    confirm: str | None,
    note: str,
    out: Path | None,
    as_json: bool,
    **values: Any,
) -> None:
    """Show how the trace model scores a job, or all kinds of jobs.

    With JOB (an id or a key): how unusual its windows are and whether they lie in a region confirmed as bad. --confirm
    stores such a region: new jobs that enter it raise an alarm by that name; `tocsin traces regions` lists them.

    With the FOLDER of a campaign, or without either for the stored traces: reconstruction errors by kind of job,
    embeddings in two principal components fitted without the bad kinds, and how waits for I/O correlate with the
    distance from a bad kind.
    """
    when = {name: values.pop(name) for name in ("cluster", "starttime", "endtime")}
    if target is not None and _JOB.fullmatch(target):
        if out or values["bad"] or values["kind"] or values["cpus"]:
            raise click.UsageError("--bad, --kind, --cpu and --out are for a FOLDER or the stored traces")
        _diagnose_job(app, JobRequest(job=target, **when), confirm, note, values["model"], as_json)
        return
    if confirm or note:
        raise click.UsageError("--confirm and --note need a JOB: an id such as 17, 17_4, or a key")
    request = TraceRequest(folder=Path(target) if target else None, **when)
    report, files = diagnose_kinds(app, request, DiagnoseRequest(out=out, **values))
    for path in files:
        print_message(f"wrote {path}")
    if as_json:
        print_json(report)
    else:
        _print_kinds(report)


def _diagnose_job(
    app: App, request: JobRequest, name: str | None, note: str, model: str, as_json: bool
) -> None:
    if name is not None:
        region = confirm_region(app, request, name, note=note, version=model)
        if as_json:
            print_json(region)
        else:
            _print_confirmed(region)
        return
    if note:
        raise click.UsageError("--note needs --confirm")
    report = diagnose_job(app, request, model)
    if as_json:
        print_json(report)
    else:
        _print_job(report)


def _print_confirmed(region: dict[str, Any]) -> None:
    windows = count(region["windows"], "unusual window" if region["unusual_only"] else "window")
    print_line(
        f'region {region["number"]}: {windows} of {region["job"]} confirmed as "{region["name"]}" by {region["who"]}, '
        f"radius {region['radius']:.3g} in the embeddings of model {region['model']}"
    )
    if not region["compared_with"]:
        print_message(
            "warning: there were no normal windows of other jobs to compare with, so the region only covers windows like those of this job"
        )
    print_message(f"undo: tocsin traces regions dismiss {region['number']}")


def _print_job(report: dict[str, Any]) -> None:
    print_line(
        f"{report['job']} ({report['kind']}): {report['unusual']:,} of {count(report['windows'], 'window')} unusual, "
        f"error {report['error']['median']:.3g} (median), {report['error']['largest']:.3g} (largest), "
        f"threshold {report['threshold']:.3g}, model {report['model']}"
    )
    print_line(f"  longest wait for I/O: {report['worst_iowait']:.0%} of a second")
    for window in report["reconstructions"]:
        print_line(
            f"  worst: {window['channel']} of {window['node']} CPU {window['cpu']}, error {window['error']:.3g}"
        )
    fresh = [region for region in report["regions"] if region["stale"] is None]
    for region in report["regions"]:
        if region["stale"]:
            print_message(
                f'warning: region {region["number"]} "{region["name"]}" is stale: {region["stale"]}'
            )
    if not fresh:
        print_line("  no region has been confirmed as bad for this model")
        return
    print_line()
    print_table(fresh, [*_REGION, Column("inside", number_of("inside"), 8)], header=True, parsable=False)


def _print_kinds(report: dict[str, Any]) -> None:
    print_line(
        f"{count(report['windows'], 'window')}, model {report['model']} ({report['architecture']}), "
        f"threshold {report['threshold']:.3g}"
    )
    print_line()
    print_line("Reconstruction error by kind of job")
    print_table(report["kinds"], _KINDS, header=True, parsable=False)
    if not report["distances"]:
        print_message("note: no kind is known to be bad; name some with --bad, or confirm a job")
        return
    print_line()
    print_line(
        "Distance from bad kinds, and rank correlation with the worst wait for I/O (below zero: nearer, longer)"
    )
    print_table(report["distances"], _DISTANCES, header=True, parsable=False)


def _error(name: str) -> Any:
    return lambda row: f"{row[name]:.3g}"


_REGION = [
    Column("region", number_of("number"), 6),
    Column("name", lambda row: row["name"], -20),
    Column("radius", _error("radius"), 8),
    Column("nearest", _error("nearest"), 8),
    Column("median", _error("median"), 8),
]
_KINDS = [
    Column("kind", lambda row: row["kind"], -24),
    Column("", lambda row: "bad" if row["bad"] else "", -3),
    Column("windows", number_of("windows"), 9),
    Column("jobs", number_of("jobs"), 6),
    Column("mean", _error("mean"), 9),
    Column("std", _error("deviation"), 9),
    Column("median", _error("median"), 9),
    Column("95 %", _error("high"), 9),
]
_DISTANCES = [
    Column("bad kind", lambda row: row["bad"], -20),
    Column("kind", lambda row: row["kind"], -24),
    Column("windows", number_of("windows"), 9),
    Column("nearest", _error("nearest"), 9),
    Column("median", _error("median"), 9),
    Column("correlation", lambda row: "" if row["correlation"] is None else f"{row['correlation']:.2f}", 11),
    Column("near", lambda row: f"{row['iowait_near']:.0%}", 6),
    Column("others", lambda row: f"{row['iowait_far']:.0%}", 6),
]
