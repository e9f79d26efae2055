"""A Slurm cluster (port `Cluster`), read and changed by commands or through slurmrestd."""

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from tocsin.core.errors import ClusterError
from tocsin.core.ids import JobKey
from tocsin.core.intake import JobSource, Rejects, valid_batches, valid_jobs
from tocsin.core.machine import Machine
from tocsin.sources.commands import NoAnswer, run, slurm_env
from tocsin.sources.slurm_actions import SlurmActions, slurm_id
from tocsin.sources.slurm_machine import read_config
from tocsin.sources.squeue import QUEUE_ENV, QueueText, queue_command, separators
from tocsin.sources.squeue_requests import SqueueRequests
from tocsin.sources.waiting import Questions, waited

if TYPE_CHECKING:
    from tocsin.sources.rest import SlurmRest

__all__ = ["SlurmCluster"]


_PATIENCE = 10.0


class SlurmCluster(SlurmActions):
    """The cluster `name`. With `rest`, queue, accounting, machine and actions use slurmrestd.

    `slurm_conf` is the file that its commands read, if not the default one. Scripts are always read by command:
    slurmrestd has them only since 24.05.
    """

    def __init__(
        self,
        name: str,
        *,
        rest: "SlurmRest | None" = None,
        slurm_conf: str = "",
        timeout: float = 60.0,
        run: Callable[..., bytes] = run,
    ) -> None:
        self.name = name
        self.rest = rest
        self.slurm_conf = slurm_conf
        self.timeout = timeout
        self._command = run
        self._text = QueueText()
        self._requests = SqueueRequests(self._run)
        self._questions = Questions()
        self._seen = {}

    def _run(self, argv: list[str], **more: dict[str, str]) -> bytes:
        return self._run_within(self.timeout, argv, **more)

    def _run_within(self, timeout: float, argv: list[str], **more: dict[str, str]) -> bytes:
        if env := slurm_env(self.slurm_conf):
            more["env"] = env | more.get("env", {})
        return self._command(argv, timeout=timeout, **more)

    # --- reading ---------------------------------------------------------------------------------

    def waited(self) -> float:
        return waited()

    def queue(self) -> pl.DataFrame:
        """The jobs in slurmctld, without invalid records."""
        with self._questions.one():
            jobs = valid_jobs(self._queue(), Rejects())
            return jobs if self.rest else self._requests.add_to(jobs)

    def overdue(self) -> float:
        """Seconds for which slurmctld has not answered, beyond what its last answer took."""
        return self._questions.overdue()

    def _queue(self) -> pl.DataFrame:
        if self.rest:
            return self.rest.queue(cluster=self.name)
        between, after = separators()
        output = self._run(queue_command(between, after), env=QUEUE_ENV)
        return self._text.read(output, between, after, cluster=self.name)

    def history(self, since: int, until: int) -> JobSource:
        """Accounting as a source for an import, with its rejects and notes."""
        if self.rest:
            from tocsin.sources.rest_accounting import RestAccounting

            return RestAccounting(self.rest, since, until, cluster=self.name)
        from tocsin.sources.sacct import SacctLive

        return SacctLive(since, until, cluster=self.name, slurm_conf=self.slurm_conf)

    def accounting(self, since: int, until: int) -> Iterator[pl.DataFrame]:
        return (batch.jobs for batch in valid_batches(self.history(since, until)) if batch.jobs.height)

    def machine(self, *, user: str | None = None) -> Machine:
        """Nodes, partitions and limits; with a user and Slurm's commands, also what that user may request.

        A user waits for the answer, so each command has only a few seconds.
        """
        from tocsin.sources.slurm_machine import machine_from_rest, machine_from_scontrol

        run = partial(self._run_within, min(self.timeout, _PATIENCE)) if user else self._run
        with self._questions.one():
            if not self.rest:
                return machine_from_scontrol(self.name, run, user=user)
            at_hand = run if shutil.which("scontrol") else None
            return machine_from_rest(self.name, self.rest, run=at_hand, user=user)

    def script(self, key: JobKey) -> str | None:
        """From slurmctld while it has the job; afterwards from slurmdbd, if it stores scripts (job_script).

        If slurmctld did not answer, it may still have what slurmdbd has not.
        """
        unanswered: NoAnswer | None = None
        try:
            output = self._run(["scontrol", "write", "batch_script", slurm_id(key), "-"])
            if output.strip():
                return output.decode("utf-8", "replace")
        except NoAnswer as error:
            unanswered = error
        except ClusterError:
            pass
        output = self._run(["sacct", "-M", self.name, "-B", "-j", slurm_id(key)])
        script = _script_in(output.decode("utf-8", "replace"), key.job_id)
        if script is None and unanswered:
            raise unanswered
        return script

    def scripts_refused(self, user: str) -> str | None:
        """Why this user may not read the scripts of others; None if that is allowed or cannot be determined."""
        if not shutil.which("scontrol"):
            return "they are read by Slurm's commands, which are not installed on this host"
        with suppress(ClusterError):
            config = read_config(self._run(["scontrol", "show", "config"]).decode("utf-8", "replace"))
            if user == "root" or user == config.get("SlurmUser", "").partition("(")[0]:
                return None
            asked = ["sacctmgr", "-n", "-P", "show", "user", user, "format=AdminLevel"]
            level = self._run(asked).decode("utf-8", "replace").strip()
            if level not in ("Operator", "Administrator"):
                known = f"modify user {user} set" if level else f"add user {user} account=root"
                return (
                    f"user {user} is not a Slurm Operator; an administrator can run "
                    f"`sacctmgr -i {known} AdminLevel=Operator`"
                )
        return None


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
