"""The judge as commands use it: every installed detector with its champion, and the cases of the store."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tocsin.cli import options
from tocsin.cli.output import say
from tocsin.cli.settings import Context
from tocsin.core.errors import ModelError

if TYPE_CHECKING:
    from tocsin.core.detector import Known
    from tocsin.judge.allow import AllowBook
    from tocsin.judge.deeper import Deeper
    from tocsin.judge.judge import Judge, Seat
    from tocsin.judge.verdict_log import VerdictLog
    from tocsin.models.registry import Registry
    from tocsin.store.database import Store
    from tocsin.workload.screening import Screener

__all__ = [
    "ALLOW_FILE",
    "allow_book",
    "allow_file",
    "champions",
    "open_screener",
    "operations",
    "screener_folder",
    "seated_judge",
    "verdict_log",
]

ALLOW_FILE = Path("/etc/tocsin/allow.toml")


def seated_judge(
    context: Context,
    store: "Store",
    past: "Known",
    only: Sequence[str] | None = None,
    *,
    follow: bool = False,
) -> "Judge":
    """What cannot be used is said; the others are heard without it. With `only`, these detectors alone.

    With `follow`, or where the settings say so, what scripts call is read, too.
    """
    from tocsin.judge.cases import CaseBook
    from tocsin.judge.judge import Judge, seats
    from tocsin.judge.plugins import find_detectors
    from tocsin.judge.policy import ROGUE_CASES
    from tocsin.judge.rogue import RogueBook

    broken: dict[str, str] = {}
    detectors = find_detectors(broken)
    for sentence in broken.values():
        say(f"note: {sentence}")
    if only is not None:
        detectors = {name: detector for name, detector in detectors.items() if name in only}
    heard = seats(detectors, context.registry(), past)
    if "workload" in heard:
        heard["workload"] = _told_by_one(heard["workload"])
    return Judge(
        heard,
        CaseBook(store, ROGUE_CASES),
        RogueBook(allow_book(context, store), _deeper(context, follow)),
    )


def champions(context: Context) -> dict[str, int]:
    """When the champions of each detector last changed: cheap enough to be asked again and again."""
    return {
        path.parent.name: path.stat().st_mtime_ns for path in context.folder.models.glob("*/aliases.json")
    }


def _told_by_one(workload: "Seat") -> "Seat":
    """A job's script is told by the same champion at its end as at its submission; a model knows only itself."""
    from tocsin.core.stages import Stage
    from tocsin.workload.detector import FittedEnd

    first, last = workload.models.get(Stage.SUBMIT), workload.models.get(Stage.END)
    if first is None or last is None or not isinstance(last.fitted, FittedEnd):
        return workload
    told = replace(last, fitted=last.fitted.heard_with(first.fitted))
    return replace(workload, models={**workload.models, Stage.END: told})


def _deeper(context: Context, follow: bool) -> "Deeper | None":
    if not follow and not context.settings.workload.read_files:
        return None
    from tocsin.judge.deeper import Deeper

    return Deeper(open_screener(context).screen)


def allow_file(context: Context) -> Path | None:
    """The file of the allow-list; the one under /etc need not be there, one that is named must."""
    named = context.settings.workload.allow_file
    return Path(named) if named else ALLOW_FILE if ALLOW_FILE.exists() else None


def operations(context: Context) -> set[str]:
    """All that scripts may be told to be: shipped, or taught by the site, in service now or at another time."""
    registry = context.registry()
    found: set[str] = set()
    for version in registry.versions("workload"):
        with suppress(ModelError):  # who uses it says what is wrong with it
            found |= _told_by(registry, version)
    return found - {""}


@cache
def _told_by(registry: "Registry", version: str) -> frozenset[str]:
    """Read once: a version never changes, and a site that learns daily has many."""
    return frozenset((registry.card("workload", version).target or "").split(", "))


def allow_book(context: Context, store: "Store") -> "AllowBook":
    """The allow-list of the settings."""
    from tocsin.judge.allow import AllowBook

    return AllowBook(
        store,
        allow_file(context),
        kept=context.folder.prepare().cache / "allow.toml",
        zone=options.zone_of(context, None),
        operations=lambda: operations(context),
        say=lambda sentence: say(f"tocsin: {sentence}"),
    )


def verdict_log(context: Context) -> "VerdictLog | None":
    """The log of verdicts, where the settings name one."""
    settings = context.settings.workload
    if not settings.log_file:
        return None
    from tocsin.judge.verdict_log import VerdictLog

    return VerdictLog(
        Path(settings.log_file), largest=settings.log_megabytes * 1024**2, files=settings.log_files
    )


def open_screener(context: Context) -> "Screener":
    """The site's champion, or the weights that came with tocsin."""
    from tocsin.workload.screening import load_screener

    return load_screener(screener_folder(context))


def screener_folder(context: Context) -> Path:
    """Where that lies, its files found as they were written."""
    from tocsin.core.stages import Stage

    return context.registry().open_verified("workload", stage=Stage.SUBMIT)[0]
