"""The contract of a contest: how a detector is retrained, and its challenger compared with its champion.

`nightly` knows no detector: each takes part by an object like `Contest`. A plug-in provides its own as the attribute
`contest` of its detector.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from numpy.typing import NDArray

from tocsin.core.stages import Stage
from tocsin.learn.comparison import Measure, Result
from tocsin.models.cards import Card
from tocsin.models.drift import Drift

if TYPE_CHECKING:
    from tocsin.store.database import Store

__all__ = ["Champion", "Contest", "FreshContest", "LiveContest", "Match", "Night", "Trained"]


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
    """What all contests of one night share."""

    store: "Store"
    now: int
    """Nothing that became known later is used."""
    holdback_days: float
    """The last days are held back: no challenger is trained on them, and both models are measured on them."""
    control_share: float = 0.1
    """The share of jobs left alone, so that live figures can be measured on them."""
    threads: int = 1
    progress: Callable[[int, int], None] | None = None


class Trained(NamedTuple):
    """A challenger that is not stored yet."""

    save: Callable[[Path], None]
    card: Card


class Match(Protocol):
    """One detector at one stage on one night."""

    @property
    def held_back(self) -> str:
        """In words, such as `812 jobs submitted since 2026-11-14T02:00:00Z`."""
        ...

    @property
    def blocks(self) -> NDArray[Any]:
        """The group of each held-back row, such as its user and day: blocks are resampled as a whole."""
        ...

    def drift(self) -> Sequence[Drift]:
        """How the held-back data differ from what the champion was trained on."""
        ...

    def retrain(self) -> Trained:
        """With the champion's settings, on what is known now, without the held-back data."""
        ...

    def refused(self, challenger: Path) -> str | None:
        """Why the detector's own rules forbid the challenger, whatever the contest says."""
        ...

    def compare(self, champion: Path, challenger: Path) -> Measure:
        """Compare both models, loaded from their folders, on the held-back rows."""
        ...


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


@runtime_checkable
class LiveContest(Protocol):
    """A contest whose challengers also score live jobs."""

    def live(self, champion: Champion, challenger: str, night: Night) -> Result:
        """Compare both on live jobs whose outcome is known by now; ModelError says why that is not possible yet."""
        ...


@runtime_checkable
class FreshContest(Protocol):
    """A contest in which the fresher model is preferred unless its figure is lower."""

    prefers_fresh: bool
    """True if a few days can hardly show anything with confidence, and an old threshold is itself a loss."""
