"""The store's jobs by their ids and keys, as a person writes them."""

import re
from typing import TYPE_CHECKING

from tocsin.app.app import App
from tocsin.core.errors import InputError, NotFound, UnitError
from tocsin.core.ids import JobKey, array_size, array_tasks, parse_key, parse_slurm_id

if TYPE_CHECKING:
    import polars as pl

__all__ = ["find_jobs", "parse_ids"]

MOST_TASKS = 1000


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


def parse_ids(text: str | None) -> list[tuple[int, int | None]]:
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
