"""Samples from files: Parquet of CPU_SAMPLES or JOB_SAMPLES, `.npz` of plain arrays, and folders of campaigns."""

import json
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tocsin.core.errors import NotFound, SourceError
from tocsin.core.frames import CPU_SAMPLES, JOB_SAMPLES, UNREADABLE, Samples
from tocsin.sources.parquet import try_to_read
from tocsin.sources.trace_series import TraceBatch

__all__ = ["TraceFiles"]

_ROWS = 2_000_000  # of a batch
_MOST_BYTES = 4 << 30
_CARD = "campaign.json"


class TraceFiles:
    """One file, or all `.parquet` and `.npz` files of a folder.

    The columns (of an `.npz` file: the arrays) are named as in `core.frames`. A job is optional, and so is a node if the
    file is named after it; in `.npz`, a single value stands for all rows.
    """

    def __init__(self, path: Path) -> None:
        self.counts: Counter[str] = Counter()
        self.notes: list[str] = []
        self.first_failed: int | None = None
        self.cluster: str | None = None
        """The cluster that the card of a campaign names."""
        if not path.exists():
            raise NotFound(f"no file or folder {path}")
        self._files = [path]
        if path.is_dir():
            self._files = sorted(file for file in path.iterdir() if file.suffix in (".parquet", ".npz"))
            if not self._files:
                raise NotFound(f"{path} has no .parquet and no .npz file")
            self.cluster = _cluster(path / _CARD)

    def batches(self, since: int, until: int) -> Iterator[TraceBatch]:
        """The samples in (since, until]."""
        inside = (pl.col("at") > since) & (pl.col("at") <= until)
        for number, file in enumerate(self._files):
            for frame in _npz(file) if file.suffix == ".npz" else _parquet(file):
                conforming, of_cpus = _conforming(frame, file)
                kept = conforming.filter(inside)
                cpus = kept if of_cpus else CPU_SAMPLES.to_frame()
                jobs = JOB_SAMPLES.to_frame() if of_cpus else kept
                yield TraceBatch(Samples(cpus, jobs), until, number, len(self._files))


def _cluster(card: Path) -> str | None:
    try:
        found = json.loads(card.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    name = found.get("cluster") if isinstance(found, dict) else None
    return name if isinstance(name, str) else None


def _parquet(path: Path) -> Iterator[pl.DataFrame]:
    try_to_read(path)
    try:
        scan = pl.scan_parquet(path, glob=False)
        rows = scan.select(pl.len()).collect().item()
        for first in range(0, rows, _ROWS):
            yield scan.slice(first, _ROWS).collect()
    except UNREADABLE as error:
        raise SourceError(f"{path} is not a Parquet file that can be read: {error}") from None


def _npz(path: Path) -> Iterator[pl.DataFrame]:
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > _MOST_BYTES:
            raise SourceError(f"{path}: {size:,} bytes when unpacked are more than {_MOST_BYTES:,}")
        with np.load(path, allow_pickle=False) as arrays:
            found: dict[str, Any] = {name: np.asarray(arrays[name]) for name in arrays}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, MemoryError, NotImplementedError) as error:
        raise SourceError(f"{path} is not an .npz file of plain arrays: {error}") from None
    rows = max((array.size for array in found.values()), default=0)
    if wrong := next((name for name, array in found.items() if array.size not in (1, rows)), None):
        raise SourceError(f"{path}: the array {wrong} has {found[wrong].size:,} values, others {rows:,}")
    yield pl.DataFrame({name: np.broadcast_to(array.reshape(-1), rows) for name, array in found.items()})


def _conforming(frame: pl.DataFrame, path: Path) -> tuple[pl.DataFrame, bool]:
    """CPU_SAMPLES or JOB_SAMPLES, and whether it is the former."""
    of_cpus = "cpu" in frame.columns
    schema, needed = (
        (CPU_SAMPLES, ["cpu", "at", "user", "system", "iowait"]) if of_cpus else (JOB_SAMPLES, ["job", "at"])
    )
    if missing := [name for name in needed if name not in frame.columns]:
        columns = ", ".join(frame.columns[:20])
        raise SourceError(
            f"{path} has no column {missing[0]} (it has {columns}); samples need {', '.join(needed)}"
        )
    filled = frame.with_columns(
        pl.lit(path.stem if name == "node" else None, dtype).alias(name)
        for name, dtype in schema.items()
        if name not in frame.columns
    )
    try:
        return filled.select(schema.names()).cast(schema), of_cpus
    except UNREADABLE as error:
        raise SourceError(f"{path}: {str(error).splitlines()[0]}") from None
