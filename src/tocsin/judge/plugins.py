"""Finds detectors by their entry points, both built-in and a site's own."""

import re
from collections.abc import Sequence
from functools import cache
from importlib.metadata import Distribution, entry_points

from tocsin.core.detector import ENTRY_POINTS, Detector
from tocsin.core.stages import Stage

__all__ = ["find_detectors"]

_OURS = "tocsin"
_NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)


def find_detectors(broken: dict[str, str] | None = None) -> dict[str, Detector]:
    """All installed detectors by name, built-in ones first.

    A detector that cannot be used is left out; `broken`, if given, gets the reason for each.
    """
    found: dict[str, Detector] = {}
    trouble = {} if broken is None else broken
    home = cache(_home)  # each look-up parses the distribution's metadata
    for entry in sorted(
        entry_points(group=ENTRY_POINTS), key=lambda e: (home(e.dist) != _OURS, home(e.dist), e.name)
    ):
        if entry.name in found:
            trouble[f"{entry.name} of {home(entry.dist)}"] = (
                f'the detector "{entry.name}" of {home(entry.dist)} is left out: that name is taken; give it another one'
            )
            continue
        try:
            detector = entry.load()
            wrong = _wrong(detector, entry.name)
        except (Exception, SystemExit) as error:  # importing third-party code may fail in any way
            wrong = f"{entry.value} cannot be imported ({type(error).__name__}: {_line(error)})"
        if wrong:
            trouble[entry.name] = f'the detector "{entry.name}" of {home(entry.dist)} is left out: {wrong}'
        else:
            found[entry.name] = detector
    return found


def _wrong(detector: object, name: str) -> str | None:
    """Why an object is not a detector."""
    if isinstance(detector, type):
        return f"its entry point refers to the class {detector.__name__}; refer to an instance of it"
    if not isinstance(detector, Detector):
        missing = [
            part
            for part in ("name", "stages", "learns", "needs", "fit", "load")
            if getattr(detector, part, None) is None
        ]
        return f"it has no {', no '.join(missing)}; see tocsin.core.detector.Detector"
    if not callable(detector.fit) or not callable(detector.load):
        return "its fit or load cannot be called; see tocsin.core.detector.Detector"
    if not _NAME.fullmatch(name):
        return "a name consists of lower-case letters, digits and underscores"
    if detector.name != name:
        return f'it calls itself "{detector.name}"; its name and that of its entry point must be the same'
    stages: Sequence[object] = list(detector.stages)
    if not stages or not all(isinstance(stage, Stage) for stage in stages):
        return f"its stages are {stages!r}; give at least one of tocsin.core.stages.Stage"
    return None


def _home(provider: Distribution | None) -> str:
    """The name of the distribution that provides a detector."""
    return provider.name if provider else "an unnamed distribution"


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
