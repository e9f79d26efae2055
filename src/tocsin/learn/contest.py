"""The contract of a contest: how a detector is retrained, and its challenger compared with its champion.

`nightly` knows no detector: each takes part by an object like `Contest`. A plug-in hands its own in as the attribute
`contest` of its detector.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tocsin.core.stages import Stage
from tocsin.models.cards import Card
from tocsin.models.drift import Drift

if TYPE_CHECKING:
    from tocsin.store.database import Store

__all__ = ["Champion", "Contest", "Match", "Night", "Paired", "Trained"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Champion:
    """A version in use, for one stage and for one cluster or all."""

    detector: str
    stage: Stage
    cluster: str | None
    folder: Path
    card: Card

    @property
    def version(self) -> str:
        return self.card.version


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """What every contest of one night shares."""

    store: "Store"
    now: int
    """Nothing that became known later is used."""
    holdback_days: float
    """The last days are held back: no challenger is trained on them, and both models are measured on them."""
    threads: int = 1
    progress: Callable[[int, int], None] | None = None


class Trained(NamedTuple):
    """A challenger that is not stored yet."""

    save: Callable[[Path], None]
    card: Card


@dataclass(frozen=True, slots=True)
class Paired:
    """Both models on the same held-back rows."""

    measure: Callable[[NDArray[np.float64]], tuple[float, float]]
    """The figures of champion and challenger, where each row counts with this weight."""
    blocks: NDArray[Any]
    """Rows that hang together, such as the jobs of one user on one day: they are resampled together."""


class Match(Protocol):
    """One detector at one stage on one night."""

    @property
    def held_back(self) -> str:
        """In words, such as `812 jobs submitted since 2026-11-14T02:00:00Z`."""
        ...

    def drift(self) -> Sequence[Drift]:
        """How the held-back data differ from what the champion was trained on."""
        ...

    def retrain(self) -> Trained:
        """With the champion's settings, on what is known now, without the held-back data."""
        ...

    def refused(self, challenger: Path) -> str | None:
        """Why the detector's own rules forbid to use the challenger, whatever the contest says."""
        ...

    def compare(self, champion: Path, challenger: Path) -> Paired: ...


@runtime_checkable
class Contest(Protocol):
    """How a detector takes part in `tocsin nightly`."""

    @property
    def stages(self) -> Collection[Stage]: ...

    @property
    def figure(self) -> str:
        """The name of the figure that decides, as on the card."""
        ...

    @property
    def higher_is_better(self) -> bool: ...

    def prepare(self, champion: Champion, night: Night) -> Match:
        """Read the data and hold some back; ModelError says why there can be no contest tonight."""
        ...
