"""Campaigns: recordings of labelled jobs, kept in a folder with a card (the paper, section 2.1).

A campaign belongs entirely to one split, so that no job has windows in two of them. The folder holds `campaign.json`
(the card), `cpus.parquet` (`core.frames.CPU_SAMPLES`) and `jobs.parquet` (`core.frames.JOB_SAMPLES`).
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

import polars as pl
from polars.io.plugins import register_io_source

from tocsin.core.errors import InputError, NotFound, SourceError
from tocsin.core.fields import Instant
from tocsin.core.frames import CPU_SAMPLES, JOB_SAMPLES, UNREADABLE
from tocsin.core.ids import JobKey
from tocsin.core.json_form import from_json, to_json
from tocsin.sources.parquet import try_to_read

__all__ = [
    "Campaign",
    "Card",
    "LabelledJob",
    "Split",
    "joined",
    "read_campaign",
    "read_card",
    "write_campaign",
]

CARD, CPUS, JOBS = "campaign.json", "cpus.parquet", "jobs.parquet"
_SCHEMA = 1
_MOST_BYTES = 1 << 28  # for a card: a million jobs


class Split(StrEnum):
    """What a campaign is for."""

    TRAIN = "train"
    VALIDATION = "validation"
    TEST = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledJob:
    """One job of a campaign; `job` is Slurm's raw id."""

    job: str
    label: str
    normal: bool
    node: str
    cpus: Sequence[int]
    submit: Instant
    start: Instant
    end: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """Where a campaign comes from, and what ran when."""

    split: Split
    origin: str
    """`recorded` or `simulated`."""
    cluster: str
    nodes: Sequence[str]
    first: Instant
    last: Instant
    jobs: Sequence[LabelledJob]
    seed: int | None = None
    kernel: str | None = None
    processor: str | None = None
    slurm: str | None = None
    notes: Sequence[str] = ()
    """For readers, such as known imperfections."""
    schema: int = _SCHEMA


@dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign in memory: its card, the samples of CPUs and the samples of jobs."""

    card: Card
    cpus: pl.DataFrame = field(repr=False)
    jobs: pl.DataFrame = field(repr=False)

    @property
    def keys(self) -> dict[str, str]:
        """The key of each job, by its raw id."""
        cluster = self.card.cluster
        return {each.job: str(JobKey(cluster, int(each.job), None, each.submit)) for each in self.card.jobs}

    @property
    def labels(self) -> pl.DataFrame:
        """The label of each job, and whether it is normal, by its key (`job`)."""
        rows = [(self.keys[each.job], each.label, each.normal) for each in self.card.jobs]
        return pl.DataFrame(rows, {"job": pl.String, "label": pl.String, "normal": pl.Boolean}, orient="row")


def joined(first: Campaign, second: Campaign) -> Campaign:
    """One campaign from two recordings."""
    a, b = first.card, second.card
    if (a.split, a.cluster, a.origin) != (b.split, b.cluster, b.origin):
        raise InputError(
            f"a campaign of {a.cluster} for {a.split} and one of {b.cluster} for {b.split} cannot be joined"
        )
    card = replace(
        a,
        nodes=sorted({*a.nodes, *b.nodes}),
        first=min(a.first, b.first),
        last=max(a.last, b.last),
        jobs=[*a.jobs, *b.jobs],
        notes=[*a.notes, *(note for note in b.notes if note not in a.notes)],
    )
    return Campaign(card, pl.concat([first.cpus, second.cpus]), pl.concat([first.jobs, second.jobs]))


def write_campaign(
    folder: Path, card: Card, cpus: Iterable[pl.DataFrame], jobs: Iterable[pl.DataFrame]
) -> None:
    """Write the folder, in bounded memory; the card is written last, so that what it names is there."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / CPUS, cpus, CPU_SAMPLES)
    _write(folder / JOBS, jobs, JOB_SAMPLES)
    part = folder / f"{CARD}.part"
    part.write_text(json.dumps(to_json(card), indent=1) + "\n")
    part.replace(folder / CARD)


def read_card(folder: Path) -> Card:
    """The card of a campaign; errors say why it is invalid."""
    path = folder / CARD
    if not path.is_file():
        raise NotFound(f"no campaign in {folder}: there is no {CARD}; `tocsin campaign simulate` makes one")
    if path.stat().st_size > _MOST_BYTES:
        raise SourceError(f"{path} has more than {_MOST_BYTES >> 20} MiB; is it the card of a campaign?")
    try:
        card: Card = from_json(json.loads(path.read_bytes()), Card, "the card")
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{path} cannot be read: {error}") from None
    if card.schema != _SCHEMA:
        raise SourceError(f"{path} has schema {card.schema}, but this tocsin reads schema {_SCHEMA}")
    if bad := next((each.job for each in card.jobs if not each.job.isdecimal()), None):
        raise SourceError(f'{path} names the job "{bad[:40]}"; a raw job id is a number')
    return card


def read_campaign(folder: Path, nodes: Sequence[str] | None = None) -> Campaign:
    """The campaign in a folder; with `nodes`, only what happened on these."""
    card = read_card(folder)
    return Campaign(card, _read(folder / CPUS, CPU_SAMPLES, nodes), _read(folder / JOBS, JOB_SAMPLES, nodes))


def _read(path: Path, schema: pl.Schema, nodes: Sequence[str] | None) -> pl.DataFrame:
    if path.is_file():
        try_to_read(path)
    try:
        rows = pl.scan_parquet(path)
        if rows.collect_schema() != schema:
            raise SourceError(f"{path} has other columns than the samples of a campaign: {', '.join(schema)}")
        if nodes is not None:
            rows = rows.filter(pl.col("node").is_in(list(nodes)))
        return rows.collect()
    except UNREADABLE as error:
        reason = str(error).partition("\n")[0]
        raise SourceError(f"{path} cannot be read: {reason}") from None


def _write(path: Path, frames: Iterable[pl.DataFrame], schema: pl.Schema) -> None:
    """One Parquet file from frames that arrive one by one."""

    def produce(
        columns: list[str] | None, where: pl.Expr | None, rows: int | None, size: int | None
    ) -> Iterator[pl.DataFrame]:
        del columns, where, rows, size  # everything is written
        yield from frames

    part = path.with_name(f"{path.name}.part")
    try:
        register_io_source(produce, schema=schema).sink_parquet(part, compression="zstd", compression_level=9)
        part.replace(path)
    finally:
        if part.exists():
            part.unlink()
