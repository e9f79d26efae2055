"""Jobs to put into a store."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from tocsin.core.frames import SCHEMA
from tocsin.core.intake import Batch, Rejects

SUBMIT = 1_700_000_000


def frame(*rows: dict[str, Any]) -> pl.DataFrame:
    """A frame of jobs of the cluster `lab`, with all columns."""
    plain = {"cluster": "lab", "job_id": 1, "task": None, "submit": SUBMIT}
    full = [{**dict.fromkeys(SCHEMA), **plain, **row} for row in rows]
    return pl.DataFrame(full, schema=SCHEMA, orient="row")


def many(count: int, first: int = 1) -> pl.DataFrame:
    """Ended jobs, one a minute."""
    number = pl.int_range(first, first + count, dtype=pl.Int64, eager=True)
    return (
        frame({})
        .drop("job_id", "submit", "end", "outcome", "state", "user")
        .join(
            pl.DataFrame(
                {
                    "job_id": number,
                    "submit": SUBMIT + 60 * number,
                    "end": SUBMIT + 60 * number + 30,
                    "outcome": ["completed"] * count,
                    "state": ["COMPLETED"] * count,
                    "user": pl.select(pl.format("u{}", number % 7)).to_series(),
                }
            ),
            how="cross",
        )
        .select(SCHEMA.names())
    )


@dataclass
class Log:
    """A source of `total_jobs` jobs in batches of `size`."""

    total_jobs: int
    size: int = 100
    identity: str = "log"
    total: int | None = None
    rejects: Rejects = field(default_factory=Rejects)
    notes: list[str] = field(default_factory=list)

    def batches(self, resume: int = 0) -> Iterator[Batch]:
        for position in range(resume, self.total_jobs, self.size):
            count = min(self.size, self.total_jobs - position)
            yield Batch(many(count, position + 1), read=count, position=position + count)
