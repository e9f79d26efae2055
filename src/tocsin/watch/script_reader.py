"""Reads the scripts of jobs, each once and a few per round, since each is a question to slurmctld."""

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

__all__ = ["MOST_SCRIPTS", "ScriptReader"]

MOST_SCRIPTS = 50
"""Per round."""
MOST_SECONDS = 1.0
"""Per round: a script takes 10 to 20 ms on an idle host, up to 100 ms on a busy one."""

_SUBMIT = stages.BITS[Stage.SUBMIT]


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
        self._cluster = cluster
        self._seconds = seconds
        self._tried: set[JobKey] = set()

    def add_to(
        self, frames: Sequence[pl.DataFrame], due: pl.DataFrame, now: int
    ) -> tuple[Sequence[pl.DataFrame], pl.DataFrame]:
        """All records with references to the scripts that were read, and the verdicts that are due without waiting.

        The first of the frames is the queue's.
        """
        new = due.filter(stages.with_stage(Stage.SUBMIT))["job"].implode()
        batch = pl.col("job").is_in(new) & pl.col("interactive").ne_missing(pl.lit(True))
        asked = pl.concat(frame.filter(batch) for frame in frames)
        # First the jobs that can still be kept from starting.
        asked = asked.sort(pl.col("state").ne_missing("PENDING"), "submit", maintain_order=True)
        unread = {
            JobKey(*key): None
            for *key, script in asked.select(*KEY, "script").iter_rows()
            if not self.kept(script)
        }
        found, waiting = self.fetch(unread)
        if found:
            names = {str(key): reference for key, reference in found.items()}
            read = pl.col("job").replace_strict(names, default=pl.col("script"), return_dtype=pl.String)
            frames = [frame.with_columns(read.alias("script")) for frame in frames]
        # A job that has started, or would be late, is judged without a script; so is an array known only by its tasks.
        patient = frames[0].filter(
            pl.col("job").is_in([str(key) for key in waiting])
            & (pl.col("state") == "PENDING")
            & (pl.col("submit") + stages.LATE_SECONDS > now)
        )["job"]
        self.left = len(patient) > 0
        held = pl.col("job").is_in(patient.implode())
        due = due.with_columns(due=pl.when(held).then(pl.col("due") & ~_SUBMIT).otherwise("due"))
        return frames, due.filter(pl.col("due") != 0)

    def fetch(self, wanted: Iterable[JobKey]) -> tuple[dict[JobKey, str], set[JobKey]]:
        """The references of the scripts that were read, and the jobs left for the next rounds.

        After an error, nothing more is read in this round, and no job waits.
        """
        found: dict[JobKey, str] = {}
        waiting: set[JobKey] = set()
        deadline = self._seconds() + MOST_SECONDS
        for key in wanted:
            if key in self._tried:
                continue
            if len(found) >= self.most or (found and self._seconds() > deadline):
                waiting.add(key)
                continue
            self._tried.add(key)
            try:
                text = self._cluster.script(key)
            except NotFound:
                continue
            except ClusterError as error:
                self.problem = str(error)
                return found, set()
            self.problem = None
            if text is not None:
                found[key] = save_script(self.folder, text)
        return found, waiting

    def read(self, reference: str) -> str | None:
        """The text of a stored script; None if it is no longer there."""
        with suppress(NotFound):
            return read_script(self.folder, reference)
        return None

    def kept(self, reference: str | None) -> bool:
        """Whether the script with this reference is stored."""
        return reference is not None and (self.folder / reference).exists()

    def forget(self, present: set[JobKey]) -> None:
        """Forget all jobs but these."""
        self._tried &= present
