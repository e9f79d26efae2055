"""Small frames of ended jobs."""

from collections.abc import Iterable
from typing import Any

import polars as pl

from tocsin.core.fields import Job
from tocsin.core.frames import from_jobs
from tocsin.core.outcomes import Outcome

__all__ = ["DAY", "GIB", "MIB", "job", "jobs", "row"]

DAY = 86400
MIB, GIB = 2**20, 2**30
_ENDED = {"outcome": Outcome.COMPLETED, "elapsed": 600}


def job(number: int = 1, **fields: Any) -> dict[str, Any]:
    """A job that completed after ten minutes, unless `fields` say otherwise."""
    submit = fields.pop("submit", number * 1000)
    known = {"user": "ann", "name": "relax", "partition": "main", "req_cpus": 4, **_ENDED, **fields}
    start = submit + 10
    end = start + (known["elapsed"] or 0)
    return {
        "cluster": "lab", "job_id": number, "task": None, "submit": submit, "start": start, "end": end,
        "known_at": end + 60, **known,
    }  # fmt: skip


def jobs(rows: Iterable[dict[str, Any]]) -> pl.DataFrame:
    return from_jobs(Job(**row) for row in rows)


def row(number: int = 1, **fields: Any) -> dict[str, Any]:
    """The same with all fields of a job."""
    return jobs([job(number, **fields)]).row(0, named=True)
