"""Speed of storing and reading jobs, and the peak memory for a million of them."""

import json
import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from tocsin.core.frames import SCHEMA, conform
from tocsin.core.intake import Batch, Rejects
from tocsin.sources.swf import SwfFile
from tocsin.store.database import open_store
from tocsin.store.importing import ImportSummary, run_import
from tocsin.store.jobs import load, scan

__all__ = ["run"]

MILLION = 1_000_000
BATCH = 50_000


@dataclass
class Million:
    """A source of a million jobs with the 40 fields that accounting fills."""

    identity: str = "million"
    total: int | None = None
    rejects: Rejects = field(default_factory=Rejects)
    notes: list[str] = field(default_factory=list)

    def batches(self, resume: int = 0) -> Iterator[Batch]:
        for first in range(resume, MILLION, BATCH):
            yield Batch(_jobs(first), read=BATCH, position=first + BATCH)


def _jobs(first: int) -> pl.DataFrame:
    number = pl.int_range(first, first + BATCH, dtype=pl.Int64)
    submit = 1_600_000_000 + number * 30
    texts = {
        "name": pl.format("run_{}", number % 5003),
        "user": pl.format("user{}", number * 7919 % 997),
        "group": pl.format("group{}", number % 53),
        "account": pl.format("account{}", number % 101),
        "node_list": pl.format("node[{}-{}]", number % 900, number % 900 + 7),
        "work_dir": pl.format("/scratch/user{}/project{}", number * 7919 % 997, number % 31),
        "submit_line": pl.format("sbatch --time=60 job_{}.sh", number % 5003),
    }
    words = {
        "cluster": "bench",
        "partition": "batch",
        "qos": "normal",
        "state": "COMPLETED",
        "outcome": "completed",
        "source": "sacct",
        "req_tres": "billing=128,cpu=128,mem=500G,node=1",
        "alloc_tres": "billing=128,cpu=128,mem=500G,node=1",
    }
    counts = [
        name
        for name, dtype in SCHEMA.items()
        if dtype == pl.Int64
        and name.startswith(("req_", "alloc_", "max_", "read_", "cpu", "user_cpu", "uid", "gid"))
    ]
    columns: dict[str, pl.Expr] = {
        "job_id": number,
        "raw_id": number,
        "submit": submit,
        "eligible": submit,
        "start": submit + number % 3600,
        "end": submit + number % 3600 + number % 86400,
        "elapsed": number % 86400,
        "time_limit": pl.lit(86400, dtype=pl.Int64),
        "exit_code": pl.lit(0, dtype=pl.Int64),
        "request_final": pl.lit(True),
        **texts,
        **{name: pl.lit(word) for name, word in words.items()},
        **dict.fromkeys(counts, number % 4099 * 128),
    }
    return conform(pl.select(column.alias(name) for name, column in columns.items()))


def run(url: str | None = None) -> dict[str, Any]:
    """Import SDSC-BLUE including parsing, then a million jobs, into the empty database `url` or into SQLite."""
    alone = multiprocessing.get_context(
        "spawn"
    )  # one process each, so that peak memory is measured separately
    with tempfile.TemporaryDirectory() as folder, alone.Pool(1, maxtasksperchild=1) as pool:
        return {
            "swf": pool.apply(_swf, (url or f"sqlite:///{folder}/swf.db",)),
            "million": pool.apply(_million, (url or f"sqlite:///{folder}/million.db",)),
        }


def _swf(url: str) -> dict[str, Any] | None:
    log = Path(os.environ.get("TOCSIN_DATA") or "../shared/data") / "swf" / "SDSC-BLUE-2000-4.2-cln.swf.gz"
    if not log.is_file():
        return None
    with open_store(url) as store:
        first, again = run_import(store, SwfFile(log)), run_import(store, SwfFile(log))
        return {**_rates(first, again), "peak_mib": _peak_mib()}


def _million(url: str) -> dict[str, Any]:
    with open_store(url) as store:
        rates = _rates(run_import(store, Million()), run_import(store, Million()))
        start = time.perf_counter()
        rows = sum(frame.height for frame in scan(store))
        scanned = rows / (time.perf_counter() - start)
        stored = _peak_mib()
        start = time.perf_counter()
        rows = load(
            store, columns=["submit", "start", "end", "user", "outcome", "time_limit", "req_cpus"]
        ).height
        return {
            **rates,
            "scan_rows_per_second": round(scanned),
            "load_7_columns_rows_per_second": round(rows / (time.perf_counter() - start)),
            "peak_mib": stored,
        }


def _rates(first: ImportSummary, again: ImportSummary) -> dict[str, int]:
    return {
        "jobs": first.new,
        "import_rows_per_second": round(first.rows_per_second),
        "again_new": again.new,
        "again_rows_per_second": round(again.rows_per_second),
    }


def _peak_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
