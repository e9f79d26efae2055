"""The heartbeat of `watch`, for `doctor`: when it last read its cluster and when it will again."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from urllib.parse import quote

__all__ = ["Heartbeat", "beating", "read_heartbeats", "traces_of", "watch_lock"]

_PREFIX, _SUFFIX = "watch-", ".json"
_TRACES = " (traces)"
_SHORTEST = 1.0
"""Minimum seconds between two writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    cluster: str
    last: float | None = None
    """When the cluster was last read."""
    due: float = 0
    """When it should be read again."""
    problem: str = ""
    """Why it could not be read since then."""
    ended: bool = False
    """The process was stopped, not killed."""

    @property
    def command(self) -> str:
        """The command that restarts it."""
        if self.cluster == "demo":
            return "tocsin watch --demo"
        cluster = self.cluster.removesuffix(_TRACES)
        return f"tocsin {'watch' if cluster == self.cluster else 'traces watch'} -M {cluster}"

    @classmethod
    def fresh(cls, folder: Path, cluster: str) -> "Heartbeat":
        """The heartbeat of a new process, with the time of an earlier one's last reading."""
        before = [beat.last for beat in read_heartbeats(folder) if beat.cluster == cluster]
        return cls(cluster=cluster, last=before[0] if before else None, due=time.time())

    def next(self, pause: float, problem: str | None) -> "Heartbeat":
        """The heartbeat after an attempt that just ended."""
        now = time.time()
        return replace(
            self, last=self.last if problem else now, due=now + pause, problem=problem or "", ended=False
        )

    def write(self, folder: Path, before: "Heartbeat | None" = None) -> "Heartbeat":
        """Returns what the file holds now: in quick succession, not every heartbeat is written."""
        if (
            before
            and self.due - before.due < _SHORTEST
            and (self.problem, self.ended) == (before.problem, before.ended)
        ):
            return before
        path = folder / f"{_PREFIX}{quote(self.cluster, safe='')}{_SUFFIX}"
        partial = path.with_suffix(".new")
        with suppress(OSError):  # a full disk must not stop the watch; doctor will report the old heartbeat
            partial.write_text(json.dumps(asdict(self)), "utf-8")
            partial.replace(path)
        return self


def read_heartbeats(folder: Path) -> Iterator[Heartbeat]:
    for path in sorted(folder.glob(f"{_PREFIX}*{_SUFFIX}")):
        with suppress(OSError, ValueError, TypeError):  # not written by us
            yield Heartbeat(**json.loads(path.read_text("utf-8")))


def traces_of(cluster: str) -> str:
    """The name of the heartbeat and lock that the one `traces watch` of a cluster holds."""
    return f"{cluster}{_TRACES}"


def watch_lock(cluster: str) -> str:
    """The name of the lock that the one `watch` of a cluster holds."""
    return f"watch-{cluster}"


@contextmanager
def beating(folder: Path, cluster: str) -> Iterator[Callable[[float, str | None], None]]:
    """Returns a function to call before each pause; the last heartbeat reports that the process has ended."""
    beat = written = Heartbeat.fresh(folder, cluster).write(folder)

    def waiting(pause: float, problem: str | None) -> None:
        nonlocal beat, written
        beat = beat.next(pause, problem)
        written = beat.write(folder, written)

    try:
        yield waiting
    finally:
        replace(beat, ended=True).write(folder)
