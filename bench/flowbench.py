"""FlowBench as jobs, read from its archives."""

import io
import zipfile
from pathlib import Path

import polars as pl

from tocsin.core.frames import conform

__all__ = ["LAG", "NORMAL", "WORKFLOWS", "gaps", "stream"]

WORKFLOWS = ("eht_difmap", "eht_smili", "somospie")
LAG = 60
NORMAL = "None"
FIELDS = {
    "submit": "submit",
    "execute_start": "start",
    "execute_end": "end",
    "runtime": "elapsed",
    "kickstart_executables_exitcode": "exit_code",
}
OWN = ("stage_in_delay", "stage_in_bytes", "stage_in_effective_bytes_per_sec", "stage_out_delay", "stage_out_bytes",
       "stage_out_effective_bytes_per_sec", "kickstart_executables_cpu_time", "kickstart_online_iowait",
       "kickstart_online_bytes_read", "kickstart_online_bytes_written", "kickstart_online_read_system_calls",
       "kickstart_online_write_system_calls", "kickstart_online_utime", "kickstart_online_stime",
       "kickstart_online_bytes_read_per_second", "kickstart_online_bytes_written_per_second")  # fmt: skip
"""Counters of the data set that are not job fields; names, hosts and queue delays are left out."""


def stream(path: Path) -> pl.DataFrame:
    """The jobs of one workflow by submit time; `kind` is the limit that was put on their node."""
    frames = []
    with zipfile.ZipFile(path) as archive:
        for number, entry in enumerate(archive.infolist()):
            table = pl.read_csv(io.BytesIO(archive.read(entry)), infer_schema_length=None)
            frames.append(
                table.select("anomaly_type", *FIELDS, pl.col(OWN).cast(pl.Float64), run=pl.lit(number))
            )
    rows = pl.concat(frames).rename({**FIELDS, "anomaly_type": "kind"})
    instants = ("submit", "start", "end")
    rows = rows.with_columns(
        pl.col(*instants, "elapsed").cast(pl.Int64), known_at=pl.col("end").cast(pl.Int64) + LAG
    ).sort("submit", "run", maintain_order=True)
    jobs = conform(rows.with_columns(cluster=pl.lit(path.stem), job_id=pl.int_range(pl.len())))
    return pl.concat(
        [jobs, rows.select(*OWN), rows.select("kind", pl.col("run").cast(pl.String))], how="horizontal"
    )


def gaps(jobs: pl.DataFrame) -> dict[str, str]:
    counts = {name: jobs[name].null_count() for name in OWN}
    return {name: f"{count:,} of {jobs.height:,} jobs" for name, count in counts.items() if count}
