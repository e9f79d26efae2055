"""Reads the scripts of jobs, each once and a few per round, since each is a question to Slurm."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import polars as pl

from tocsin.core.errors import ClusterError, NotFound
from tocsin.core.fields import KEY
from tocsin.core.ids import JobKey
from tocsin.core.ports import Cluster
from tocsin.core.stages import Stage
from tocsin.store.scriptfiles import read_script, save_script
from tocsin.watch import stages

__all__ = ["GIVE_UP", "MOST_SCRIPTS", "MOST_UNREAD", "ScriptReader"]

MOST_SCRIPTS = 50
"""Per round."""
MOST_SECONDS = 1.0
"""Per round: a script takes 10 to 20 ms on an idle host, up to 100 ms on a busy one."""
WAIT_SECONDS = 60
"""For how long the verdicts on a job wait for its script, from when the job was first seen."""
RETRY_SECONDS = 60
"""Pause after an error before the scripts that verdicts did not wait for are tried again."""
GIVE_UP = 86400
"""Seconds after which a script that could not be read is no longer tried."""
MOST_UNREAD = 10_000
"""Jobs whose scripts are still to be read, at most."""

_END = stages.BITS[Stage.END]


class ScriptReader:
    """Reads the scripts of jobs from the cluster into the folder of stored scripts."""

    def __init__(
        self,
        cluster: Cluster,
        folder: Path,
        most: int = MOST_SCRIPTS,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self.folder = folder
        self.most = most
        self.problem: str | None = None
        """Why the last requested script could not be read."""
        self.left = False
        """Whether jobs wait for the next round to read their scripts."""
        self.late: dict[JobKey, str] = {}
        """References of the scripts read after the verdict on the submission, until they are stored."""
        self._cluster = cluster
        self._seconds = seconds
        self._read: dict[JobKey, str | None] = {}
        """What Slurm answered: references, or None for a job without a script."""
        self._since: dict[JobKey, int] = {}
        """When each job that waits was first seen."""
        self._unread: dict[JobKey, int] = {}
        """Jobs judged without their script, which is still to be read; and since when."""
        self._failures: dict[JobKey, int] = {}
        """How often each could not be read."""
        self._retry_at = 0

    def read_later(self, jobs: Iterable[JobKey], now: int) -> None:
        """Add jobs that were judged before their script was read."""
        for key in jobs:
            if len(self._unread) < MOST_UNREAD:
                self._unread.setdefault(key, now)

    def add_to(
        self, frames: Sequence[pl.DataFrame], due: pl.DataFrame, now: int
    ) -> tuple[Sequence[pl.DataFrame], pl.DataFrame]:
        """All records with references to the scripts that were read, and the verdicts that are due without waiting.

        The first of the frames is the queue's.
        """
        new = due.filter(stages.with_stage(Stage.SUBMIT))["job"].implode()
        batch = pl.col("job").is_in(new) & pl.col("interactive").ne_missing(pl.lit(True))
        asked = pl.concat(frame.filter(batch) for frame in frames)
        wanted = {
            JobKey(*key): None
            for *key, script in asked.select(*KEY, "script").iter_rows()
            if not self.kept(script)
        }
        self._unread = {key: since for key, since in self._unread.items() if now - since < GIVE_UP}
        backlog = () if now < self._retry_at else self._unread.keys() - wanted.keys()
        unread, failed = self._fetch(self._by_urgency([*wanted, *backlog], frames[0]))
        if failed:
            self._retry_at = now + RETRY_SECONDS
        read = {key: found for key in (*wanted, *backlog) if (found := self._read.get(key)) is not None}
        self.late = {key: read[key] for key in backlog if key in read}
        if read:
            names = {str(key): reference for key, reference in read.items()}
            script = pl.col("job").replace_strict(names, default=pl.col("script"), return_dtype=pl.String)
            frames = [frame.with_columns(script.alias("script")) for frame in frames]
        unread &= wanted.keys()
        waiting = set() if failed else self._patient(unread, frames[0], due, now)
        self.left = bool(waiting)
        self.read_later(unread - waiting, now)
        return frames, due.filter(~pl.col("job").is_in([str(key) for key in waiting]))

    def _by_urgency(self, jobs: Iterable[JobKey], queue: pl.DataFrame) -> list[JobKey]:
        """First the jobs that can still be kept from starting, then those that run; of these, the oldest."""
        alive = queue.filter(pl.col("outcome").is_null())
        pending = alive["state"] == "PENDING"
        rank = dict.fromkeys(alive.filter(~pending)["job_id"], 1) | dict.fromkeys(
            alive.filter(pending)["job_id"], 0
        )
        return sorted(
            jobs,
            key=lambda key: (self._failures.get(key, 0), rank.get(key.job_id, 2), key.submit, key.job_id),
        )

    def _patient(self, unread: set[JobKey], queue: pl.DataFrame, due: pl.DataFrame, now: int) -> set[JobKey]:
        """The jobs whose verdicts wait: the queue shows them again, and they have not waited too long.

        An array known only by its tasks does not wait, nor does a job whose end is reported: both are seen once.
        """
        ended = due.filter((pl.col("due") & _END) != 0)["job"]
        again = set(queue.filter(~pl.col("job").is_in(ended.implode()))["job"])
        return {
            key
            for key in unread
            if str(key) in again and now - self._since.setdefault(key, now) < WAIT_SECONDS
        }

    def _fetch(self, wanted: Iterable[JobKey]) -> tuple[set[JobKey], bool]:
        """Read the scripts of these jobs in order; returns the jobs left for later, and whether one failed.

        After an error, nothing more is read in this round.
        """
        unread: set[JobKey] = set()
        asked, failed, deadline = 0, False, self._seconds() + MOST_SECONDS
        for key in wanted:
            if key in self._read:
                continue
            if failed or asked >= self.most or (asked and self._seconds() > deadline):
                unread.add(key)
                continue
            asked += 1
            try:
                text = self._cluster.script(key)
            except NotFound:
                text = None
            except ClusterError as error:
                self.problem, failed = str(error), True
                self._failures[key] = self._failures.get(key, 0) + 1
                unread.add(key)
                continue
            self.problem = None
            self._read[key] = None if text is None else save_script(self.folder, text)
        return unread, failed

    def read(self, reference: str) -> str | None:
        """The text of a stored script; None if it is no longer there."""
        with suppress(NotFound):
            return read_script(self.folder, reference)
        return None

    def kept(self, reference: str | None) -> bool:
        """Whether the script with this reference is stored."""
        return reference is not None and (self.folder / reference).exists()

    def forget(self, present: set[JobKey]) -> None:
        """Forget all jobs but these and those whose scripts are still to be read; what was read is stored."""
        self._unread = {key: since for key, since in self._unread.items() if key not in self._read}
        self._read = {key: found for key, found in self._read.items() if key in present}
        self._since = {key: since for key, since in self._since.items() if key in present}
        self._failures = {
            key: number for key, number in self._failures.items() if key in present or key in self._unread
        }
