"""The judge as commands use it: every installed detector with its champion, and the cases of the store."""

from typing import TYPE_CHECKING

from tocsin.cli.output import say
from tocsin.cli.settings import Context

if TYPE_CHECKING:
    from tocsin.core.detector import Past
    from tocsin.judge.judge import Judge
    from tocsin.store.database import Store

__all__ = ["seated_judge"]


def seated_judge(context: Context, store: "Store", past: "Past") -> "Judge":
    """What cannot be used is said; the others are heard without it."""
    from tocsin.judge.cases import CaseBook
    from tocsin.judge.judge import Judge, seats
    from tocsin.judge.plugins import find_detectors
    from tocsin.judge.policy import NO_CASES
    from tocsin.models.registry import Registry

    broken: dict[str, str] = {}
    detectors = find_detectors(broken)
    for sentence in broken.values():
        say(f"note: {sentence}")
    return Judge(seats(detectors, Registry(context.folder.models), past), CaseBook(store, NO_CASES))
