"""`jobs` and `job`: the store's jobs, filtered as sacct filters them, or named by ids and keys."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from tocsin.app.app import App
from tocsin.app.clusters import require_cluster
from tocsin.app.times import parse_time
from tocsin.core.errors import InputError, NotFound, UnitError
from tocsin.core.ids import JobKey, array_size, array_tasks, parse_key, parse_slurm_id
from tocsin.core.outcomes import SHORT_STATES, STATES
from tocsin.core.stages import Stage

if TYPE_CHECKING:
    import polars as pl

    from tocsin.core.verdict import Verdict
    from tocsin.store.jobs import Filter

__all__ = [
    "NEWEST",
    "JobWithVerdicts",
    "JobsRequest",
    "find_jobs",
    "find_many",
    "list_jobs",
    "page_of_jobs",
    "show_job",
]

MOST_TASKS = 1000
NEWEST = 100
"""Jobs listed by default, when no time, id or limit is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsRequest:
    """Filters as in sacct; an empty one matches every job."""

    ids: str | None = None
    users: Sequence[str] = ()
    accounts: Sequence[str] = ()
    clusters: Sequence[str] = ()
    partitions: Sequence[str] = ()
    states: Sequence[str] = ()
    names: Sequence[str] = ()
    domains: Sequence[str] = ()
    starttime: str | None = None
    endtime: str | None = None
    limit: int | None = None
    """The newest jobs only; 0 is all."""

    @property
    def cluster(self) -> str | None:
        """The cluster, if there is only one, for its time zone."""
        return self.clusters[0] if len(self.clusters) == 1 else None

    @property
    def newest(self) -> int:
        """How many of the newest jobs are wanted; 0 is all."""
        if self.limit is not None:
            return self.limit
        return 0 if self.ids or self.starttime or self.endtime else NEWEST


class JobWithVerdicts(NamedTuple):
    key: JobKey
    row: dict[str, Any]
    verdicts: "list[Verdict]"


def list_jobs(app: App, request: JobsRequest, fields: Sequence[str] | None = None) -> "pl.DataFrame":
    """The matching jobs, oldest first, with these fields or all."""
    from tocsin.store.jobs import load

    most = request.newest
    wanted = replace(_filter(app, request), order="-submit" if most else "submit", limit=most or None)
    frame = load(app.store, wanted, None if fields is None else list(fields))
    if frame.is_empty():
        _require_clusters(app, request)
    return frame.reverse() if most else frame


def page_of_jobs(
    app: App, request: JobsRequest, *, past: JobKey | None = None, size: int = NEWEST
) -> "pl.DataFrame":
    """The matching jobs, newest first: at most `size` of those that come after the job `past`."""
    from tocsin.store.jobs import load

    after = None if past is None else (past.submit, past.job_id, past.task, past.cluster)
    page = load(app.store, replace(_filter(app, request), order="-submit", limit=size, past=after))
    if page.is_empty():
        _require_clusters(app, request)
    return page


def _require_clusters(app: App, request: JobsRequest) -> None:
    """An error for a mistyped cluster, which has no jobs."""
    for cluster in request.clusters:
        require_cluster(app, cluster)


def _filter(app: App, request: JobsRequest) -> "Filter":
    from tocsin.store.jobs import Filter

    zone, now = app.zone(request.cluster), time.time()
    return Filter(
        clusters=list(request.clusters),
        ids=_ids(request.ids),
        users=list(request.users),
        accounts=list(request.accounts),
        partitions=list(request.partitions),
        states=[_state(state) for state in request.states],
        names=list(request.names),
        domains=list(request.domains),
        since=parse_time(request.starttime, zone, now) if request.starttime else None,
        until=parse_time(request.endtime, zone, now) if request.endtime else None,
    )


def show_job(app: App, which: str, cluster: str | None, *, owner: str | None = None) -> list[JobWithVerdicts]:
    """Every submission and task that an id or a key names, each with its verdicts; with `owner`, those of this user.

    A task shown without its array has the verdict that the array got when it was submitted.
    """
    from tocsin.store.verdicts import of_jobs

    rows = find_jobs(app, which, cluster).to_dicts()
    rows = rows if owner is None else [row for row in rows if row["user"] == owner]
    keys = [JobKey(row["cluster"], row["job_id"], row["task"], row["submit"]) for row in rows]
    arrays = {key: key._replace(task=None) for key in keys if key.task is not None}
    inherited = {key: array for key, array in arrays.items() if array not in keys}
    verdicts = of_jobs(app.store, map(str, {*keys, *inherited.values()}))
    found = []
    for key, row in zip(keys, rows, strict=True):
        own = verdicts.get(str(key), [])
        if key in inherited and not any(verdict.stage is Stage.SUBMIT for verdict in own):
            of_array = verdicts.get(str(inherited[key]), [])
            own = [verdict for verdict in of_array if verdict.stage is Stage.SUBMIT] + own
        found.append(JobWithVerdicts(key, row, own))
    return found


