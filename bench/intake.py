"""Parsing speed without storing: rows per second for each file format, and peak memory."""

import gzip
import json
import os
import resource
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from tocsin.core.intake import JobSource
from tocsin.sources.sacct import SacctFile
from tocsin.sources.swf import SwfFile
from tocsin.sources.table import TableFile

__all__ = ["run"]

COLUMNS = (
    "JobID,JobIDRaw,Cluster,Partition,QOS,Account,Group,GID,User,UID,Submit,Eligible,Start,End,Elapsed,ExitCode,State,"
    "NNodes,NCPUS,ReqCPUS,ReqMem,ReqTRES,AllocTRES,Timelimit,NodeList,JobName"
)


def run(folder: Path | None = None, *, copies: int = 20) -> dict[str, Any]:
    """Parse public logs; small ones are repeated with new ids, so that start-up hardly counts."""
    folder = folder or Path(os.environ.get("TOCSIN_DATA", "../shared/data"))
    swf = folder / "swf" / "SDSC-BLUE-2000-4.2-cln.swf.gz"
    with tempfile.TemporaryDirectory() as place:
        sacct, table = Path(place) / "sacct.txt", Path(place) / "table.csv"
        _repeat(folder / "sacct" / "pozidriv.log.gz", sacct, "|", copies, header=False)
        _repeat(folder / "accounting" / "mit-supercloud-2021q1.csv.gz", table, ",", copies, header=True)
        found = {
            "swf": _measure(lambda: SwfFile(swf)),
            "sacct": _measure(lambda: SacctFile(sacct, columns=COLUMNS, zone="America/New_York")),
            "table": _measure(lambda: TableFile(table, "slurm-database", cluster="mit")),
        }
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {"rows_per_second": found, "peak_mib": peak}


def _repeat(source: Path, target: Path, separator: str, copies: int, *, header: bool) -> None:
    """Write the lines `copies` times, with new ids in the first two columns."""
    with gzip.open(source, "rt") as file:
        lines = file.readlines()
    with target.open("w") as file:
        file.writelines(lines[:1] if header else [])
        rests = [line.split(separator, 2)[2] for line in lines[header:]]
        ids = count(1)
        for _ in range(copies):
            file.writelines(f"{(n := next(ids))}{separator}{n}{separator}{rest}" for rest in rests)


def _measure(make: Callable[[], JobSource]) -> int:
    """The best of three runs, because the machine may be busy."""
    best = 0
    for _ in range(3):
        start = time.perf_counter()
        source = make()
        rows = sum(batch.jobs.height for batch in source.batches())
        best = max(best, round(rows / (time.perf_counter() - start)))
        if source.rejects.total:
            raise SystemExit(f"{source.identity}: {source.rejects.counts}; these files have no bad rows")
    return best


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
