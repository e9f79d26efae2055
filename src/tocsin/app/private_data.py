"""What Slurm hides from users (PrivateData), read now and then."""

import threading
import time
from collections.abc import Callable

from tocsin.core.errors import ClusterError
from tocsin.sources.commands import run
from tocsin.sources.slurm_machine import read_config

__all__ = ["PrivateData"]

_KEPT = 300.0
_UNKNOWN = frozenset({"nodes", "usage"})
"""Hidden while Slurm cannot be asked for the first time."""


class PrivateData:
    """The words of PrivateData, asked for every 5 minutes; the last answer holds while Slurm gives none."""

    def __init__(self, *, run: Callable[..., bytes] = run, now: Callable[[], float] = time.monotonic) -> None:
        self._run, self._now = run, now
        self._words = _UNKNOWN
        self._until = now()
        self._lock = threading.Lock()

    def __call__(self) -> frozenset[str]:
        with self._lock:
            if self._now() >= self._until:
                try:
                    text = self._run(["scontrol", "show", "config"], timeout=10).decode("utf-8", "replace")
                    found = read_config(text).get("PrivateData", "")
                    self._words = frozenset(word.strip().lower() for word in found.split(",")) - {"none", ""}
                except ClusterError:
                    pass
                self._until = self._now() + _KEPT
            return self._words
