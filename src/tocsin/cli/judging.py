"""The judge as commands use it: every installed detector with its champion, and the cases of the store."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tocsin.cli import options
from tocsin.cli.output import say
from tocsin.cli.settings import Context

if TYPE_CHECKING:
    from tocsin.core.detector import Past
    from tocsin.judge.allow import AllowBook
    from tocsin.judge.deeper import Deeper
    from tocsin.judge.judge import Judge
    from tocsin.judge.verdict_log import VerdictLog
    from tocsin.store.database import Store
    from tocsin.workload.screening import Screener

__all__ = ["ALLOW_FILE", "allow_book", "open_screener", "seated_judge", "verdict_log"]

ALLOW_FILE = Path("/etc/tocsin/allow.toml")


def seated_judge(
    context: Context, store: "Store", past: "Past", only: Sequence[str] | None = None
) -> "Judge":
    """What cannot be used is said; the others are heard without it. With `only`, these detectors alone."""
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
    return Judge(
        seats(detectors, context.registry(), past),
        CaseBook(store, ROGUE_CASES),
        RogueBook(allow_book(context, store), _deeper(context)),
    )


def _deeper(context: Context) -> "Deeper | None":
    if not context.settings.workload.read_files:
        return None
    from tocsin.judge.deeper import Deeper

    return Deeper(open_screener(context).screen)


def allow_book(context: Context, store: "Store") -> "AllowBook":
    """The allow-list of the settings; the one under /etc need not be there, one that is named must."""
    from tocsin.judge.allow import AllowBook

    named = context.settings.workload.allow_file
    file = Path(named) if named else ALLOW_FILE if ALLOW_FILE.exists() else None
    kept = context.folder.prepare().cache / "allow.toml"
    return AllowBook(
        store,
        file,
        kept=kept,
        zone=options.zone_of(context, None),
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
    from tocsin.core.stages import Stage
    from tocsin.workload.screening import load_screener

    folder, _ = context.registry().open_verified("workload", stage=Stage.SUBMIT)
    return load_screener(folder)
