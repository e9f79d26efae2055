"""Samples of traces with the kind of each job: those of a campaign's folder, or those in the store."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tocsin.app.app import App
from tocsin.core.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from tocsin.traces.windows import Windows

__all__ = ["KindedSamples", "TraceRequest", "read_kinded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRequest:
    """Which traces: those of a campaign's `folder`, else those in the store."""

    folder: Path | None = None
    cluster: str | None = None
    starttime: str | None = None
    endtime: str | None = None


@dataclass(frozen=True, slots=True)
class KindedSamples:
    """Samples of CPUs, and the jobs on them with their kinds."""

    cluster: str
    cpus: "pl.DataFrame"
    """As `core.frames.CPU_SAMPLES`."""
    jobs: "pl.DataFrame"
    """`traces.cutting.KEYS`, and for each job its `kind` and whether it is known to be `normal` (null: not known)."""

    def with_kinds(self) -> "pl.DataFrame":
        """The samples with the column `kind`: null for unknown jobs, `idle` for CPUs without a job."""
        import polars as pl

        from tocsin.traces.series import IDLE

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

    def windows(self, length: int, stride: int = 10) -> "tuple[Windows, pl.DataFrame]":
        """Windows of CPUs, and for each of them `kind` and `normal`; windows of unknown jobs are left out."""
        import polars as pl

        from tocsin.traces.cutting import cut
        from tocsin.traces.series import IDLE
        from tocsin.traces.windows import Windows

        idle = pl.col("raw").is_null()
        raw = cut(self.cpus, length=length, stride=stride).with_columns(raw="job")
        named = cut(self.cpus, length=length, stride=stride, keys=self.jobs.drop("kind", "normal"))
        frame = named.with_columns(raw=raw["raw"]).filter(idle | pl.col("job").is_not_null())
        kinds = self.jobs.select("kind", "normal", job="key").unique("job")
        about = frame.select("job", "raw").join(kinds, on="job", how="left", maintain_order="left")
        about = about.select(
            kind=pl.when(idle).then(pl.lit(IDLE)).otherwise("kind"),
            normal=pl.when(idle).then(True).otherwise("normal"),
        )
        return Windows.from_frame(frame.drop("raw")), about


def read_kinded(app: App, request: TraceRequest) -> KindedSamples:
    """The samples of a campaign with its labels, or stored samples with the kinds of their jobs."""
    if request.folder is None:
        raise InputError(f"there are no traces in {app.home.windows}; name the folder of a campaign")
    return _of_campaign(request.folder)


def _of_campaign(folder: Path) -> KindedSamples:
    import polars as pl

    from tocsin.traces.campaigns import read_campaign

    campaign = read_campaign(folder)
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
    return KindedSamples(campaign.card.cluster, campaign.cpus, pl.DataFrame(rows, schema, orient="row"))
