"""The demo's accounting as a source to import from: its ended jobs day by day, then those that have not ended."""

from collections.abc import Iterator

from tocsin.core.frames import from_jobs
from tocsin.core.intake import Batch, Rejects
from tocsin.demo.jobs import Record
from tocsin.demo.simulation import Simulation
from tocsin.demo.view import as_job

__all__ = ["DemoSource"]

DAY = 86400


class DemoSource:
    """What is known at `until`; a position is an instant. The simulation runs as batches are read."""

    def __init__(self, simulation: Simulation, since: int, until: int) -> None:
        self.identity = f"demo seed={simulation.seed} start={simulation.start} since={since} until={until}"
        self.total: int | None = until - since
        self.rejects = Rejects()
        self.notes = [f"simulated with seed {simulation.seed}: do not use it to measure accuracy"]
        self._simulation = simulation
        self._since = since
        self._until = until

    def batches(self, resume: int = 0) -> Iterator[Batch]:
        for begin in range(self._since, self._until, DAY):
            end = min(begin + DAY, self._until)
            if end <= resume:
                continue
            self._simulation.advance(end)
            known = [record for record in self._simulation.ended if begin < (record.end or 0) <= end]
            if end == self._until:
                known += self._living()
            yield Batch(from_jobs(map(as_job, known)), len(known), end, end - self._since)

    def _living(self) -> Iterator[Record]:
        """Jobs that had not ended at the last instant, even if the clock has advanced since."""
        for record in (*self._simulation.ended, *self._simulation.alive()):
            if record.submit <= self._until and (record.end is None or record.end > self._until):
                yield record
