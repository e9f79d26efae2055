"""Tries untrusted Parquet files in a child process: some damage makes polars abort, which cannot be caught."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tocsin.core.errors import SourceError

__all__ = ["try_to_read"]

_MOST_BYTES = 4 << 30
"""Memory limit of the child: a page may claim to unpack to any size."""
_MOST_SECONDS = 600
_READ = f"""
import json, resource, sys
resource.setrlimit(resource.RLIMIT_DATA, ({_MOST_BYTES}, {_MOST_BYTES}))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
import polars as pl
columns = json.loads(sys.argv[2])
for part in pl.scan_parquet(sys.argv[1], glob=False).select(columns or pl.all()).collect_batches():
    pass
"""


def try_to_read(path: Path, columns: Sequence[str] = ()) -> None:
    """Read these columns (none: all), part by part, in a process that may crash."""
    command = [sys.executable, "-I", "-c", _READ, str(path), json.dumps(list(columns))]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=_MOST_SECONDS)
    except subprocess.TimeoutExpired:
        raise SourceError(f"{path} could not be read within {_MOST_SECONDS} s") from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = lines[-1] if done.returncode > 0 and lines else "reading it ends in a crash"
        raise SourceError(f"{path} is not a readable Parquet file: {reason[:200]}")