def find_jobs(app: App, which: str, cluster: str | None) -> "pl.DataFrame":
    """The jobs that an id or a key names, all of one cluster."""
    import polars as pl

    from tocsin.store.jobs import Filter, load

    key, (job_id, task) = _which(which)
    wanted = Filter(
        clusters=[cluster] if cluster else [key.cluster] if key else [], ids=[(job_id, task)], arrays=True
    )
    frame = load(app.store, wanted)
    if key:
        frame = frame.filter(pl.col("submit") == key.submit, pl.col("task").eq_missing(key.task))
    if frame.is_empty():
        if cluster:
            require_cluster(app, cluster)
        where = f' in cluster "{cluster}"' if cluster else ""
        raise NotFound(
            f"no job {which}{where} in the store; was it imported? `tocsin jobs` lists what is there"
        )
    clusters = sorted(frame["cluster"].unique())
    if len(clusters) > 1:
        raise InputError(
            f"{len(clusters)} clusters know job {which}: {', '.join(clusters)}; name one with -M"
        )
    return frame


def find_many(app: App, names: Sequence[str], cluster: str | None) -> "tuple[pl.DataFrame, list[str]]":
    """The jobs with these ids or keys, read at once and in order, and the names that `find_jobs` must resolve."""
    from tocsin.core.fields import KEY
    from tocsin.store.jobs import Filter, load

    asked = [(name, *_which(name)) for name in names]
    wanted = Filter(
        clusters=[cluster] if cluster else [], ids=list({found: None for _, _, found in asked}), arrays=True
    )
    stored = load(app.store, wanted)
    by_id: dict[int, list[tuple[int, JobKey]]] = {}
    for row, values in enumerate(stored.select(KEY).rows()):
        stored_key = JobKey(**dict(zip(KEY, values, strict=True)))
        by_id.setdefault(stored_key.job_id, []).append((row, stored_key))
    rows: list[int] = []
    unclear = []
    for name, key, (job_id, task) in asked:
        same = [
            (row, each)
            for row, each in by_id.get(job_id, ())
            if (each == key if key else task is None or each.task == task)
        ]
        if len({each.cluster for _, each in same}) == 1:
            rows += [row for row, _ in same]
        else:
            unclear.append(name)
    return stored[rows], unclear


def _state(word: str) -> str:
    """The full name of `F`, `TO` or `cancelled`."""
    name = SHORT_STATES.get(word.upper(), word.upper())
    if name not in STATES:
        raise InputError(f'"{word}" is not a job state; the states are {", ".join(STATES)}')
    return name


def _ids(text: str | None) -> list[tuple[int, int | None]]:
    """Every job that `-j` names: `17`, `17_4`, `17_[1-3,8]`."""
    if text is None:
        return []
    named = re.findall(r"[^,\[]+(?:\[[^\]]*\])?[^,]*", text)
    if not named:
        raise InputError("-j names no job; write -j 17 or -j 17_4,18")
    return [found for word in named for found in _tasks(word.strip())]


def _tasks(word: str) -> list[tuple[int, int | None]]:
    found = parse_slurm_id(word)
    if found.array is None:
        return [_id(word)]
    if array_size(found.array) > MOST_TASKS:
        raise InputError(f'"{word}" names more than {MOST_TASKS} tasks; name the array, or fewer of them')
    return [(found.job_id, task) for task in array_tasks(found.array)]


def _id(text: str) -> tuple[int, int | None]:
    found = parse_slurm_id(text)
    if found.het_offset is not None:
        return found.job_id + found.het_offset, None  # components have consecutive ids of their own
    return found.job_id, found.task


def _which(text: str) -> tuple[JobKey | None, tuple[int, int | None]]:
    if "@" not in text:
        return None, _id(text)
    try:
        key = parse_key(text)
    except UnitError as error:
        raise InputError(str(error)) from error
    return key, (key.job_id, key.task)
