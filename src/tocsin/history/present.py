"""A ledger as it stands, for questions from other threads than the one that moves it."""

from collections.abc import Callable, Sequence

import polars as pl

from tocsin.core.machine import Machine
from tocsin.core.stages import Stage
from tocsin.history.ledger import Ledger

__all__ = ["Present"]


class Present:
    """A Known about now. Each question is answered by a peek under the ledger's lock, and moves nothing."""

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

    def script(self, digest: str) -> str | None:
        return (self._scripts(digest) if self._scripts else None) or self.ledger.script(digest)

    def features(
        self, jobs: pl.DataFrame, *, stage: Stage, names: Sequence[str] | None = None
    ) -> pl.DataFrame:
        with self.ledger.lock:
            return self.ledger.peek().features(jobs, stage=stage, names=names)

    def node_outcomes(self, asked: pl.DataFrame) -> pl.DataFrame:
        with self.ledger.lock:
            return self.ledger.peek().node_outcomes(asked)

    def windows(self, jobs: pl.DataFrame, until: int) -> pl.DataFrame:
        return self.ledger.windows(jobs, until)
