"""Jobs of two weeks whose outcomes are known, and verdicts on them by a model that knows the outcome with some skill."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.kits.job_frames import SUBMIT, frame
from tocsin.core.decision import Decision
from tocsin.core.outcomes import Target
from tocsin.core.stages import Stage
from tocsin.core.verdict import Failure, Level, Verdict
from tocsin.store.database import Store
from tocsin.store.decisions import record
from tocsin.store.jobs import upsert

DAY = 86_400
THRESHOLD = 0.7
JOBS = 1200
NOW = SUBMIT + 20 * DAY


def jobs(
    count: int = JOBS, change: Callable[[int, dict[str, Any]], dict[str, Any]] = lambda _, row: row
) -> list[dict[str, Any]]:
    """One in four fails; six users, a job every 800 seconds."""
    plain = [
        {
            "job_id": n,
            "user": f"u{n % 6}",
            "submit": SUBMIT + n * 800,
            "start": SUBMIT + n * 800 + 10,
            "end": SUBMIT + n * 800 + 400,
            "known_at": SUBMIT + n * 800 + 410,
            "outcome": "failed" if n % 4 == 0 else "completed",
        }
        for n in range(count)
    ]
    return [change(n, row) for n, row in enumerate(plain)]


def key(row: dict[str, Any]) -> str:
    return f"lab:{row['job_id']}@{row['submit']}"


def guesses(rows: Sequence[dict[str, Any]], skill: float, seed: int = 1) -> list[float]:
    noise = np.random.default_rng(seed).random(len(rows))
    return [
        float(np.clip(skill * (row["outcome"] == "failed") + (1 - skill) * each, 0, 1))
        for row, each in zip(rows, noise, strict=True)
    ]


def give(store: Store, rows: Sequence[dict[str, Any]], p: Sequence[float], version: str = "1") -> None:
    """The jobs with a verdict each at submission."""
    upsert(store, frame(*rows))
    verdicts = [
        Verdict(
            job=key(row),
            stage=Stage.SUBMIT,
            at=row["submit"],
            known_until=row["submit"],
            level=Level.OK,
            failure=Failure(
                probability=each, threshold=THRESHOLD, will_fail=each >= THRESHOLD, target=Target.FAILED
            ),
            models={"failure": version},
        )
        for row, each in zip(rows, p, strict=True)
    ]
    record(store, Decision(verdicts=verdicts))
