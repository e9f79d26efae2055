"""Parameter search spaces as data."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Choice", "Real", "Space", "Whole", "space_to_json"]


@dataclass(frozen=True, slots=True)
class Whole:
    """An integer in a closed range."""

    low: int
    high: int
    log: bool = False


@dataclass(frozen=True, slots=True)
class Real:
    """A real number in a range."""

    low: float
    high: float
    log: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """One of these values."""

    values: tuple[str | int | float | bool, ...]


Space = Mapping[str, Whole | Real | Choice]


def space_to_json(space: Space) -> dict[str, Any]:
    """
    >>> space_to_json({"num_leaves": Whole(8, 255, log=True)})
    {'num_leaves': {'kind': 'whole', 'low': 8, 'high': 255, 'log': True}}
    """
    return {name: {"kind": type(values).__name__.lower(), **asdict(values)} for name, values in space.items()}
