"""The contract of a detector: evidence → model → findings. Built-in detectors are registered like a site's own."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from tocsin.core.machine import Machine
from tocsin.core.stages import Stage
from tocsin.core.verdict import Advice, Anomaly, Failure, Finding, Nodes, Resources, Workload

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ENTRY_POINTS", "Budget", "Detector", "Fitted", "Known", "Need", "Parts"]

ENTRY_POINTS = "tocsin.detectors"
"""The entry-point group of detectors; each entry names a Detector object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """One detector's answer on one job; the judge joins the parts of all detectors into a Verdict."""

    findings: Sequence[Finding] = ()
    failure: Failure | None = None
    workload: Workload | None = None
    resources: Resources | None = None
    nodes: Nodes | None = None
    anomalies: Sequence[Anomaly] = ()
    advice: Sequence[Advice] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    """Parts that could not be computed, each with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How long training may search: in trials for exact repeatability, in seconds when time is short."""

    trials: int = 20
    seconds: float | None = None
    progress: Callable[[int, int], None] | None = field(default=None, repr=False, compare=False)
    """Called after each trial with the trials done and their total."""


class Need(StrEnum):
    """Evidence that a detector reads from Known; evidence that no detector needs is not computed."""

    HISTORY = "history"
    OWN_HISTORY = "own_history"
    """Only statistics of the job's own user."""
    SCRIPTS = "scripts"
    MACHINE = "machine"
    WINDOWS = "windows"


class Known(Protocol):
    """Read-only evidence, as known at each job's moment."""

    @property
    def machine(self) -> Machine | None:
        """Nodes, partitions and limits, if the source has them."""
        ...

    def features(
        self, jobs: "pl.DataFrame", *, stage: Stage, names: Sequence[str] | None = None
    ) -> "pl.DataFrame":
        """One row per job, in order: the statistics known at its stage. `names` selects columns; default: all."""
        ...

    def node_outcomes(self, asked: "pl.DataFrame") -> "pl.DataFrame":
        """For each row of `asked` (`at`, `node`): how jobs on that node ended in the 7 days before.

        Columns: `ended`, `failed`, `expected` (failures expected of these jobs), `crashes`, `crashes_expected` and
        `nodes` (number of known nodes).
        """
        ...

    def script(self, digest: str) -> str | None:
        """The text of a script by its SHA-256; None if it is not stored."""
        ...

    @property
    def now(self) -> int | None:
        """At the stage `running`, the instant of the question: a running job is assessed repeatedly.

        None if no running job is assessed. Windows that end later must not be used.
        """
        ...

    def windows(self, jobs: "pl.DataFrame", until: int) -> "pl.DataFrame":
        """CPU traces of these jobs up to an instant; columns as in `core.frames.WINDOWS`.

        For a task of an array, these include windows of its siblings, from when they were as old as it is at `until`.
        """
        ...


class Fitted(Protocol):
    """A trained detector. The same input gives the same answer, and inputs are never changed."""

    def assess(self, jobs: "pl.DataFrame", known: Known, *, stage: Stage) -> list[Parts]:
        """One entry per row, in order, from fields known at `stage` only."""
        ...

    def explain(self, job: "pl.DataFrame", known: Known, *, stage: Stage) -> Parts:
        """The same for a single job, with contributions, similar jobs and advice."""
        ...

    def save(self, folder: Path) -> None:
        """Write the model into an existing folder, in formats whose loading can never run code."""
        ...


@runtime_checkable
class Detector(Protocol):
    """A plug-in: an entry point in the group `tocsin.detectors` names an object like this."""

    name: str
    stages: Sequence[Stage]
    learns: bool
    """False for a detector that consists of rules and needs no training."""
    needs: Collection[Need]

    def fit(self, jobs: "pl.DataFrame", known: Known, *, stage: Stage, seed: int, budget: Budget) -> Fitted:
        """Train on ended jobs; `known` holds what was known at each job's own time."""
        ...

    def load(self, folder: Path) -> Fitted:
        """Read what `save` wrote."""
        ...
