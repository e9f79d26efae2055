"""A ledger in its current state, for questions from threads other than the one that advances it."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from tocsin.core.machine import Machine
from tocsin.core.stages import Stage
from tocsin.history.ledger import Ledger

__all__ = ["Present"]


class Present:
    """A Known about now. Each question is answered by a peek under the ledger's lock, without advancing it."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        machine: Machine | None = None,
        scripts: Callable[[str], str | None] | None = None,
    ) -> None:
        self.ledger = ledger
        self.machine = machine or ledger.machine
        self.now = ledger.now
        self._scripts = scripts
        self._peek, self._peeked_at = ledger, -1

    def script(self, digest: str) -> str | None:
        return (self._scripts(digest) if self._scripts else None) or self.ledger.script(digest)

    def features(
        self, jobs: pl.DataFrame, *, stage: Stage, names: Sequence[str] | None = None
    ) -> pl.DataFrame:
        with self.ledger.lock:
            return self._now().features(jobs, stage=stage, names=names)

    def numbers(self, jobs: pl.DataFrame, *, stage: Stage, names: Sequence[str]) -> npt.NDArray[np.float32]:
        with self.ledger.lock:
            return self._now().numbers(jobs, stage=stage, names=names)

    def node_outcomes(self, asked: pl.DataFrame) -> pl.DataFrame:
        with self.ledger.lock:
            return self._now().node_outcomes(asked)

    def _now(self) -> Ledger:
        """The same peek for all questions until the ledger changes; call it under the lock."""
        if self._peeked_at != self.ledger.changes:
            self._peek, self._peeked_at = self.ledger.peek(), self.ledger.changes
        return self._peek

    def windows(self, jobs: pl.DataFrame, until: int) -> pl.DataFrame:
        return self.ledger.windows(jobs, until)
