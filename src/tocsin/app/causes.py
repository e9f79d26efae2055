"""Why jobs failed: read their output, store the causes, and compare with earlier runs of the same program."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tocsin.app.app import App
from tocsin.core.errors import SettingsError, StoreError

if TYPE_CHECKING:
    import polars as pl

    from tocsin.causes.catalogue import Catalogue
    from tocsin.causes.job_cause import CauseFound
    from tocsin.core.verdict import Advice, Cause

__all__ = ["cause_known", "cause_of_ended", "causes_at_end", "open_catalogue", "past_causes_advice"]

FOLDER = Path("/etc/tocsin/causes.d")
_AT_ONCE = 50
"""Failed jobs per round whose output is read; `tocsin explain` reads the output of the others."""
_SECONDS_PER_ROUND = 3.0
_RUNS = 5


def open_catalogue(app: App) -> "Catalogue":
    """The shipped kinds of causes, and the site's own."""
    from tocsin.causes.catalogue import load_catalogue

    folder = Path(app.settings.causes.folder) if app.settings.causes.folder else FOLDER
    if not app.settings.causes.folder and not folder.is_dir():
        return load_catalogue()
    return load_catalogue(folder)


def cause_of_ended(app: App, job: Mapping[str, Any], key: str, script: str | None) -> "CauseFound":
    """Why an ended job failed; the cause is stored."""
    from tocsin.causes.job_cause import cause_of_job
    from tocsin.store.causes import keep_cause

    found = cause_of_job(job, script, open_catalogue(app))
    if found.cause:
        try:
            keep_cause(app.store, key, found.cause, int(time.time()))
        except StoreError as error:
            app.notify(f"note: the cause was not stored: {error}")
    return found


def cause_known(app: App, job: Mapping[str, Any], key: str) -> "tuple[bool, Cause | None]":
    """Whether the job failed, and why as far as is known without reading its output."""
    from tocsin.causes.job_cause import FAILURES, by_record
    from tocsin.store.causes import stored_cause

    if job["outcome"] not in FAILURES:
        return False, None
    try:
        return True, stored_cause(app.store, key) or by_record(job, open_catalogue(app))
    except SettingsError as error:
        app.notify(f"note: the causes of failures are not shown: {error}")
        return True, None


def causes_at_end(
    app: App, script: Callable[[str], str | None]
) -> "Callable[[pl.DataFrame], list[Cause | None]] | None":
    """For a watch: the causes of jobs that just ended, one per row; None unless the settings turn this on."""
    if not app.settings.causes.at_end:
        return None
    from tocsin.causes.job_cause import FAILURES, cause_of_job

    catalogue = open_catalogue(app)

    def find_causes(jobs: "pl.DataFrame") -> "list[Cause | None]":
        until = time.monotonic() + _SECONDS_PER_ROUND
        found: list[Cause | None] = []
        tried = 0
        for job in jobs.iter_rows(named=True):
            left = until - time.monotonic()
            if job["outcome"] not in FAILURES or tried >= _AT_ONCE or left <= 0:
                found.append(None)
                continue
            tried += 1
            text = script(job["script"]) if job["script"] else None
            found.append(cause_of_job(job, text, catalogue, seconds=left).cause)
        return found

    return find_causes


def past_causes_advice(
    app: App, job: Mapping[str, Any], *, yours: bool, skip: str | None = None
) -> "list[Advice]":
    """The cause that ended several of the last runs of this program, if there is one."""
    from tocsin.store.causes import latest_runs

    if not job["user"] or not job["name"]:
        return []
    try:
        runs = latest_runs(
            app.store,
            cluster=job["cluster"],
            user=job["user"],
            name=job["name"],
            known_by=job["submit"],
            most=_RUNS,
            skip=skip,
        )
        if not runs:  # avoids loading the catalogue, which is slow
            return []
        from tocsin.causes.past import PastRun, advice_of_runs

        past = [PastRun(run.outcome, run.cause, run.req_memory, run.time_limit) for run in runs]
        return advice_of_runs(job, past, yours=yours, catalogue=open_catalogue(app))
    except (StoreError, SettingsError) as error:
        app.notify(f"note: the causes of earlier runs are not shown: {error}")
        return []
