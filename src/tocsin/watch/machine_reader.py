"""Keeps the nodes, partitions and limits of the cluster up to date."""

import time
from collections.abc import Callable
from math import inf

from tocsin.core.errors import ClusterError
from tocsin.core.ports import Cluster
from tocsin.history.ledger import Ledger
from tocsin.watch.accounting import COST_SHARE

__all__ = ["MachineReader"]

EVERY = 60
BEFORE_ALARMS = 10
"""Seconds after which they are read again before an alarm: someone may just have added the partition."""


class MachineReader:
    """Hands the machine to the ledger. A large cluster is read more rarely, by the time that a reading takes."""

    def __init__(
        self, cluster: Cluster, ledger: Ledger, *, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._cluster, self._ledger, self._seconds = cluster, ledger, seconds
        self._at, self._now = -inf, 0
        self._took = 0.0
        self.problem: str | None = None
        """Why the last reading failed; the one before it is used."""

    def read(self, now: int) -> None:
        """Read the machine if it is due. Raises ClusterError if it was never read: a verdict without it could not be given
        again."""
        self._now = now
        if self._ledger.machine is None or self._older_than(EVERY, 5 * COST_SHARE):
            self._read()

    def read_before_alarms(self) -> bool:
        """Whether it has changed since it was read."""
        before = self._ledger.machine
        if self._older_than(BEFORE_ALARMS, COST_SHARE):
            self._read()
        return self._ledger.machine is not before

    def _older_than(self, least: int, share: int) -> bool:
        return not 0 <= self._now - self._at < max(least, share * self._took)

    def _read(self) -> None:
        self.problem = None
        began = self._seconds()
        try:
            found = self._cluster.machine()
        except ClusterError as error:
            if self._ledger.machine is None:
                raise
            self.problem = str(error)
        else:
            if found != self._ledger.machine:  # the same one is not sent to other processes again
                self._ledger.machine = found
        self._at, self._took = self._now, self._seconds() - began
