"""`tocsin traces import`: read samples from Prometheus, agents or files."""

from pathlib import Path

import click

from tocsin.app.app import App
from tocsin.app.text import count
from tocsin.app.traces_import import TracesImport
from tocsin.app.traces_import import import_traces as read
from tocsin.cli import options
from tocsin.cli.output import print_json, print_line

__all__ = ["import_traces"]


@click.command("import")
@click.argument("path", metavar="[FILE]", required=False, type=click.Path(path_type=Path))
@click.option("--prometheus", metavar="URL", help="Prometheus that scrapes the nodes.")
@click.option("--agent", "agents", metavar="URL", multiple=True, help="A tocsin-agent; may be repeated.")
@click.option(
    "--mapping", metavar="NAME", help="Mapping of Prometheus metrics to samples [default: traces.mapping]."
)
@options.cluster
@click.option("-S", "--starttime", metavar="TIME", help="Only samples after TIME.")
@click.option("-E", "--endtime", metavar="TIME", help="Only samples up to TIME.")
@options.as_json
@click.pass_obj
def import_traces(app: App, /, as_json: bool, **asked: object) -> None:
    """Read samples of CPUs and jobs.

    FILE is a Parquet or .npz file of samples, or a folder of them, such as a campaign. Without a source, those of the
    settings are read. Prometheus and agents are read from where the last import ended, or from -S. A repeated import adds
    nothing.
    """
    done = read(app, TracesImport(**asked))  # type: ignore[arg-type]  # click checks their types
    if as_json:
        print_json(done)
    else:
        print_line(
            f"{count(done['cpu_samples'], 'CPU sample')} and {count(done['job_samples'], 'job sample')} read in "
            f"{done['seconds']:.1f} s: {done['new']:,} new, {done['known']:,} known; {count(done['gaps'], 'gap')}, "
            f"{count(done['resets'], 'counter reset')}"
        )
        parts = {
            name.replace("_", " "): done[name] for name in ("clock_jumps", "failed_sources", "failed_parts")
        }
        for reason, number in {**parts, **done["dropped"]}.items():
            if number:
                print_line(f"  {reason}: {number:,}")
    if done["failed"]:
        raise SystemExit(1)
