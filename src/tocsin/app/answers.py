"""`answer`: how a job ends by someone who was asked about it, and the labels that training makes of such answers."""

import time
from typing import TYPE_CHECKING, Any

from tocsin.app.app import App
from tocsin.app.jobs import find_jobs
from tocsin.core.errors import InputError
from tocsin.core.ids import JobKey
from tocsin.core.outcomes import Outcome
from tocsin.store.home import user_name

if TYPE_CHECKING:
    import polars as pl

__all__ = ["record_answer", "with_answers"]


def record_answer(app: App, job: str, cluster: str | None, outcome: Outcome, note: str) -> JobKey:
    """Store the answer of the user of this process; a later answer replaces it."""
    from tocsin.core.fields import KEY
    from tocsin.store.answers import record

    jobs = find_jobs(app, job, cluster)
    if jobs.height > 1:
        raise InputError(f"{jobs.height} jobs have the id {job}; name one by its key (tocsin job {job})")
    key = JobKey(**jobs.select(KEY).row(0, named=True))
    record(app.store, key, outcome, who=user_name(), at=int(time.time()), note=note)
    return key


def with_answers(app: App, jobs: "pl.DataFrame") -> "pl.DataFrame":
    """The jobs with the answered outcomes as theirs, known since the answer."""
    import polars as pl

    from tocsin.core.frames import SCHEMA, key_text
    from tocsin.store.answers import answers

    given = [(job, str(outcome), at) for job, (outcome, at) in answers(app.store).items()]
    if not given:
        return jobs
    schema: dict[str, Any] = {"job": pl.String, "answer": SCHEMA["outcome"], "answered": SCHEMA["known_at"]}
    answered = pl.DataFrame(given, schema=schema, orient="row")
    return (
        jobs.with_columns(key_text())
        .join(answered, on="job", how="left", maintain_order="left")
        .with_columns(outcome=pl.coalesce("answer", "outcome"), known_at=pl.coalesce("answered", "known_at"))
        .select(jobs.columns)
    )
