"""What Slurm hides from users (PrivateData), refreshed regularly."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from tocsin.core.errors import ClusterError
from tocsin.sources.commands import run, slurm_env
from tocsin.sources.slurm_machine import read_config

__all__ = ["PrivateData"]

_KEPT = 300.0
_UNKNOWN = frozenset({"nodes", "usage"})
"""Hidden until Slurm has answered for the first time."""


class PrivateData:
    """The words of PrivateData, read every 5 minutes; if Slurm does not answer, the last answer holds.

    Several clusters are read by their slurm.conf; what any of them hides is hidden.
    """

    def __init__(
        self,
        slurm_confs: Sequence[str] = ("",),
        *,
        run: Callable[..., bytes] = run,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._run, self._now = run, now
        self._words = dict.fromkeys(slurm_confs or ("",), _UNKNOWN)
        self._until = now()
        self._lock = threading.Lock()

    def __call__(self) -> frozenset[str]:
        with self._lock:
            if self._now() >= self._until:
                for conf in self._words:
                    with suppress(ClusterError):
                        self._words[conf] = self._ask(conf)
                self._until = self._now() + _KEPT
            return frozenset[str]().union(*self._words.values())

    def _ask(self, conf: str) -> frozenset[str]:
        text = self._run(["scontrol", "show", "config"], timeout=10, env=slurm_env(conf))
        found = read_config(text.decode("utf-8", "replace")).get("PrivateData", "")
        return frozenset(word.strip().lower() for word in found.split(",")) - {"none", ""}
