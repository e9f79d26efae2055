"""Shortages: the requests with which jobs of a kind ran out of memory or time, and those with which they completed."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from tocsin.core.errors import ModelError
from tocsin.core.outcomes import Outcome
from tocsin.core.units import UNLIMITED, format_duration, format_memory
from tocsin.models.files import MALFORMED, read_json

__all__ = ["FILE", "READ", "Shortage", "Shortages", "nice_memory", "nice_time", "shown_memory"]

FILE = "shortages.json"
VERSION = 1
FEWEST = 2
"""Jobs that ran out; a single one may have been an accident."""
OFTEN = 0.5
"""Share of such jobs among those that count, needed to advise more."""
CERTAIN = 10
"""If this many ran out with this request or more, and none completed with it or less, the next will run out."""
SELDOM = 0.1
"""The largest share that may have run out with a request for it to be advised."""
MORE = 2.0
"""If none completed, advise this many times the largest request that was too small."""
MARGIN = 1.2
"""Margin above the largest use of completed jobs."""
MOST_GROUPS = 3000
MOST_REQUESTS = 16
"""Different requests kept per kind, the most frequent."""

_KINDS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "script": (("script",), "with this script"),
    "name": (("user", "name"), "of this user with this name"),
    "executable": (("user", "executable"), "of this user with this executable"),
    "size": (("user", "req_cpus"), "of this user with this number of CPUs"),
}
"""What makes jobs of one kind, the closest first; size alone only if a log does not name what was run."""
READ = ("script", "user", "name", "executable", "req_cpus", "req_memory", "time_limit")
"""The fields of a job by which shortages are found."""


def nice_memory(amount: float) -> int:
    """Rounded up to what people write: whole megabytes, with at most five binary digits."""
    whole = max(int(amount), 1)
    step = max(2**20, 1 << max(whole.bit_length() - 5, 0))
    return -(-whole // step) * step


def nice_time(seconds: float) -> int:
    """Rounded up to five minutes, from two hours on to quarters of an hour, from a day on to hours."""
    step = 300 if seconds <= 7200 else 900 if seconds <= 86400 else 3600
    return -(-int(seconds) // step) * step


def shown_memory(amount: int) -> str:
    """In whole megabytes, rounded up."""
    return format_memory(-(-amount // 2**20) * 2**20)


@dataclass(frozen=True, slots=True)
class _Resource:
    used: str
    ran_out: pl.Expr
    words: str
    nice: Callable[[float], int]
    shown: Callable[[int], str]


_AT_LIMIT = pl.col("outcome").is_in([str(Outcome.FAILED), str(Outcome.CANCELLED)]) & (
    pl.col("elapsed") >= pl.col("time_limit")
)
"""Archives have no state for a job stopped at its limit."""

_RESOURCES: Mapping[str, _Resource] = {
    "req_memory": _Resource(
        "max_memory",
        pl.col("outcome") == str(Outcome.OUT_OF_MEMORY),
        "ran out of memory with {} per node",
        nice_memory,
        shown_memory,
    ),
    "time_limit": _Resource(
        "elapsed",
        (pl.col("outcome") == str(Outcome.TIMEOUT)) | _AT_LIMIT,
        "ran out of time with a limit of {}",
        nice_time,
        format_duration,
    ),
}
"""By the field that requests it."""

_Request = tuple[int, int, int, int]
"""The request, how many ran out, how many completed, and the most that these used (0: unknown)."""
_Key = tuple[str | int, ...]
_Groups = Mapping[_Key, list[_Request]]


@dataclass(frozen=True, slots=True)
class Shortage:
    """A request with which jobs of this kind run out."""

    value: int
    """What to request."""
    text: str
    certain: bool = False
    """Whether every job that counts ran out, and there are many."""


@dataclass(frozen=True, slots=True)
class Shortages:
    """By field and kind; only kinds of which a job ran out are kept."""

    requests: Mapping[str, Mapping[str, _Groups]]

    @classmethod
    def fit(cls, jobs: pl.DataFrame) -> "Shortages":
        return cls(
            {
                field: {kind: _counted(jobs, field, fields) for kind, (fields, _) in _KINDS.items()}
                for field in _RESOURCES
            }
        )

    def of(self, job: Mapping[str, Any]) -> dict[str, Shortage]:
        """The fields of a job's request at or above which jobs of its kind ran out."""
        named = any(job[name] is not None for name in ("script", "name", "executable"))
        found: dict[str, Shortage] = {}
        for field, kinds in self.requests.items():
            if job[field] == 0:  # 0 means everything available
                continue
            for kind, (fields, words) in _KINDS.items():
                requests = kinds[kind].get(tuple(job[name] for name in fields))
                if requests is None or (named and kind == "size"):
                    continue
                if short := _short(requests, job[field], _RESOURCES[field], words):
                    # jobs of one size are not of one kind: of those in SDSC-BLUE that seemed certain, 36 % failed
                    found.setdefault(field, replace(short, certain=short.certain and kind != "size"))
        return found

    def save(self, folder: Path) -> None:
        requests = {
            field: {
                kind: [[list(key), rows] for key, rows in sorted(groups.items())]
                for kind, groups in kinds.items()
            }
            for field, kinds in self.requests.items()
        }
        document = {"version": VERSION, "requests": requests}
        (folder / FILE).write_text(json.dumps(document, sort_keys=True) + "\n", "utf-8")

    @classmethod
    def load(cls, folder: Path) -> "Shortages":
        path = folder / FILE
        try:
            document = read_json(path)
            if document["version"] != VERSION:
                raise ValueError(f"it is not of version {VERSION}")
            saved = document["requests"]
            return cls(
                {field: {kind: dict(_groups(saved[field][kind])) for kind in _KINDS} for field in _RESOURCES}
            )
        except (OSError, *MALFORMED) as error:
            raise ModelError(f"{path} cannot be read: {str(error)[:200]}; train again") from None


