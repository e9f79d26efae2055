"""A past that answers for each job as of the job's own moment, whatever order the stages are judged in."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

import polars as pl

from tocsin.core.frames import key_text, reached_at
from tocsin.core.machine import Machine
from tocsin.core.stages import Stage
from tocsin.history.ledger import Ledger

__all__ = ["Recall"]


class Recall:
    """The ledger must be asked in order of time; detectors ask stage by stage. Between them stands this.

    After an outage that is what makes a late verdict honest: it is made from what was known then.
    """

    def __init__(self, ledger: Ledger, script: Callable[[str], str | None]) -> None:
        self.ledger = ledger
        self.script = script
        self._due: Mapping[Stage, pl.DataFrame] = {}
        self._told: dict[Stage, tuple[dict[str, int], pl.DataFrame]] | None = None
        """By stage the place of each job that was asked for, and what was told of it."""

    @property
    def machine(self) -> Machine | None:
        return self.ledger.machine

    def prepare(self, due: Mapping[Stage, pl.DataFrame]) -> dict[Stage, list[int]]:
        """These jobs will be asked for. Returned is, for each, the instant up to which the past is counted."""
        self._due, self._told = due, None
        front = self.ledger.known_until
        return {
            stage: jobs.select(pl.max_horizontal(reached_at(stage), front)).to_series().to_list()
            for stage, jobs in due.items()
        }

    def features(
        self, jobs: pl.DataFrame, *, stage: Stage, names: Sequence[str] | None = None
    ) -> pl.DataFrame:
        if self._told is None:
            self._told = self._in_order()
        places, told = self._told.get(stage, ({}, None))
        rows = [places.get(key, -1) for key in jobs.select(key_text()).to_series()]
        if told is None or -1 in rows:
            return self.ledger.features(jobs, stage=stage, names=names)
        return (told if names is None else told.select(names))[rows]

    def node_outcomes(self, asked: pl.DataFrame) -> pl.DataFrame:
        if self._told is None:  # what is due is asked for first: the ledger goes forward only
            self._told = self._in_order()
        return self.ledger.node_outcomes(asked)

    def windows(self, jobs: pl.DataFrame, until: int) -> pl.DataFrame:
        return self.ledger.windows(jobs, until)

    def _in_order(self) -> dict[Stage, tuple[dict[str, int], pl.DataFrame]]:
        """Ask the ledger for all that is due, run by run of the same stage in order of time."""
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
        return {
            stage: (
                {key: row for row, key in enumerate(jobs[asked[stage]].select(key_text()).to_series())},
                pl.concat(found[stage]),
            )
            for stage, jobs in self._due.items()
            if found[stage]
        }
