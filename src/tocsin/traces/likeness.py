"""Alarms by name: the windows of a running job that are in a region confirmed as bad."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from numpy.typing import NDArray

from tocsin.core.units import format_instant
from tocsin.core.verdict import Finding, Level
from tocsin.traces.alarms import NAME, in_a_row, spans
from tocsin.traces.regions import Region, regions_entered

__all__ = ["Likeness", "likenesses"]


@dataclass(frozen=True, slots=True)
class Likeness:
    """Windows of one job that are like those of jobs that people confirmed as bad."""

    name: str
    inside: int
    windows: int
    cpus: dict[str, list[int]]
    """The CPUs that are like them now, by node."""
    regions: Sequence[Region]

    @property
    def kind(self) -> str:
        """The cause by which alarms are grouped."""
        return f"like_{self.name}"

    @property
    def text(self) -> str:
        days = sorted({str(format_instant(region.confirmed))[:10] for region in self.regions})
        when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
        return f"like the jobs confirmed as {self.name} on {when}: {self.inside:,} of the last {self.windows:,} windows"

    @property
    def evidence(self) -> list[str]:
        numbers = ", ".join(str(region.number) for region in self.regions)
        return [*(f"{node}: CPU {spans(cpus)}" for node, cpus in self.cpus.items()), f"region {numbers}"]

    def finding(self) -> Finding:
        return Finding(
            detector=NAME,
            kind=self.kind,
            level=Level.WARNING,
            text=self.text,
            score=self.inside / self.windows,
            evidence=self.evidence,
        )


def likenesses(
    index: pl.DataFrame,
    embeddings: NDArray[Any],
    regions: Sequence[Region],
    *,
    version: str,
    stride: int,
    least: int,
) -> list[Likeness]:
    """The regions that a CPU of this job has been in for `least` windows in a row, up to the newest one.

    `index` names the windows of the job's last minutes (`node`, `cpu`, `at`), `version` the model of the embeddings.
    """
    found = []
    newest = index["at"].max()
    for entered in regions_entered(embeddings, regions, version=version):
        rows = index.with_columns(unusual=pl.Series(entered.inside))
        long = pl.Series(in_a_row(rows, stride) >= least)
        now = rows.filter(long & (rows["at"] == newest))
        if now.is_empty():
            continue
        cpus: dict[str, list[int]] = {}
        for node, cpu in now.select("node", "cpu").sort("node", "cpu").iter_rows():
            cpus.setdefault(node, []).append(cpu)
        found.append(Likeness(entered.name, entered.count, index.height, cpus, entered.regions))
    return found
