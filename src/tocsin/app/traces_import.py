"""`traces import`: samples from Prometheus, agents or files into the home folder."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from tocsin.app.app import App
from tocsin.app.clusters import cluster_named, host_cluster
from tocsin.app.times import LAST, parse_time
from tocsin.core.errors import SettingsError, SourceError
from tocsin.core.units import format_instant

if TYPE_CHECKING:
    from tocsin.core.frames import Samples
    from tocsin.sources.trace_series import TraceBatch
    from tocsin.store.windows import WindowStore

__all__ = ["Imported", "TraceImporter", "TracesImport", "import_traces"]

_FIRST = 3600  # seconds that the first import of a Prometheus reads
_OVERLAP = 30  # seconds before the last import's end that are read again: scrapes may arrive late
_JUMP = 86_400  # a longer gap means that the clock jumped, or another recording


@dataclass(frozen=True, slots=True, kw_only=True)
class TracesImport:
    """Where samples come from; by default, the sources of the settings."""

    cluster: str | None = None
    path: Path | None = None
    prometheus: str | None = None
    agents: Sequence[str] = ()
    mapping: str | None = None
    starttime: str | None = None
    endtime: str | None = None


class TraceSource(Protocol):
    """A source of samples."""

    counts: Counter[str]
    notes: list[str]
    first_failed: int | None

    def batches(self, since: int, until: int) -> "Iterator[TraceBatch]": ...


@dataclass(slots=True)
class Imported:
    """What an import read."""

    cpu_samples: int = 0
    job_samples: int = 0
    new: int = 0
    known: int = 0
    gaps: int = 0
    """Points missing between two samples of a CPU."""
    counts: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    last: int | None = None
    """The newest instant."""

    def to_json(self) -> dict[str, Any]:
        plain = ("cpu_samples", "job_samples", "new", "known", "gaps")
        apart = ("resets", "clock jumps", "failed sources", "failed parts", "split parts")
        others = {
            name: number for name, number in sorted(self.counts.items()) if number and name not in apart
        }
        return {
            **{name: getattr(self, name) for name in plain},
            **{name.replace(" ", "_"): self.counts[name] for name in apart},
            "dropped": others,
            "last": None if self.last is None else format_instant(self.last),
            "notes": list(dict.fromkeys(self.notes)),
        }


def import_traces(app: App, request: TracesImport) -> dict[str, Any]:
    """Read all sources once; `failed` if one of them returned nothing because of errors."""
    now, started = time.time(), time.monotonic()
    with TraceImporter(app, request) as importer:
        zone = app.zone(importer.cluster)
        since = parse_time(request.starttime, zone, now) if request.starttime else None
        until = parse_time(request.endtime, zone, now) if request.endtime else None
        done = importer.run(until, since=since)
    for note in dict.fromkeys(done.notes):
        app.notify(f"warning: {note}")
    failed = bool(done.counts["failed parts"] and not done.cpu_samples + done.job_samples)
    seconds = round(time.monotonic() - started, 3)
    return {"cluster": importer.cluster, **done.to_json(), "failed": failed, "seconds": seconds}


class TraceImporter:
    """Keeps sources open, so that a watch can read repeatedly what is new."""

    def __init__(self, app: App, request: TracesImport) -> None:
        from tocsin.app.traces_windows import window_store

        if app.settings.traces.interval < 1:
            raise SettingsError("traces.interval is 0; it must be at least 1 second")
        self._app, self._request = app, request
        self._open = ExitStack()
        self._named: str | None = None
        self.sources: list[tuple[str, TraceSource]] = list(self._sources())
        if not self.sources:
            raise SettingsError(
                "no source of traces: name a FILE, --prometheus URL or --agent URL, or set traces.prometheus_url or "
                "traces.agents"
            )
        self.cluster = request.cluster or self._named or cluster_named(app, None)[0] or host_cluster(60)
        self.store: WindowStore = window_store(app)
        app.home.prepare()

    def run(self, until: int | None = None, *, since: int | None = None) -> Imported:
        """Read each source up to `until` (default: now) from `since`, or from where the last reading ended.

        A source that fails is noted and counted; it is an error if all fail.
        """
        total = Imported()
        for name, source in self.sources:
            try:
                self._read(name, source, since, until, total)
            except SourceError as error:
                total.counts["failed sources"] += 1
                if total.counts["failed sources"] == len(self.sources):
                    raise
                total.notes.append(str(error))
        return total

    def close(self) -> None:
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(
        self, name: str, source: TraceSource, since: int | None, until: int | None, total: Imported
    ) -> None:
        of_files = name.startswith("file ")
        end = until if until is not None else LAST if of_files else int(time.time())
        position = None if of_files else self.store.position(self.cluster, name)
        begin = since
        if begin is None:
            first = end - _FIRST if name.startswith("prometheus ") else 0
            begin = max(0, position - _OVERLAP) if position is not None else first
        step = self._app.settings.traces.interval
        before, noted = Counter(source.counts), len(source.notes)
        source.first_failed = None
        for batch in source.batches(begin, end):
            kept = self.store.append(self.cluster, batch.samples)
            total.cpu_samples += batch.samples.cpus.height
            total.job_samples += batch.samples.jobs.height
            total.new, total.known = total.new + kept.added, total.known + kept.known
            total.counts["refused"] += kept.refused
            total.gaps += _gaps(batch.samples, step)
            total.last = _newest(batch.samples, total.last)
            if not of_files and source.first_failed is None and since is None:
                self.store.advance(self.cluster, name, min(batch.until, end))
            self._app.progress(f"reading {name}", batch.done, batch.of)
        total.counts.update(source.counts - before)
        total.notes += source.notes[noted:]

    def _sources(self) -> "Iterator[tuple[str, TraceSource]]":
        from tocsin.sources.prometheus import PrometheusSource
        from tocsin.sources.trace_agent import AgentSource
        from tocsin.sources.trace_files import TraceFiles
        from tocsin.sources.trace_http import TraceHttp
        from tocsin.sources.trace_mapping import read_trace_mapping

        asked, settings = self._request, self._app.settings.traces
        named = bool(asked.path or asked.prometheus or asked.agents)
        if asked.path:
            files = TraceFiles(asked.path)
            self._named = files.cluster
            yield f"file {asked.path}", files
        if url := asked.prometheus or ("" if named else settings.prometheus_url):
            mapping = read_trace_mapping(asked.mapping or settings.mapping)
            http = TraceHttp(url, "Prometheus")
            self._open.callback(http.close)
            yield (
                f"prometheus {http.url} {mapping.name}",
                PrometheusSource(http, mapping, step=settings.interval),
            )
        configured = [part.strip() for part in settings.agents.split(",") if part.strip()]
        for url in asked.agents or ([] if named else configured):
            http = TraceHttp(url, "the agent", seconds=20, tries=2)
            self._open.callback(http.close)
            yield f"agent {http.url}", AgentSource(http)


def _gaps(samples: "Samples", step: int) -> int:
    """Points missing between two samples of a CPU."""
    import polars as pl

    between = pl.col("at").diff().over("node", "cpu")
    ordered = samples.cpus.select("node", "cpu", "at").unique().sort("node", "cpu", "at")
    missing = (between - 1).filter((between > step) & (between <= _JUMP)) // step
    return int(ordered.select(missing.sum()).item() or 0)


def _newest(samples: "Samples", so_far: int | None) -> int | None:
    instants: list[Any] = [frame["at"].max() for frame in samples]
    return max((int(at) for at in (*instants, so_far) if at is not None), default=None)
