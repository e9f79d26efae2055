"""Requests compared with earlier ones of the user, application and partition: which part is unusual, and how much."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import log2
from pathlib import Path
from typing import Any

import polars as pl

from tocsin.core.errors import ModelError
from tocsin.core.units import UNLIMITED, format_duration
from tocsin.failure.shortages import shown_memory
from tocsin.models.files import MALFORMED, read_json

__all__ = ["FILE", "Unusual", "UnusualRequests"]

FILE = "unusual_requests.json"
VERSION = 1
FEWEST = 10
"""Earlier jobs needed for a comparison."""
FROM = 1.0
"""The score from which a part is unusual: as far outside the usual range as that is wide, and at least twice its end."""
MOST_GROUPS = 3000
"""Per kind; those with most jobs are kept."""

_KINDS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "name": (("user", "name"), "this user's {} earlier jobs of this name"),
    "executable": (("user", "executable"), "this user's {} earlier jobs with this executable"),
    "user": (("user",), "this user's {} earlier jobs"),
    "partition": (("partition",), "the {} earlier jobs in this partition"),
}
"""The closest first: each part is reported once, compared with the closest jobs that make it unusual."""


@dataclass(frozen=True, slots=True)
class _Part:
    unit: str
    shown: Callable[[int], str]

    def requested(self, value: int) -> str:
        return f"{self.shown(value)} {self.unit.removesuffix('s') if value == 1 else self.unit}"


def _number(value: int) -> str:
    return f"{value:,}"


_PARTS: Mapping[str, _Part] = {
    "req_nodes": _Part("nodes", _number),
    "req_cpus": _Part("CPUs", _number),
    "req_gpus": _Part("GPUs", _number),
    "req_memory": _Part("of memory per node", shown_memory),
    "time_limit": _Part("of time", format_duration),
    "array_tasks": _Part("array tasks", _number),
}

_Summary = tuple[int, int, int, float]
"""The number of jobs, their smallest and largest request, and how many doublings lie between most of them."""


@dataclass(frozen=True, slots=True)
class Unusual:
    """One part of a request that is unusual."""

    score: float
    """How far it is outside the range of earlier jobs, in widths of that range; at least the distance in doublings."""
    part: str
    """The field of the request."""
    text: str


@dataclass(frozen=True, slots=True)
class UnusualRequests:
    """What was requested before, for each kind and each of its groups."""

    summaries: Mapping[str, Mapping[tuple[str, ...], Mapping[str, _Summary]]]

    @classmethod
    def fit(cls, jobs: pl.DataFrame) -> "UnusualRequests":
        return cls({kind: _summed(jobs, fields) for kind, (fields, _) in _KINDS.items()})

    def find(self, job: Mapping[str, Any]) -> list[Unusual]:
        """The unusual parts of a job's request, the most unusual first."""
        found: dict[str, Unusual] = {}
        for kind, (fields, words) in _KINDS.items():
            key = _key(job, fields)
            for part, summary in self.summaries[kind].get(key, {}).items() if key else ():
                if part not in found and (unusual := _unusual(part, job[part], summary, words)):
                    found[part] = unusual
        return sorted(found.values(), key=lambda unusual: (-unusual.score, unusual.part))

    def save(self, folder: Path) -> None:
        document = {
            "version": VERSION,
            "summaries": {
                kind: [[list(key), summaries] for key, summaries in sorted(groups.items())]
                for kind, groups in self.summaries.items()
            },
        }
        (folder / FILE).write_text(json.dumps(document, sort_keys=True, allow_nan=False) + "\n", "utf-8")

    @classmethod
    def load(cls, folder: Path) -> "UnusualRequests":
        path = folder / FILE
        try:
            document = read_json(path)
            if document["version"] != VERSION:
                raise ValueError(f"it is not of version {VERSION}")
            return cls({kind: dict(_groups(document["summaries"][kind])) for kind in _KINDS})
        except (OSError, *MALFORMED) as error:
            raise ModelError(f"{path} cannot be read: {str(error)[:200]}; train again") from None


def _groups(saved: list[Any]) -> Iterator[tuple[tuple[str, ...], dict[str, _Summary]]]:
    for key, summaries in saved:
        yield (
            tuple(str(word) for word in key),
            {
                part: (int(n), int(a), int(b), float(w))
                for part, (n, a, b, w) in summaries.items()
                if part in _PARTS
            },
        )


def _summed(jobs: pl.DataFrame, fields: tuple[str, ...]) -> dict[tuple[str, ...], dict[str, _Summary]]:
    """The parts of each group that were requested often enough."""
    known = jobs.filter(pl.all_horizontal(pl.col(name).is_not_null() for name in fields))
    real = {
        part: pl.when((pl.col(part) > 0) & (pl.col(part) < UNLIMITED)).then(pl.col(part)) for part in _PARTS
    }
    groups = (
        known.group_by(fields)
        .agg(
            pl.len().alias("jobs"),
            *(values.count().alias(f"{part}:n") for part, values in real.items()),
            *(values.min().alias(f"{part}:a") for part, values in real.items()),
            *(values.max().alias(f"{part}:b") for part, values in real.items()),
            *(
                (_log(values.quantile(0.95)) - _log(values.quantile(0.05))).alias(f"{part}:w")
                for part, values in real.items()
            ),
        )
        .filter(pl.col("jobs") >= FEWEST)
        .sort("jobs", *fields, descending=[True, *(False for _ in fields)])
        .head(MOST_GROUPS)
    )
    return {
        tuple(row[name] for name in fields): {
            part: (row[f"{part}:n"], row[f"{part}:a"], row[f"{part}:b"], round(row[f"{part}:w"], 3))
            for part in _PARTS
            if row[f"{part}:n"] >= FEWEST
        }
        for row in groups.iter_rows(named=True)
    }


def _log(amount: pl.Expr) -> pl.Expr:
    return amount.cast(pl.Float64).log(2)


def _key(job: Mapping[str, Any], fields: tuple[str, ...]) -> tuple[str, ...] | None:
    key = tuple(job[name] for name in fields)
    return None if None in key else key


def _unusual(part: str, value: int | None, summary: _Summary, words: str) -> Unusual | None:
    if value is None or not 0 < value < UNLIMITED:
        return None
    number, least, most, width = summary
    if least <= value <= most:
        return None
    beyond = log2(value / most) if value > most else log2(least / value)
    score = beyond / max(width, 1.0)
    if score < FROM:
        return None
    shown = _PARTS[part].shown
    usual = shown(least) if least == most else f"{shown(least)}–{shown(most)}"
    text = f"requests {_PARTS[part].requested(value)}; {words.format(f'{number:,}')} requested {usual}"
    return Unusual(round(score, 2), part, text)
