"""Windows of traces with their jobs, from campaigns or from the store, part by part."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tocsin.app.app import App
from tocsin.app.traces_request import TraceRequest, stored_span
from tocsin.app.traces_samples import campaign_samples

if TYPE_CHECKING:
    import polars as pl

    from tocsin.store.windows import WindowStore

__all__ = ["TracePart", "campaign_part", "stored_parts"]

_CHUNK = 6 * 3600
_DAYS = 7


@dataclass(frozen=True, slots=True)
class TracePart:
    """Some windows, and their jobs."""

    windows: "pl.DataFrame"
    """`core.frames.WINDOWS`, without those of unknown jobs."""
    jobs: "pl.DataFrame"
    """`job`, `user`, `name`, and for a campaign `label` and `normal` (null: unknown)."""


def campaign_part(app: App, folder: Path) -> "tuple[TracePart, str]":
    """The windows of a campaign, and its split. The label is used as the job's name."""
    import polars as pl

    from tocsin.traces.campaigns import read_campaign
    from tocsin.traces.cutting import cut

    campaign, settings = read_campaign(folder), app.settings.traces
    windows = cut(
        campaign.cpus,
        campaign.jobs,
        length=settings.window,
        stride=settings.stride,
        interval=settings.interval,
        keys=campaign_samples(campaign).keys,
    )
    jobs = campaign.labels.with_columns(user=pl.lit(None, pl.String), name="label")
    return TracePart(windows.filter(pl.col("job").is_not_null()), jobs), str(campaign.card.split)


def stored_parts(app: App, request: TraceRequest) -> "Iterator[TracePart]":
    """The stored traces, node by node and at most six hours at a time."""
    from tocsin.app.traces_windows import window_store

    kept = window_store(app)
    cluster, since, until = stored_span(app, kept, request, _DAYS)
    nodes = kept.nodes(cluster, since, until)
    chunks = [(node, first) for node in nodes for first in range(since, until, _CHUNK)]
    for number, (node, first) in enumerate(chunks):
        app.progress("reading traces", number, len(chunks))
        part = _stored(app, kept, cluster, node, (first, min(first + _CHUNK, until)))
        if part.windows.height:
            yield part
    app.progress("reading traces", len(chunks), len(chunks))


def _stored(app: App, kept: "WindowStore", cluster: str, node: str, during: tuple[int, int]) -> TracePart:
    """Windows that end after the first instant, up to and including the second."""
    import polars as pl

    from tocsin.traces.cutting import cut
    from tocsin.watch.trace_jobs import TraceJobs

    settings = app.settings.traces
    before = settings.window * settings.interval
    samples = kept.samples(cluster, during[0] - before, during[1], [node])
    jobs = TraceJobs(app.store, cluster, None)
    jobs.look_up(_raw_ids(samples), since=during[0] - before)
    windows = cut(
        samples.cpus,
        samples.jobs,
        length=settings.window,
        stride=settings.stride,
        interval=settings.interval,
        keys=jobs.keys,
    )
    mine = windows.filter(pl.col("job").is_not_null(), pl.col("at") > during[0])
    none = {"label": pl.lit(None, pl.String), "normal": pl.lit(None, pl.Boolean)}
    return TracePart(mine, jobs.rows.select("job", "user", "name").unique("job").with_columns(**none))


def _raw_ids(samples: "Sequence[pl.DataFrame]") -> list[str]:
    import polars as pl

    return pl.concat(frame["job"] for frame in samples).drop_nulls().unique().to_list()
