"""`tocsin traces analyse`: how long windows of traces should be, and how often to sample."""

from pathlib import Path
from typing import Any

import click

from tocsin.app.app import App
from tocsin.app.text import count
from tocsin.app.traces_analyse import analyse_traces
from tocsin.app.traces_request import TraceRequest
from tocsin.cli import options
from tocsin.cli.output import Column, number_of, print_json, print_line, print_message, print_table

__all__ = ["analyse", "trace_request"]


def trace_request(command: Any) -> Any:
    """`[FOLDER]`, or which of the stored traces, as one TraceRequest."""
    return options.gathered(
        TraceRequest,
        "request",
        click.argument("folder", required=False, type=click.Path(path_type=Path)),
        options.cluster,
        click.option("-S", "--starttime", metavar="TIME", help="Only stored traces after TIME."),
        click.option("-E", "--endtime", metavar="TIME", help="Only stored traces before TIME."),
    )(command)


@click.command()
@trace_request
@click.option(
    "--length",
    type=click.IntRange(10, 3600),
    default=100,
    show_default=True,
    metavar="SECONDS",
    help="Length of the waveforms that are compared at different sampling intervals.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the draws.")
@click.option(
    "--out",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Write sampling.json and charts (SVG) to FOLDER.",
)
@options.as_json
@click.pass_obj
def analyse(app: App, request: TraceRequest, length: int, seed: int, out: Path | None, as_json: bool) -> None:
    """Find out how long windows should be and how often to sample.

    Reads the campaign in FOLDER or, without one, the stored traces. Shows the lowest dominant frequency of each kind of
    job (Welch's spectrum), the window length that holds one such period, and how well kinds of jobs are separated at
    coarser sampling (silhouette in two principal components, 30 draws).
    """
    report, files = analyse_traces(app, request, length, seed, out)
    for path in files:
        print_message(f"wrote {path}")
    if as_json:
        print_json(report)
    else:
        _print(report)


def _print(report: dict[str, Any]) -> None:
    print_table(report["kinds"], _KINDS, header=True, parsable=False)
    for kind in report["left_out"]:
        print_message(f"note: left out: {kind} (the 24 kinds with most samples are shown)")
    print_line()
    slowest = max((kind["period"] or 0, kind["kind"]) for kind in report["kinds"])
    if report["window"]:
        print_line(
            f"window: {report['window']} s, one period of the lowest dominant frequency "
            f"({1 / slowest[0]:.3g} Hz, {slowest[1]})"
        )
    elif any(kind["segment"] for kind in report["kinds"]):
        print_line("window: no kind has a dominant frequency, so keep the default of 100 s")
    else:
        print_line("window: unknown, because all jobs are too short; record jobs of ten minutes or more")
    separation = report["separation"]
    print_line()
    if "missing" in separation:
        print_line(f"separation by sampling interval: {separation['missing']}")
        return
    for kind, waveforms in separation["too_few"].items():
        print_message(f"note: left out of the comparison: {kind} ({count(waveforms, 'waveform')})")
    print_line(
        f"Silhouette by sampling interval: waveforms of {separation['length']} s, "
        f"mean ± standard deviation of {separation['draws']} draws"
    )
    rows: dict[int, dict[str, Any]] = {}
    for score in separation["silhouette"]:
        row = rows.setdefault(score["interval"], {"interval": score["interval"]})
        row[score["way"]] = f"{score['mean']:.3f} ± {score['deviation']:.3f}"
    print_table(rows.values(), _INTERVALS, header=True, parsable=False)


def _figure(name: str, form: str) -> Any:
    return lambda row: "" if row[name] is None else format(row[name], form)


_KINDS = [
    Column("kind", lambda row: row["kind"], -24),
    Column("seconds", number_of("seconds"), 11),
    Column("visible from", _figure("lowest_visible", ".3g"), 12),
    Column("lowest Hz", _figure("frequency", ".3g"), 10),
    Column("period (s)", _figure("period", ".4g"), 10),
    Column("above noise", lambda row: "" if row["ratio"] is None else f"{row['ratio']:.1f}x", 11),
    Column("", lambda row: row["why"] or "", -60),
]
_INTERVALS = [
    Column("interval (s)", number_of("interval"), 12),
    Column("one second of each", lambda row: row["pick"], 18),
    Column("mean of each", lambda row: row["mean"], 16),
]
