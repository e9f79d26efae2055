"""A Slurm cluster (port `Cluster`), read and changed by commands or through slurmrestd."""

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import polars as pl

from tocsin.core.errors import ClusterError, NotFound
from tocsin.core.ids import JobKey
from tocsin.core.intake import JobSource, Rejects, valid_batches, valid_jobs
from tocsin.core.machine import Machine
from tocsin.sources.commands import run
from tocsin.sources.slurm_machine import read_config
from tocsin.sources.squeue import QUEUE_ENV, queue_command, read_queue, separators
from tocsin.sources.squeue_requests import SqueueRequests

if TYPE_CHECKING:
    from tocsin.sources.rest import SlurmRest

__all__ = ["SlurmCluster"]


class SlurmCluster:
    """The cluster `name`. With `rest`, queue, accounting, machine, hold and release go over slurmrestd.

    Scripts are always read by command: slurmrestd has them only since 24.05.
    """

    def __init__(
        self,
        name: str,
        *,
        rest: "SlurmRest | None" = None,
        timeout: float = 60.0,
        run: Callable[..., bytes] = run,
    ) -> None:
        self.name = name
        self.rest = rest
        self.timeout = timeout
        self._command = run
        self._requests = SqueueRequests(self._run)

    def _run(self, argv: list[str], **more: dict[str, str]) -> bytes:
        return self._command(argv, timeout=self.timeout, **more)

    # --- reading ---------------------------------------------------------------------------------

    def queue(self) -> pl.DataFrame:
        """The jobs in slurmctld; invalid records are left out."""
        jobs = valid_jobs(self._queue(), Rejects())
        return jobs if self.rest else self._requests.add_to(jobs)

    def _queue(self, key: JobKey | None = None) -> pl.DataFrame:
        if self.rest:
            return self.rest.queue(key and key.job_id, cluster=self.name)
        between, after = separators()
        try:
            output = self._run(queue_command(between, after, job=key and _id(key)), env=QUEUE_ENV)
        except ClusterError as error:
            if key and "Invalid job id" in str(error):  # squeue's own words
                raise NotFound(str(error)) from None
            raise
        return read_queue(output, between, after, cluster=self.name)

    def history(self, since: int, until: int) -> JobSource:
        """Accounting as a source for an import, with its rejects and notes."""
        if self.rest:
            from tocsin.sources.rest_accounting import RestAccounting

            return RestAccounting(self.rest, since, until, cluster=self.name)
        from tocsin.sources.sacct import SacctLive

        return SacctLive(since, until, cluster=self.name)

    def accounting(self, since: int, until: int) -> Iterator[pl.DataFrame]:
        return (batch.jobs for batch in valid_batches(self.history(since, until)) if batch.jobs.height)

    def machine(self, *, user: str | None = None) -> Machine:
        """Nodes, partitions and limits; with a user and Slurm's commands, also what that user may request."""
        from tocsin.sources.slurm_machine import machine_from_rest, machine_from_scontrol

        if not self.rest:
            return machine_from_scontrol(self.name, self._run, user=user)
        at_hand = self._run if shutil.which("scontrol") else None
        return machine_from_rest(self.name, self.rest, run=at_hand, user=user)

    def script(self, key: JobKey) -> str | None:
        """From slurmctld while it has the job; afterwards from slurmdbd, if it stores scripts (job_script)."""
        with suppress(ClusterError):
            output = self._run(["scontrol", "write", "batch_script", _id(key), "-"])
            if output.strip():
                return output.decode("utf-8", "replace")
        output = self._run(["sacct", "-M", self.name, "-B", "-j", _id(key)])
        return _script_in(output.decode("utf-8", "replace"), key.job_id)

    def scripts_refused(self, user: str) -> str | None:
        """Why this user may not read the scripts of others; None if that is allowed, or cannot be found out."""
        if not shutil.which("scontrol"):
            return "they are read by Slurm's commands, which are not installed on this host"
        with suppress(ClusterError):
            config = read_config(self._run(["scontrol", "show", "config"]).decode("utf-8", "replace"))
            if user == "root" or user == config.get("SlurmUser", "").partition("(")[0]:
                return None
            asked = ["sacctmgr", "-n", "-P", "show", "user", user, "format=AdminLevel"]
            level = self._run(asked).decode("utf-8", "replace").strip()
            if level not in ("Operator", "Administrator"):
                return (
                    f"user {user} is not a Slurm Operator; an administrator can run "
                    f"`sacctmgr modify user {user} set AdminLevel=Operator`"
                )
        return None

    # --- acting ----------------------------------------------------------------------------------

    def hold(self, key: JobKey, reason: str) -> None:
        self._change(key, hold=True, reason=_one_line(reason))

    def release(self, key: JobKey) -> None:
        self._change(key, hold=False)

    def _change(self, key: JobKey, *, hold: bool, reason: str = "") -> None:
        """Hold or release, then verify: for an array with ended tasks Slurm reports failure although it worked."""
        self._must_be_pending(key)
        failure: ClusterError | None = None
        try:
            self._order(_id(key), hold=hold, reason=reason)
        except ClusterError as error:
            failure = error
        waiting = self._records_of(key).filter(pl.col("state") == "PENDING")["priority"]
        held = (waiting == 0).fill_null(False)
        if not (held.all() if hold else not held.any()):
            raise failure or ClusterError(
                f"Slurm accepted the request to {'hold' if hold else 'release'} job {_id(key)} but did not do it; "
                f"see: scontrol show job {_id(key)}"
            )
        if failure and not len(waiting):
            raise failure

    def _order(self, job: str, *, hold: bool, reason: str) -> None:
        if self.rest:
            try:
                self.rest.change(job, hold=hold, reason=reason)
            except ClusterError:
                if "_" not in job:
                    raise
                # slurmrestd of 26.05 changes whole arrays only; scontrol changes one task.
            else:
                return
        self._run(["scontrol", "hold" if hold else "release", job])
        if reason:
            with suppress(ClusterError):  # on 22.05 only administrators may set it; the hold works without
                self._run(["scontrol", "update", f"JobId={job}", f"AdminComment={reason}"])

    def _must_be_pending(self, key: JobKey) -> None:
        """By now the id may belong to another job, or to the same job after a requeue."""
        mine = self._records_of(key)
        if not mine.height:
            raise NotFound(f'job {key} is no longer in the queue of cluster "{self.name}"; was it requeued?')
        states = mine["state"].unique().to_list()
        if "PENDING" not in states:
            raise ClusterError(f"job {key} is no longer pending; it is {', '.join(map(str, states))}")

    def _records_of(self, key: JobKey) -> pl.DataFrame:
        """The queue's records of this job; for a task its own or, before it has one, its array's."""
        try:
            jobs = self._queue(key)
        except NotFound:
            raise NotFound(f'no job {key.job_id} in the queue of cluster "{self.name}"') from None
        same = jobs.filter((pl.col("job_id") == key.job_id) & (pl.col("submit") == key.submit))
        if key.task is None:
            return same
        own = same.filter(pl.col("task") == key.task)
        return own if own.height else same.filter(pl.col("task").is_null())


def _id(key: JobKey) -> str:
    return str(key.job_id) if key.task is None else f"{key.job_id}_{key.task}"


def _one_line(text: str) -> str:
    return " ".join(text.split())[:500]


def _script_in(output: str, job_id: int) -> str | None:
    """The script in `sacct -B`, which prints a title, a rule, the script and an empty line for each record.

    A plain job has one record. An array has one per task, all alike: the next title ends the first. Titles contain the
    job's id, which is unknown before submission, so a script cannot forge one.
    """
    titles = list(re.finditer(rf"^Batch Script for {job_id}([_+]\S*)?\n-{{80}}\n", output, re.MULTILINE))
    if not titles:
        return None
    end = titles[1].start() if titles[0][1] and len(titles) > 1 else len(output)
    script = output[titles[0].end() : end].removesuffix("\n")
    if script.strip() in ("", "NONE"):
        return None
    return script if script.endswith("\n") else script + "\n"  # 26.05 prints no empty line
