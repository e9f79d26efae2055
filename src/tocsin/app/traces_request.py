"""Which traces a command reads: those in a campaign's folder, or stored ones of one cluster and time span."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tocsin.app.app import App
from tocsin.app.clusters import cluster_named
from tocsin.app.times import parse_time
from tocsin.core.errors import InputError, NotFound
from tocsin.core.units import format_instant

if TYPE_CHECKING:
    from tocsin.store.windows import WindowStore

__all__ = ["TraceRequest", "stored_span"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRequest:
    """Traces in a campaign's `folder`, else those in the store."""

    folder: Path | None = None
    cluster: str | None = None
    starttime: str | None = None
    endtime: str | None = None


def stored_span(app: App, kept: "WindowStore", request: TraceRequest, days: int) -> tuple[str, int, int]:
    """The cluster and time span of stored traces; by default, the last days."""
    cluster = _cluster(app, kept, request.cluster)
    zone, now = app.zone(cluster), time.time()
    until = parse_time(request.endtime, zone, now) if request.endtime else int(now)
    since = parse_time(request.starttime, zone, now) if request.starttime else until - days * 86_400
    if since >= until:
        raise InputError(f"the time from {format_instant(since)} to {format_instant(until)} is empty")
    return cluster, since, until


def _cluster(app: App, kept: "WindowStore", name: str | None) -> str:
    """The named cluster, the one in the settings, or the only one with traces."""
    known = kept.clusters()
    name = name or cluster_named(app, None)[0] or (known[0] if len(known) == 1 else None)
    if name is None and known:
        raise InputError(
            f"traces of {len(known)} clusters are stored ({', '.join(known)}); choose one with -M"
        )
    if name not in known:
        whose = f' of cluster "{name}"' if name else ""
        raise NotFound(
            f"there are no traces{whose} in {kept.folder}; record some with `tocsin traces watch` or "
            "`tocsin traces import`, or name the folder of a campaign"
        )
    return name
