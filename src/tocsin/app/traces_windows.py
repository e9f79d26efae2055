"""Windows of jobs from the stored samples, as a Known passes them to trace detectors."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from tocsin.core.errors import NodeListError, SettingsError
from tocsin.core.fields import KEY
from tocsin.core.frames import WINDOWS, Samples, key_text
from tocsin.core.nodelist import expand_nodes

if TYPE_CHECKING:
    from tocsin.app.app import App
    from tocsin.core.settings import TracesSettings
    from tocsin.store.database import Store
    from tocsin.store.windows import WindowStore

__all__ = ["StoredWindows", "stored_windows", "window_store", "with_exclusive_jobs"]

_READ = [*KEY, "raw_id", "start", "end", "node_list", "exclusive"]


def window_store(app: "App") -> "WindowStore":
    """The stored samples in the home folder; problems with a file are reported."""
    from tocsin.store.windows import WindowStore

    return WindowStore(app.home.windows, lambda text: app.notify(f"warning: {text}"))


def stored_windows(app: "App", *, recent: int | None = None) -> "StoredWindows":
    """`windows` for a Replay or a Ledger; with `recent`, only those that end in the last seconds."""
    for name in ("window", "stride", "interval"):
        if getattr(app.settings.traces, name) < 1:
            raise SettingsError(f"traces.{name} is 0; it must be at least 1")
    return StoredWindows(window_store(app), app.store, app.settings.traces, recent=recent)


class StoredWindows:
    """Called with jobs and an instant: the windows of all CPUs of the jobs' nodes while the jobs ran, up to then.

    CPUs of other jobs are included with those jobs' keys, idle ones without a job: the graph of a node needs all. For a
    task of an array, its siblings are read, too. No sample later than the instant is read.
    """

    def __init__(
        self,
        traces: "WindowStore",
        store: "Store",
        settings: "TracesSettings",
        *,
        recent: int | None = None,
    ) -> None:
        self._traces, self._store, self._settings = traces, store, settings
        self._recent = recent

    def __call__(self, jobs: pl.DataFrame, until: int) -> pl.DataFrame:
        seconds = self._settings.window * self._settings.interval
        since = until - self._recent if self._recent is not None else 0
        found = [WINDOWS.to_frame()]
        for cluster in jobs["cluster"].unique(maintain_order=True):
            asked = self._with_siblings(jobs.filter(cluster=cluster).select(_READ), cluster)
            for first, last, nodes in _spans(asked, since, until):
                samples = self._traces.samples(cluster, first - seconds, last, nodes)
                if samples.cpus.is_empty() and samples.jobs.is_empty():
                    continue
                around = self._jobs(cluster, asked, first, last)
                found.append(self._cut(samples, around, last).filter(pl.col("at") >= first))
        return pl.concat(found)

    def _cut(self, samples: Samples, jobs: pl.DataFrame, until: int) -> pl.DataFrame:
        from tocsin.traces.cutting import KEYS, cut

        keys = jobs.select(
            _raw().alias("raw"),
            pl.lit(None, pl.String).alias("node"),
            "start",
            "end",
            key_text().alias("key"),
        ).match_to_schema(KEYS)
        how = self._settings
        return cut(
            with_exclusive_jobs(samples.cpus, jobs),
            samples.jobs,
            length=how.window,
            stride=how.stride,
            interval=how.interval,
            until=until,
            keys=keys,
        )

    def _with_siblings(self, jobs: pl.DataFrame, cluster: str) -> pl.DataFrame:
        from tocsin.store.jobs import Filter, load

        arrays = jobs.filter(pl.col("task").is_not_null())["job_id"].unique().to_list()
        if not arrays:
            return jobs
        tasks = load(self._store, Filter(clusters=[cluster], ids=[(job, None) for job in arrays]), _READ)
        return _together(jobs, tasks)

    def _jobs(self, cluster: str, asked: pl.DataFrame, since: int, until: int) -> pl.DataFrame:
        """All jobs that may have run then."""
        from tocsin.store.jobs import Filter, load

        kept = load(self._store, Filter(clusters=[cluster], since=since, until=until), _READ)
        return _together(asked, kept).filter((pl.col("start") <= until).fill_null(False))


def _together(first: pl.DataFrame, more: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([first, more]).unique(KEY, keep="first", maintain_order=True)


def _raw() -> pl.Expr:
    return pl.coalesce("raw_id", "job_id").cast(pl.String)


def _spans(jobs: pl.DataFrame, since: int, until: int) -> Iterator[tuple[int, int, set[str]]]:
    """Disjoint time spans in which some of the jobs ran, with their nodes."""
    ran = jobs.select(
        pl.max_horizontal("start", pl.lit(since)).alias("first"),
        pl.min_horizontal("end", pl.lit(until)).alias("last"),
        "node_list",
    )
    first = last = 0
    nodes: set[str] = set()
    for begin, end, text in (
        ran.drop_nulls("node_list").filter(pl.col("first") <= pl.col("last")).sort("first").rows()
    ):
        if nodes and begin > last:
            yield first, last, nodes
            nodes = set()
        try:
            named = expand_nodes(text)
        except NodeListError:
            continue
        first = begin if not nodes else first
        last = end if not nodes else max(last, end)
        nodes.update(named)
    if nodes:
        yield first, last, nodes


def with_exclusive_jobs(cpus: pl.DataFrame, jobs: pl.DataFrame) -> pl.DataFrame:
    """If a source knows no jobs (node_exporter), a job that has whole nodes gets all of their CPUs."""
    labelled = cpus.drop_nulls("job")["node"].unique()
    unknown = set(cpus["node"].unique()) - set(labelled)
    whole = jobs.filter(pl.col("exclusive").fill_null(False)).drop_nulls("node_list")
    rows = []
    for raw, start, end, text in whole.select(_raw(), "start", "end", "node_list").rows():
        try:
            rows += [(node, start, end, raw) for node in expand_nodes(text) if node in unknown]
        except NodeListError:
            continue
    if not rows:
        return cpus
    schema = {"node": pl.String, "start": pl.Int64, "end": pl.Int64, "raw": pl.String}
    owners = pl.DataFrame(rows, schema=schema, orient="row").sort("start")
    joined = cpus.with_row_index("place").sort("at").join_asof(
        owners, left_on="at", right_on="start", by="node", check_sortedness=False
    )  # fmt: skip
    owned = (pl.col("at") <= pl.col("end").fill_null(pl.col("at"))) & (pl.col("at") > pl.col("start"))
    named = joined.with_columns(job=pl.when(owned).then("raw").otherwise("job"))
    return named.sort("place").select(cpus.columns)
