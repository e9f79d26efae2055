"""`import`: read jobs from logs, tables or a live Slurm into the store."""

import signal
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from tocsin.app.app import App
from tocsin.app.clusters import accounting_source
from tocsin.app.logs import LogRequest, log_source
from tocsin.app.text import intake_notes
from tocsin.app.times import parse_time
from tocsin.core.intake import Batch, Rejects

if TYPE_CHECKING:
    from tocsin.core.intake import JobSource

__all__ = ["import_files", "import_slurm"]


def import_files(app: App, files: Sequence[str], log: LogRequest) -> dict[str, Any]:
    """Import the files one after another; repeating an import adds nothing."""
    many = len(files) > 1
    return _import(app, ((f"{file}: " if many else "", log_source(app, log, file)) for file in files))


def import_slurm(app: App, cluster: str | None, since: str | None, until: str | None) -> dict[str, Any]:
    """Import the accounting of a live Slurm, from the end of the last import or from `since` (as sacct's -S)."""
    now, zone = time.time(), app.zone(cluster)
    first = parse_time(since, zone, now) if since else None
    last = parse_time(until, zone, now) if until else int(now)
    with accounting_source(app, cluster, first, last) as source:
        return _import(app, [("", source)])


def _import(app: App, sources: "Iterable[tuple[str, JobSource]]") -> dict[str, Any]:
    """Import one after another; returns the sum, with `failed` if all records of a source were rejected."""
    from tocsin.store.importing import run_import

    total: dict[str, Any] = {"read": 0, "new": 0, "updated": 0, "unchanged": 0}
    rejects, notes, failed, started = Rejects(), list[str](), False, time.monotonic()
    with _ended_by_sigterm():
        for name, source in sources:
            advance = partial(_advance, app, source.total or 1)
            done = run_import(app.store, source, lag=app.settings.history.lag, progress=advance)
            for number in total:
                total[number] += getattr(done, number)
            rejects.include(done.rejects)
            notes += done.notes
            for line in intake_notes(done.notes, done.rejects, name):
                app.notify(line)
            if done.read and done.rejects.counts and not done.new + done.updated + done.unchanged:
                failed = True
                app.notify(f"error: {name}nothing was stored: all records were rejected")
    seconds = time.monotonic() - started
    return {
        **total,
        "rejected": rejects.counts,
        "rejected_lines": rejects.lines,
        "rejected_examples": rejects.examples,
        "notes": notes,
        "failed": failed,
        "seconds": round(seconds, 3),
        "rows_per_second": round(total["read"] / seconds) if seconds > 0 else 0,
    }


def _advance(app: App, size: int, batch: Batch) -> None:
    app.progress("reading", batch.done, size)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """SIGTERM ends an import as Ctrl-C does: files are closed, and a command being read is killed."""

    def exit_on_signal(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():  # signal handlers can only be set there
        yield
        return
    before = signal.signal(signal.SIGTERM, exit_on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
