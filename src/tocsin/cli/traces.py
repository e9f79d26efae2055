"""`tocsin traces`: what running jobs and nodes do over time."""

from pathlib import Path

import click

from tocsin.app.app import App
from tocsin.app.traces import bench as run_bench
from tocsin.cli import (
    options,
    traces_analyse,
    traces_diagnose,
    traces_import,
    traces_regions,
    traces_train,
    traces_watch,
)
from tocsin.cli.output import Column, print_json, print_message, print_table

__all__ = ["traces"]


@click.group()
def traces() -> None:
    """Find anomalies in what jobs and nodes do over time."""


@traces.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--scores",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Write each method's score of each test point to FOLDER, one .npz file per series.",
)
@options.as_json
@click.pass_obj
def bench(app: App, folder: Path, scores: Path | None, as_json: bool) -> None:
    """Measure anomaly detection on the labelled series in FOLDER.

    Each .npz file holds the arrays train, test (points by channels) and test_label. Each method learns from train alone.
    Figures are point by point, without point adjustment. tocsin is a linear autoencoder over windows; pca and iforest
    score single points.
    """
    report = run_bench(app, folder, scores)
    if scores:
        print_message(f"wrote {scores}")
    if as_json:
        print_json(report)
        return
    rows = [
        {"series": name, "method": method, **values}
        for name, methods in [*report["files"].items(), ("mean", report["mean"])]
        for method, values in methods.items()
    ]
    columns = [
        Column("series", lambda row: row["series"], 16),
        Column("method", lambda row: row["method"], 8),
        Column("AUC-PR", lambda row: _figure(row["auc_pr"]), 7),
        Column("best F1", lambda row: _figure(row["best_f1"]), 7),
    ]
    print_table(rows, columns, header=True, parsable=False)


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


traces.add_command(traces_analyse.analyse)
traces.add_command(traces_import.import_traces)
traces.add_command(traces_diagnose.embed)
traces.add_command(traces_diagnose.diagnose)
traces.add_command(traces_regions.regions)
traces.add_command(traces_train.train)
traces.add_command(traces_train.score)
traces.add_command(traces_watch.watch)
