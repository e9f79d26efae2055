"""A finding of `doctor`: the state of one link, and the next step."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Finding", "Status"]


class Status(StrEnum):
    FINE = "fine"
    NOTE = "note"  # works, but with reduced function
    ABSENT = "absent"  # not installed, and no setting needs it
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Finding:
    link: str
    status: Status
    text: str
    fix: str = ""
    """The next step."""
