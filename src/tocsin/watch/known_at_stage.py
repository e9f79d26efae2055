"""A Known that answers for each job as of that job's own moment, in whatever order the stages are judged."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

import polars as pl

from tocsin.core.fields import Part, fields_of
from tocsin.core.frames import key_text, reached_at
from tocsin.core.machine import Machine
from tocsin.core.stages import Stage
from tocsin.history.ledger import Ledger

__all__ = ["KnownAtStage"]

_REQUEST = fields_of(Part.REQUEST)


class KnownAtStage:
    """Caches answers, because the ledger must be asked in order of time, but detectors ask stage by stage.

    A late verdict, after an outage, is therefore made from what was known then.
    """

    def __init__(self, ledger: Ledger, script: Callable[[str], str | None]) -> None:
        self.ledger = ledger
        self.script = script
        self._due: Mapping[Stage, pl.DataFrame] = {}
        self._found: dict[Stage, tuple[dict[tuple[str, int], int], pl.DataFrame]] | None = None
        """For each stage, the row of each job (by key and request) in the frame of its features."""

    @property
    def machine(self) -> Machine | None:
        return self.ledger.machine

    @property
    def now(self) -> int | None:
        return self.ledger.now

    def prepare(self, due: Mapping[Stage, pl.DataFrame]) -> dict[Stage, list[int]]:
        """Announce the jobs of each stage; returns for each job the instant up to which history is counted."""
        self._due, self._found = due, None
        front = self.ledger.known_until
        return {
            stage: jobs.select(pl.max_horizontal(reached_at(stage), front)).to_series().to_list()
            for stage, jobs in due.items()
        }

    def features(
        self, jobs: pl.DataFrame, *, stage: Stage, names: Sequence[str] | None = None
    ) -> pl.DataFrame:
        places, found = self._features().get(stage, ({}, None))
        rows = [places.get(mark, -1) for mark in _marks(jobs)]
        if found is None or -1 in rows:  # not due, or another request: a question about a script
            return self.ledger.peek().features(jobs, stage=stage, names=names)
        return (found if names is None else found.select(names))[rows]

    def node_outcomes(self, asked: pl.DataFrame) -> pl.DataFrame:
        self._features()  # first, because the ledger only advances
        return self.ledger.node_outcomes(asked)

    def windows(self, jobs: pl.DataFrame, until: int) -> pl.DataFrame:
        return self.ledger.windows(jobs, until)

    def _features(self) -> dict[Stage, tuple[dict[tuple[str, int], int], pl.DataFrame]]:
        """The features of all jobs that are due, read in order of time in runs of the same stage."""
        if self._found is not None:
            return self._found
        order = sorted(
            (at, stage.order, number, stage)
            for stage, jobs in self._due.items()
            for number, at in enumerate(jobs.select(reached_at(stage)).to_series())
        )
        asked: dict[Stage, list[int]] = {stage: [] for stage in self._due}
        found: dict[Stage, list[pl.DataFrame]] = {stage: [] for stage in self._due}
        for stage, run in groupby(order, key=lambda item: item[3]):
            numbers = [number for _, _, number, _ in run]
            asked[stage] += numbers
            found[stage].append(self.ledger.features(self._due[stage][numbers], stage=stage))
        self._found = {
            stage: (
                {mark: row for row, mark in enumerate(_marks(jobs[asked[stage]]))},
                pl.concat(found[stage]),
            )
            for stage, jobs in self._due.items()
            if found[stage]
        }
        return self._found


def _marks(jobs: pl.DataFrame) -> list[tuple[str, int]]:
    """What a row of features depends on: the job and its request."""
    keys = jobs.select(key_text()).to_series()
    return list(zip(keys, jobs.select(_REQUEST).hash_rows(seed=7), strict=True))
