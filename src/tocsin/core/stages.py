"""The life of a job: what is known when."""

from enum import StrEnum

__all__ = ["EARLY_SECONDS", "Stage"]

EARLY_SECONDS = 120  # the verdict within two minutes (Proactive Precision, abstract)


class Stage(StrEnum):
    """A moment in a job's life; a later stage knows all that an earlier one knew."""

    SUBMIT = "submit"
    START = "start"
    EARLY = "early"
    RUNNING = "running"
    END = "end"

    @property
    def order(self) -> int:
        return _ORDER[self]

    def knows(self, since: "Stage") -> bool:
        """Whether a value that is known from `since` on may be looked at now."""
        return since.order <= self.order


_ORDER = {stage: place for place, stage in enumerate(Stage)}
