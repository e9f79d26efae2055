"""The contract of a detector: features → model → findings. The built-in ones are found the same way as a site's own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from tocsin.core.machine import Machine
from tocsin.core.stages import Stage
from tocsin.core.verdict import Advice, Failure, Finding, Nodes, Resources, Workload

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ENTRY_POINTS", "Budget", "Detector", "Fitted", "Known", "Parts"]

ENTRY_POINTS = "tocsin.detectors"
"""The group of entry points that detectors are registered in; the entry's object is a Detector."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What one detector says of one job; the judge joins the parts of all detectors to a Verdict."""

    findings: Sequence[Finding] = ()
    failure: Failure | None = None
    workload: Workload | None = None
    resources: Resources | None = None
    nodes: Nodes | None = None
    anomalies: Sequence[Mapping[str, Any]] = ()
    advice: Sequence[Advice] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    """What could not be said, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How long a training may search: in trials where bits must repeat, in seconds where time is short."""

    trials: int = 20
    seconds: float | None = None
    progress: Callable[[int, int], None] | None = field(default=None, repr=False, compare=False)
    """Told after each trial how many are done, and of how many."""


class Known(Protocol):
    """What was known when: handed to a detector, never looked up by it."""

    machine: Machine | None
    """Nodes, partitions and limits as they are, where the source tells them."""

    def features(
        self, jobs: "pl.DataFrame", *, stage: Stage, names: Sequence[str] | None = None
    ) -> "pl.DataFrame":
        """For each job, in order, the statistics that were known at its stage: the named ones in their order, or all."""
        ...

    def node_outcomes(self, asked: "pl.DataFrame") -> "pl.DataFrame":
        """For each row of `asked` (`at`, `node`) how the jobs on that node ended in the 7 days up to then.

        The columns are `ended`, `failed`, `expected` (failures that were to be expected of these jobs), `crashes`,
        `crashes_expected` and `nodes` (how many nodes were known in all).
        """
        ...

    def script(self, digest: str) -> str | None:
        """The text of a job's script by its SHA-256, where it was kept."""
        ...


class Fitted(Protocol):
    """A detector that has learned; the same input gives the same answer, and no input is changed."""

    def assess(self, jobs: "pl.DataFrame", past: Known, *, stage: Stage) -> list[Parts]:
        """One entry a row, in order. Only what is known at `stage` may be looked at."""
        ...

    def explain(self, job: "pl.DataFrame", past: Known, *, stage: Stage) -> Parts:
        """The same for a frame of one job, with all evidence: contributions, similar jobs, advice."""
        ...

    def save(self, folder: Path) -> None:
        """Write everything into an existing folder, in formats whose loading can never run code."""
        ...


@runtime_checkable
class Detector(Protocol):
    """A plug-in: `tocsin.detectors` names an object like this."""

    name: str
    stages: Sequence[Stage]
    learns: bool
    """Whether it must be trained before it can be heard; one of rules alone is fitted on the spot."""

    def fit(self, jobs: "pl.DataFrame", past: Known, *, stage: Stage, seed: int, budget: Budget) -> Fitted:
        """Learn from ended jobs; `past` tells what was known at each one's time."""
        ...

    def load(self, folder: Path) -> Fitted:
        """What `save` wrote."""
        ...
