"""`answer`: how a job ends, according to a person who was asked."""

import time

from tocsin.app.app import App
from tocsin.app.jobs import find_jobs
from tocsin.core.errors import InputError
from tocsin.core.ids import JobKey
from tocsin.core.outcomes import Outcome
from tocsin.store.home import user_name

__all__ = ["record_answer"]


def record_answer(app: App, job: str, cluster: str | None, outcome: Outcome, note: str) -> JobKey:
    """Store the current user's answer; a later answer replaces it."""
    from tocsin.core.fields import KEY
    from tocsin.store.answers import record

    jobs = find_jobs(app, job, cluster)
    if jobs.height > 1:
        raise InputError(f"{jobs.height} jobs have the id {job}; name a key that `tocsin job {job}` lists")
    key = JobKey(**jobs.select(KEY).row(0, named=True))
    record(app.store, key, outcome, who=user_name(), at=int(time.time()), note=note)
    return key
