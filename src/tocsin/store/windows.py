"""Samples of traces in Parquet files: one folder for each cluster, day and node, one file for each ten minutes.

Adding to a file writes a new one and renames it, so a kill leaves one of both; existing seconds are unchanged.
"""

import datetime as dt
import fcntl
import io
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import polars as pl

from tocsin.core.errors import StoreError
from tocsin.core.frames import CPU_SAMPLES, JOB_SAMPLES, UNREADABLE, Samples
from tocsin.core.units import MAX_INSTANT
from tocsin.store.home import open_private

__all__ = ["Appended", "WindowStore"]

_DAY, _BLOCK = 86_400, 600
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}", re.ASCII)
_KINDS = {"cpus": CPU_SAMPLES, "jobs": JOB_SAMPLES}
_SERIES = {"cpus": ["cpu", "at"], "jobs": ["job", "at"]}
_POSITIONS = ".positions.json"


class Appended(NamedTuple):
    """What happened to samples."""

    added: int
    known: int
    """Samples of a second that was already stored."""
    refused: int
    """Samples without a node, an instant, a CPU or a job, or with a node name that cannot be a folder."""


class WindowStore:
    """The samples under a folder (`home.windows`). Several processes may use it at once.

    A file that cannot be read is reported once, with the reason, and skipped; it is moved aside when its ten minutes
    are written again.
    """

    def __init__(self, folder: Path, report: Callable[[str], None] | None = None) -> None:
        self.folder = folder
        self.damaged: dict[Path, str] = {}
        """Files that could not be read, with the reason."""
        self._report = report

    def append(self, cluster: str, samples: Samples) -> Appended:
        """Store samples; a sample whose second is already stored counts as known and changes nothing."""
        folder = self._of(cluster)
        added = known = refused = 0
        with self._locked(folder):
            for kind, frame in zip(_KINDS, samples, strict=True):
                usable = _usable(frame.select(_KINDS[kind].names()).cast(_KINDS[kind]), kind)
                blocks = usable.with_columns(block=pl.col("at") // _BLOCK * _BLOCK)
                refused += frame.height - usable.height
                for (node, block), part in blocks.partition_by("node", "block", as_dict=True).items():
                    path = folder / _day(int(block)) / str(node) / f"{kind}-{block}.parquet"
                    new = self._merge(path, kind, part.drop("block"))
                    added, known = added + new, known + part.height - new
        return Appended(added, known, refused)

    def samples(self, cluster: str, since: int, until: int, nodes: Iterable[str] | None = None) -> Samples:
        """The samples of some nodes (default: all) from `since` to `until`, both included; ordered by node."""
        wanted = None if nodes is None else sorted(set(nodes))
        return Samples(*(self._read(kind, cluster, since, until, wanted) for kind in _KINDS))

    def job_samples(
        self, cluster: str, since: int, until: int, nodes: Iterable[str] | None = None
    ) -> pl.DataFrame:
        """As `samples`, but only for jobs, which are far fewer than CPUs."""
        return self._read("jobs", cluster, since, until, None if nodes is None else sorted(set(nodes)))

    def nodes(self, cluster: str, since: int = 0, until: int = MAX_INSTANT) -> list[str]:
        """The nodes with samples on the days from `since` to `until`."""
        days = self._days(self._of(cluster), since, until)
        return sorted({node.name for day in days for node in _folders(day)})

    def clusters(self) -> list[str]:
        return sorted(folder.name for folder in _folders(self.folder))

    def prune(self, *, before: int, dry_run: bool = False) -> int:
        """Remove the days that ended before an instant; returns the number of (node, day) pairs."""
        count = 0
        for cluster in _folders(self.folder):
            for day in self._days(cluster, 0, before - _DAY):
                count += len(_folders(day))
                if not dry_run:
                    shutil.rmtree(day, ignore_errors=True)
        return count

    def position(self, cluster: str, source: str) -> int | None:
        """The instant up to which a source has been read."""
        found = self._positions(self._of(cluster)).get(source)
        return found if isinstance(found, int) else None

    def advance(self, cluster: str, source: str, position: int) -> None:
        """Store how far a source has been read, after its samples were stored."""
        folder = self._of(cluster)
        with self._locked(folder):
            positions = {**self._positions(folder), source: position}
            self._write(folder / _POSITIONS, json.dumps(positions).encode())

    def _positions(self, folder: Path) -> dict[str, int]:
        try:
            found = json.loads((folder / _POSITIONS).read_bytes())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _of(self, cluster: str) -> Path:
        if not _NAME.fullmatch(cluster):
            raise StoreError(f'"{cluster[:80]}" cannot be the name of a folder; name the cluster by -M')
        return self.folder / cluster

    def _days(self, cluster: Path, since: int, until: int) -> list[Path]:
        first, last = _day(max(since, 0)), _day(max(min(until, MAX_INSTANT), 0))
        return [day for day in _folders(cluster) if first <= day.name <= last] if until >= 0 else []

    def _merge(self, path: Path, kind: str, part: pl.DataFrame) -> int:
        """Add to a file; returns the number of new rows."""
        part = part.unique(_SERIES[kind], keep="last", maintain_order=True)
        kept = self._content(path, kind) if path.exists() else None
        if kept is not None:
            part = part.join(kept, on=_SERIES[kind], how="anti")
            if part.is_empty():
                return 0
        elif path.exists():
            path.replace(path.with_name(f"{path.name}.damaged"))
        frame = part if kept is None else pl.concat([kept, part])
        content = io.BytesIO()
        frame.sort(_SERIES[kind]).write_parquet(content, compression="zstd", statistics=True)
        self._write(path, content.getvalue())
        return part.height

    def _read(self, kind: str, cluster: str, since: int, until: int, nodes: list[str] | None) -> pl.DataFrame:
        folder = self._of(cluster)
        paths = [
            path
            for day in self._days(folder, since, until)
            for node in (_folders(day) if nodes is None else [day / n for n in nodes if _NAME.fullmatch(n)])
            for path in _blocks(node, kind, since, until)
        ]
        during = pl.col("at").is_between(since, until)
        if not paths:
            return _KINDS[kind].to_frame()
        try:
            frame = pl.scan_parquet(paths, schema=_KINDS[kind], glob=False).filter(during).collect()
        except UNREADABLE:  # at least one is damaged, or was just pruned
            parts = [part for path in paths if (part := self._content(path, kind)) is not None]
            frame = pl.concat([_KINDS[kind].to_frame(), *parts]).filter(during)
        return frame

    def _content(self, path: Path, kind: str) -> pl.DataFrame | None:
        try:
            return pl.read_parquet(path, schema=_KINDS[kind], glob=False)
        except FileNotFoundError:
            return None
        except UNREADABLE as error:
            if path not in self.damaged and self._report:
                self._report(f"{path} is damaged and left out: {str(error).splitlines()[0]}")
            self.damaged[path] = str(error)
            return None

    def _write(self, path: Path, content: bytes) -> None:
        partial = path.with_name(
            f".new-{path.name}"
        )  # one writer at a time; it replaces what a killed one left
        try:
            self._make(path.parent)
            with os.fdopen(open_private(partial, os.O_WRONLY | os.O_TRUNC), "wb") as file:
                file.write(content)
            partial.replace(path)
        except OSError as error:
            raise StoreError(
                f"cannot write {path} ({error.strerror}); check free space and permissions"
            ) from None
        finally:
            with suppress(OSError):
                partial.unlink(missing_ok=True)

    def _make(self, folder: Path) -> None:
        """With the mode of the top folder, whatever the umask."""
        if folder.is_dir():
            return
        if folder != self.folder:
            self._make(folder.parent)
        mode = stat.S_IMODE(self.folder.stat().st_mode) & 0o750 if folder != self.folder else 0o700
        folder.mkdir(mode=mode, exist_ok=True)

    @contextmanager
    def _locked(self, folder: Path) -> Iterator[None]:
        """One writer for each cluster; the kernel drops the lock when the process dies."""
        try:
            self._make(folder)
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise StoreError(f"cannot write to {folder} ({error.strerror}); run as its owner") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def _usable(frame: pl.DataFrame, kind: str) -> pl.DataFrame:
    named = pl.col("node").str.contains(f"^{_NAME.pattern}$") & pl.col("at").is_between(0, MAX_INSTANT)
    return frame.filter((named & pl.col(_SERIES[kind][0]).is_not_null()).fill_null(False))


def _day(instant: int) -> str:
    return dt.datetime.fromtimestamp(instant, dt.UTC).strftime("%Y-%m-%d")


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            found = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return [folder / name for name in sorted(found) if not name.startswith(".")]


def _blocks(node: Path, kind: str, since: int, until: int) -> list[Path]:
    """The files of a day and node that may hold samples of this time."""
    try:
        names = os.listdir(node)  # noqa: PTH208 - names alone, of very many files
    except OSError:
        return []
    found = []
    for name in names:
        first = name.removeprefix(f"{kind}-").removesuffix(".parquet")
        if first.isdigit() and name.endswith(".parquet") and since - _BLOCK < int(first) <= until:
            found.append(node / name)
    return sorted(found)
