"""What each job in the queue requested, from `squeue --json`.

squeue's text gives the request of pending jobs only: after the start its columns show the allocation, and it never
shows excluded nodes. Since 26.05, it reports for every job that it shares no node, whether whole nodes are wanted or
not. The JSON has all three, from the same request to slurmctld, but is ten times as long: it is read only when the
queue has a job whose request is not known yet.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import polars as pl

from tocsin.core.errors import ClusterError, SourceError
from tocsin.core.fields import KEY
from tocsin.core.frames import SCHEMA
from tocsin.core.intake import Rejects
from tocsin.sources.json_replies import jobs_frame, latest
from tocsin.sources.json_values import number
from tocsin.sources.sacct_json import JobsReply

__all__ = ["SqueueRequests"]

_COLUMNS = (
    "req_nodes",
    "req_cpus",
    "req_tasks",
    "cpus_per_task",
    "tasks_per_node",
    "req_memory",
    "req_gpus",
    "req_tres",
    "exclude_nodes",
    "exclusive",
)
_FOUND = "_found"  # whether the JSON has the job
_OPTIONS = ["-a", "-t", "all"]
_WITH_EXCLUSIVE = "--json=v0.0.44"  # its successor does not report whole nodes


class SqueueRequests:
    """Requests of the jobs in the queue, cached while they are there."""

    def __init__(self, run: Callable[[list[str]], bytes]) -> None:
        self._run = run
        self._json = "--json"
        schema = {name: SCHEMA[name] for name in (*KEY, *_COLUMNS)}
        self._known = pl.DataFrame(schema={**schema, _FOUND: pl.Boolean()})

    def add_to(self, jobs: pl.DataFrame) -> pl.DataFrame:
        """The jobs with their requests; unchanged if this squeue has no JSON."""
        new = jobs.join(self._known, on=KEY, how="anti", nulls_equal=True)
        self._known = self._known.join(jobs, on=KEY, how="semi", nulls_equal=True)
        if new.height:
            with suppress(ClusterError, SourceError):
                found = self._read(str(new["cluster"][0]), {*new["job_id"], *new["raw_id"]})
                read = new.select(KEY).join(found, on=KEY, how="left", nulls_equal=True)
                self._known = pl.concat([self._known, read])
        given = jobs.join(
            self._known, on=KEY, how="left", nulls_equal=True, suffix="_", maintain_order="left"
        )
        return given.with_columns(
            pl.when(_FOUND).then(f"{name}_").otherwise(name).alias(name) for name in _COLUMNS
        ).select(jobs.columns)

    def _read(self, cluster: str, ids: set[int | None]) -> pl.DataFrame:
        """The requests of the jobs with these ids; 22.05 prints all jobs, whichever are requested."""
        reply = JobsReply(iter([self._run(["squeue", self._json, *_OPTIONS])]))
        frames = [pl.DataFrame(schema=self._known.schema)]
        for block in reply.blocks():
            adapter = reply.adapter(block)
            if not adapter.reports_exclusive and self._json != _WITH_EXCLUSIVE:
                self._json = _WITH_EXCLUSIVE
                return self._read(cluster, ids)
            block = [job for job in block if _id(job) in ids]
            jobs = jobs_frame(
                block, adapter.queue_job, first=1, rejects=Rejects(), source="squeue", cluster=cluster
            )
            frames.append(latest(jobs).select(*KEY, *_COLUMNS, pl.lit(True).alias(_FOUND)))
        return pl.concat(frames).unique(KEY, keep="last")


def _id(job: Any) -> int | None:
    """Its id; -1 if it is not a record."""
    with suppress(ValueError, OverflowError):
        return number(job.get("job_id")) if isinstance(job, dict) else -1
    return -1
