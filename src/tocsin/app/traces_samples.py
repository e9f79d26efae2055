"""Samples of traces with the kind of each job, from a campaign's folder or from the store."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tocsin.app.app import App
from tocsin.app.traces_request import TraceRequest, stored_span
from tocsin.core.errors import NotFound
from tocsin.core.units import format_instant

if TYPE_CHECKING:
    import polars as pl

    from tocsin.traces.campaigns import Campaign
    from tocsin.traces.windows import Windows

__all__ = ["SamplesByKind", "campaign_samples", "read_samples_by_kind"]

_MOST_SAMPLES = 5_000_000
_DAYS = 1


@dataclass(frozen=True, slots=True)
class SamplesByKind:
    """Samples of CPUs, and the jobs on them with their kinds."""

    cluster: str
    cpus: "pl.DataFrame"
    """As `core.frames.CPU_SAMPLES`."""
    jobs: "pl.DataFrame"
    """`traces.cutting.KEYS`, and each job's `kind` and whether it is known to be `normal` (null: unknown)."""

    @property
    def keys(self) -> "pl.DataFrame":
        """The jobs as `traces.cutting.KEYS`."""
        return self.jobs.drop("kind", "normal")

    def with_kinds(self) -> "pl.DataFrame":
        """The samples with the column `kind`: null for unknown jobs, `idle` for CPUs without a job."""
        import polars as pl

        from tocsin.traces.job_types import IDLE

        during = pl.col("at").is_between("start", pl.col("end").fill_null(2**53))
        here = pl.col("only").is_null() | (pl.col("only") == pl.col("node"))
        known = (
            self.cpus.lazy()
            .filter(pl.col("job").is_not_null())
            .join(
                self.jobs.lazy().select("start", "end", "kind", raw="raw", only="node"),
                left_on="job",
                right_on="raw",
            )
            .filter(during & here)
            .unique(["node", "cpu", "at"])
            .select(*self.cpus.columns, "kind")
        )
        idle = self.cpus.lazy().filter(pl.col("job").is_null()).with_columns(kind=pl.lit(IDLE))
        return pl.concat([known, idle]).collect()

    def windows(self, length: int, stride: int = 10, interval: int = 1) -> "tuple[Windows, pl.DataFrame]":
        """Windows of CPUs, and for each of them `kind` and `normal`; windows of unknown jobs are left out.

        `length` and `stride` are points of `interval` seconds.
        """
        import polars as pl

        from tocsin.traces.cutting import cut
        from tocsin.traces.job_types import IDLE
        from tocsin.traces.windows import Windows

        idle = pl.col("raw").is_null()
        raw, named = (
            cut(self.cpus, length=length, stride=stride, interval=interval, keys=given)
            for given in (None, self.keys)
        )
        frame = named.with_columns(raw=raw["job"]).filter(idle | pl.col("job").is_not_null())
        kinds = self.jobs.select("kind", "normal", job="key").unique("job")
        about = frame.select("job", "raw").join(kinds, on="job", how="left", maintain_order="left")
        about = about.select(
            kind=pl.when(idle).then(pl.lit(IDLE)).otherwise("kind"),
            normal=pl.when(idle).then(True).otherwise("normal"),
        )
        return Windows.from_frame(frame.drop("raw")), about


def read_samples_by_kind(app: App, request: TraceRequest) -> SamplesByKind:
    """The samples of a campaign with its labels, or stored samples with the kinds of their jobs."""
    if request.folder is None:
        return _of_store(app, request)
    from tocsin.traces.campaigns import read_campaign

    return campaign_samples(read_campaign(request.folder))


def _of_store(app: App, request: TraceRequest) -> SamplesByKind:
    """A bounded number of samples; for large clusters, those of some nodes."""
    import polars as pl

    from tocsin.app.traces_windows import window_store, with_exclusive_jobs
    from tocsin.core.frames import CPU_SAMPLES

    kept = window_store(app)
    cluster, since, until = stored_span(app, kept, request, _DAYS)
    nodes = kept.nodes(cluster, since, until)
    parts, read = [CPU_SAMPLES.to_frame()], 0
    for number, node in enumerate(_spread(nodes)):
        if read > _MOST_SAMPLES:
            app.notify(f"note: read {number} of {len(nodes)} nodes; choose a shorter time for more (-S, -E)")
            break
        app.progress("reading nodes", number, len(nodes))
        parts.append(kept.samples(cluster, since, until, [node]).cpus)
        read += parts[-1].height
    if not read:
        raise NotFound(
            f"there are no traces of {cluster} from {format_instant(since)} to {format_instant(until)}; "
            "choose another time with -S and -E"
        )
    jobs = _kinds_of_jobs(app, cluster, since, until)
    return SamplesByKind(cluster, with_exclusive_jobs(pl.concat(parts), jobs), _keys(jobs))


def _kinds_of_jobs(app: App, cluster: str, since: int, until: int) -> "pl.DataFrame":
    """The jobs that may have run then; a kind is a user's jobs of one name. Jobs confirmed as bad are not normal."""
    import polars as pl

    from tocsin.core.fields import KEY
    from tocsin.core.frames import key_text
    from tocsin.store.jobs import Filter, load
    from tocsin.store.trace_regions import list_confirmed

    wanted = [*KEY, "raw_id", "start", "end", "node_list", "exclusive", "user", "name"]
    jobs = load(app.store, Filter(clusters=[cluster], since=since, until=until), wanted)
    bad = {each.job: False for each in list_confirmed(app.store)}
    return jobs.drop_nulls("start").with_columns(
        key_text().alias("key"),
        pl.format("{}/{}", pl.col("user").fill_null("?"), pl.col("name").fill_null("?")).alias("kind"),
        key_text().replace_strict(bad, default=None, return_dtype=pl.Boolean).alias("normal"),
    )


def _keys(jobs: "pl.DataFrame") -> "pl.DataFrame":
    import polars as pl

    raw = pl.coalesce("raw_id", "job_id").cast(pl.String)
    return jobs.select(
        raw.alias("raw"), pl.lit(None, pl.String).alias("node"), "start", "end", "key", "kind", "normal"
    )


def _spread(nodes: list[str]) -> list[str]:
    """Reordered so that the first few come from all over the list."""
    order: list[str] = []
    step = 1 << max(0, len(nodes) - 1).bit_length()
    while step:
        order += [node for node in nodes[::step] if node not in set(order)]
        step //= 2
    return order


def campaign_samples(campaign: "Campaign") -> SamplesByKind:
    """The samples of a campaign; the kind of a job is its label."""
    import polars as pl

    keys = campaign.keys
    rows = [
        (each.job, each.node, each.start, each.end, keys[each.job], each.label, each.normal)
        for each in campaign.card.jobs
    ]
    schema = {
        "raw": pl.String,
        "node": pl.String,
        "start": pl.Int64,
        "end": pl.Int64,
        "key": pl.String,
        "kind": pl.String,
        "normal": pl.Boolean,
    }
    return SamplesByKind(campaign.card.cluster, campaign.cpus, pl.DataFrame(rows, schema, orient="row"))
