"""Read the scripts of jobs, each once and a few per round: each is a question to slurmctld."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tocsin.core.errors import ClusterError, NotFound
from tocsin.core.ids import JobKey
from tocsin.core.ports import Cluster
from tocsin.store.scriptfiles import read_script, save_script

__all__ = ["MOST_SCRIPTS", "ScriptReader"]

MOST_SCRIPTS = 50
"""Per round: at 10 to 20 ms each, a second of waiting for Slurm's commands."""


class ScriptReader:
    """Reads the scripts of jobs from the cluster into the folder of kept ones."""

    def __init__(self, cluster: Cluster, folder: Path, most: int = MOST_SCRIPTS) -> None:
        self.folder = folder
        self.most = most
        self.trouble: str | None = None
        """Why the last script that was asked for could not be read."""
        self._cluster = cluster
        self._tried: set[JobKey] = set()

    def fetch(self, wanted: Iterable[JobKey]) -> tuple[dict[JobKey, str], set[JobKey]]:
        """The references of the scripts that were read, and the jobs left for the next rounds.

        After an error nothing more is read in this round, and no job waits.
        """
        found: dict[JobKey, str] = {}
        waiting: set[JobKey] = set()
        for key in wanted:
            if key in self._tried:
                continue
            if len(found) >= self.most:
                waiting.add(key)
                continue
            self._tried.add(key)
            try:
                text = self._cluster.script(key)
            except NotFound:
                continue
            except ClusterError as error:
                self.trouble = str(error)
                return found, set()
            self.trouble = None
            if text is not None:
                found[key] = save_script(self.folder, text)
        return found, waiting

    def read(self, reference: str) -> str | None:
        """The text of a kept script; None where it is not here any more."""
        with suppress(NotFound):
            return read_script(self.folder, reference)
        return None

    def kept(self, reference: str | None) -> bool:
        """Whether the script with this reference is here."""
        return reference is not None and (self.folder / reference).exists()

    def forget(self, present: set[JobKey]) -> None:
        """Forget all jobs but these."""
        self._tried &= present
