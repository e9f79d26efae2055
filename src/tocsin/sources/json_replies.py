"""Replies of Slurm in JSON: version, errors, warnings, and jobs as frames."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from tocsin.core.errors import ClusterError, NotFound, TocsinError
from tocsin.core.fields import KEY
from tocsin.core.frames import SCHEMA, outcome_from_state
from tocsin.core.intake import Rejects
from tocsin.sources.json_values import member
from tocsin.sources.records import BACKWARDS, NO_CLUSTER, NO_ID, NO_NUMBER, NO_STATE, NO_SUBMIT, RECORD
from tocsin.sources.rest_versions import ADAPTERS, NEWEST, V36, adapter_for

__all__ = [
    "INVALID_JOB_ID",
    "NO_RESULTS",
    "adapter_of",
    "adapter_of_record",
    "error_in",
    "error_numbers",
    "jobs_frame",
    "latest",
    "notes_on_version",
    "version_of",
    "warning_texts",
]

NOT_A_RECORD = "not a JSON object"
INVALID_JOB_ID = 2017
NO_RESULTS = 9003  # 22.05 reports an empty result as an error

Reader = Callable[[Mapping[str, Any]], dict[str, Any]]

_ADDRESS = re.compile(r"\(?0x[0-9a-f]{6,16}\)?")
_NOTHING = "found nothing"
_VERSION = re.compile(r"v\d{1,3}\.\d{1,3}\.\d{1,5}")


def version_of(meta: Any) -> str | None:
    """`meta.plugin.data_parser` (`data_parser/v0.0.42`), or before 23.02 `type` (`openapi/dbv0.0.38`)."""
    plugin = meta.get("plugin") if isinstance(meta, dict) else None
    for name in ("data_parser", "type"):
        found = _VERSION.search(str(plugin.get(name))) if isinstance(plugin, dict) else None
        if found:
            return found[0]
    return None


def adapter_of(version: str | None) -> V36:
    return adapter_for(version) if version else ADAPTERS[NEWEST]


def adapter_of_record(record: Any) -> V36:
    """By the shape of a job, for replies since 24.11, in which the version follows the jobs."""
    found = record if isinstance(record, dict) else {}
    state = found.get("job_state") or member(found, "state").get("current")
    if isinstance(state, str):
        return ADAPTERS["v0.0.38"]
    return ADAPTERS["v0.0.45" if found.keys() & {"sluid", "container_type"} else "v0.0.44"]


def notes_on_version(version: str | None) -> list[str]:
    """A warning if the version was never tested."""
    if version is None:
        return ["the reply has no version; it is read as " + NEWEST]
    if version in ADAPTERS:
        return []
    return [
        f"tocsin was never tested with {version} of Slurm's JSON; it is read as {adapter_for(version).version}"
    ]


def error_in(errors: Any) -> TocsinError | None:
    """The list of errors as one error, NotFound for an unknown job; None if it is empty or only reports an empty result."""
    errors_found = [error for error in _entries(errors) if _number(error) != NO_RESULTS]
    if not errors_found:
        return None
    more = f" (and {len(errors_found) - 1} more)" if len(errors_found) > 1 else ""
    kind = NotFound if INVALID_JOB_ID in error_numbers(errors_found) else ClusterError
    return kind(f"Slurm reports: {_sentence(errors_found[0])}{more}")


def error_numbers(errors: Any) -> set[int]:
    return {number for error in _entries(errors) if isinstance(number := _number(error), int)}


def warning_texts(warnings: Any) -> list[str]:
    """Warnings as notes; an empty result is none.

    Without addresses in memory, which would make each a new one.
    """
    texts = (_ADDRESS.sub("", _sentence(warning)) for warning in _entries(warnings))
    return list(dict.fromkeys(f"Slurm warns: {text}" for text in texts if not text.endswith(_NOTHING)))[:20]


def _entries(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value in (None, {}, "") else [value]


def _number(error: Any) -> Any:
    return error.get("error_number", error.get("errno")) if isinstance(error, dict) else None


def _sentence(entry: Any) -> str:
    if not isinstance(entry, dict):
        return str(entry)[:300]
    words = [str(entry[name]) for name in ("description", "error") if entry.get(name)]
    number = _number(entry)
    text = ": ".join(dict.fromkeys(words)) or "no reason given"
    return f"{text[:300]} (error {number})" if number else text[:300]


def jobs_frame(
    records: Sequence[Any],
    read: Reader,
    *,
    first: int,
    rejects: Rejects,
    source: str,
    cluster: str | None = None,
    final: bool = True,
) -> pl.DataFrame:
    """Jobs of the valid records, with their number (starting at `first`) in the column RECORD.

    `final`: the request is the last one, not the first one seen.
    """
    rows: list[dict[str, Any]] = []
    bad: dict[str, list[int]] = {}
    for number, record in enumerate(records, first):
        if not isinstance(record, dict):
            bad.setdefault(NOT_A_RECORD, []).append(number)
            continue
        try:
            row = read(record)
        except (ValueError, OverflowError):
            bad.setdefault(NO_NUMBER, []).append(number)
            continue
        if not row["cluster"]:
            row["cluster"] = cluster
        reason = _fault(row)
        if reason:
            bad.setdefault(reason, []).append(number)
            continue
        row[RECORD] = number
        rows.append(row)
    for reason, numbers in bad.items():
        rejects.add(reason, numbers)
    jobs = pl.DataFrame({name: [row.get(name) for row in rows] for name in _TYPES}, schema=_TYPES)
    state = pl.col("state")
    return jobs.with_columns(
        pl.when(state.is_not_null()).then(outcome_from_state(state)).alias("outcome"),
        pl.lit(source).alias("source"),
        pl.lit(final).alias("request_final"),
    )


def latest(jobs: pl.DataFrame) -> pl.DataFrame:
    """One row per job: the last that has ended, or else the last."""
    ended = jobs.sort(pl.col("outcome").is_not_null(), maintain_order=True)
    return ended.unique(KEY, keep="last", maintain_order=True).sort(RECORD)


_TYPES = {**SCHEMA, RECORD: pl.Int64()}


def _fault(row: dict[str, Any]) -> str | None:
    if row["job_id"] is None:
        return NO_ID
    submit, start, end = row["submit"], row["start"], row["end"]
    if submit is None:
        return NO_SUBMIT
    if row["cluster"] is None:
        return NO_CLUSTER
    if row["state"] is None:
        return NO_STATE
    if (end is not None and (end < submit or (start is not None and end < start))) or (
        start and start < submit
    ):
        return BACKWARDS
    return None