def _short(requests: list[_Request], asked: int | None, of: _Resource, words: str) -> Shortage | None:
    """Jobs that ran out with at least this request count against it, those that completed with at most this for it."""
    largest = max(amount for amount, out, _, _ in requests if out)
    asked = asked or largest  # without a request, a job gets what others without a request got
    out, done = _counts(requests, asked)
    if out < FEWEST or out < OFTEN * (out + done):
        return None
    enough = sorted(a for a, _, completed, _ in requests if a > asked and completed and _enough(requests, a))
    used = max(most for *_, most in requests)
    advised = enough[0] if enough else of.nice(max(MORE * largest, MARGIN * used))
    got_by = (
        f"jobs that requested {of.shown(advised)} completed"
        if enough
        else "none is known to have completed with more, so the amount needed is a guess"
    )
    tried = max(amount for amount, out, _, _ in requests if out and amount >= asked)
    upto = of.shown(asked) if tried == asked else f"{of.shown(asked)} to {of.shown(tried)}"
    little = f"{done or 'none'} completed with {of.shown(asked)} or less"
    text = f"{out} earlier jobs {words} {of.words.format(upto)}, and {little}; {got_by}"
    return Shortage(advised, text, certain=out >= CERTAIN and not done)


def _counts(requests: list[_Request], asked: int) -> tuple[int, int]:
    out = sum(number for amount, number, _, _ in requests if amount >= asked)
    return out, sum(number for amount, _, number, _ in requests if amount <= asked)


def _enough(requests: list[_Request], amount: int) -> bool:
    out, done = _counts(requests, amount)
    return out <= SELDOM * (out + done)


def _counted(jobs: pl.DataFrame, field: str, fields: tuple[str, ...]) -> dict[_Key, list[_Request]]:
    of = _RESOURCES[field]
    out, done = of.ran_out.fill_null(False), pl.col("outcome") == str(Outcome.COMPLETED)
    counts = (
        jobs.filter(
            out | done,
            (pl.col(field) > 0) & (pl.col(field) < UNLIMITED),
            *(pl.col(name).is_not_null() for name in fields),
        )
        .group_by(*fields, field)
        .agg(out=out.sum(), done=done.sum(), used=pl.col(of.used).filter(done).max())
        .with_columns(lost=pl.col("out").sum().over(fields), jobs=pl.col("out") + pl.col("done"))
        .filter(pl.col("lost") > 0)
        .sort("lost", *fields, "jobs", field, descending=[True, *(False for _ in fields), True, False])
    )
    found: dict[_Key, list[_Request]] = {}
    for row in counts.iter_rows(named=True):
        key = tuple(row[name] for name in fields)
        if key not in found and len(found) == MOST_GROUPS:
            break
        requests = found.setdefault(key, [])
        if len(requests) < MOST_REQUESTS:
            requests.append((row[field], row["out"], row["done"], max(row["used"] or 0, 0)))
    return {key: requests for key, requests in found.items() if any(out for _, out, _, _ in requests)}


def _groups(saved: list[Any]) -> Iterator[tuple[_Key, list[_Request]]]:
    for key, requests in saved:
        rows = [(int(a), int(out), int(done), int(used)) for a, out, done, used in requests]
        if not any(out for _, out, _, _ in rows):
            raise ValueError("a kind of which none ran out")
        yield tuple(key), rows
