"""The journal of nightly runs: the step that each detector has reached, so that a killed run can be resumed."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from tocsin.core.errors import ModelError
from tocsin.core.fields import Instant
from tocsin.core.json_form import from_json, to_json
from tocsin.core.stages import Stage
from tocsin.learn.comparison import Result
from tocsin.models.drift import Drift
from tocsin.models.files import parse_json, read_file, replace_file

__all__ = ["Entry", "Journal", "Step"]

VERSION = 1
"""Version of the file format."""
_KEPT = 400  # entries
_MOST_BYTES = 16 << 20


class Step(StrEnum):
    """The progress of one detector and stage in a night."""

    BEGUN = "begun"
    """The champion and the instant are fixed."""
    RETRAINED = "retrained"
    """The challenger is stored."""
    CONTESTED = "contested"
    """Its figures are on its card."""
    DONE = "done"
    """It is in use, or stored and not in use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One night of one detector and stage, for one cluster or all."""

    detector: str
    stage: Stage
    cluster: str | None
    day: str
    """The local date of the run, such as 2026-11-17: each day counts once."""
    now: Instant
    """A resumed run uses what was known at this instant."""
    champion: str
    step: Step = Step.BEGUN
    challenger: str | None = None
    result: Result | None = None
    drift: Sequence[Drift] = field(default_factory=list)
    promoted: bool = False
    why: str | None = None
    """Why the challenger is in use, or why not."""


class Journal:
    """The entries in a file, which is replaced as a whole at each step."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._entries = _read(path)

    def of(self, detector: str, stage: Stage, cluster: str | None) -> list[Entry]:
        """Oldest first."""
        place = (detector, stage, cluster)
        return [each for each in self._entries if _place(each) == place]

    def last(self, detector: str, stage: Stage, cluster: str | None) -> Entry | None:
        return next(reversed(self.of(detector, stage, cluster)), None)

    def write(self, entry: Entry) -> Entry:
        """Add the entry, or replace the one of the same place and day."""
        key = (*_place(entry), entry.day)
        others = [each for each in self._entries if (*_place(each), each.day) != key]
        self._entries = [*others, entry][-_KEPT:]
        document = {"version": VERSION, "entries": [to_json(each) for each in self._entries]}
        content = json.dumps(document, indent=1, allow_nan=False) + "\n"
        replace_file(self.path, content.encode(), beside=self.path.parent)
        return entry

    def advance(self, entry: Entry, step: Step, **found: object) -> Entry:
        """The entry at its next step."""
        return self.write(replace(entry, step=step, **found))  # type: ignore[arg-type]  # fields of an entry


def _place(entry: Entry) -> tuple[str, Stage, str | None]:
    return entry.detector, entry.stage, entry.cluster


def _read(path: Path) -> list[Entry]:
    if not path.exists():
        return []
    try:
        document = parse_json(read_file(path, most=_MOST_BYTES))
        if document["version"] != VERSION:
            raise ValueError(f"it has format version {document['version']}, not {VERSION}")
        return [from_json(each, Entry) for each in document["entries"]]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ModelError(
            f"{path} is damaged ({str(error)[:100]}); remove it: then the next run counts as the first of its day"
        ) from None
