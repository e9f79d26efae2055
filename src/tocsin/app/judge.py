"""The judge as every use needs it: each installed detector with its models in use, and their reload."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tocsin.app.allow import allow_book
from tocsin.app.app import App
from tocsin.core.stages import Stage

if TYPE_CHECKING:
    from tocsin.core.detector import Known
    from tocsin.judge.deeper import Deeper
    from tocsin.judge.judge import Judge, Seat
    from tocsin.workload.screening import Screener

__all__ = ["Reloading", "open_judge", "open_screener", "screener_folder"]


def open_judge(
    app: App,
    known: "Known",
    only: Sequence[str] | None = None,
    *,
    cluster: str | None = None,
    follow: bool = False,
) -> "Judge":
    """The judge with all detectors, or `only` these, and their champions for the cluster.

    A detector that cannot be used is reported and left out.

    With `follow`, or the setting workload.read_files, the files that a script calls are read, too.
    """
    from tocsin.judge.cases import CaseBook
    from tocsin.judge.judge import Judge, seats
    from tocsin.judge.plugins import find_detectors
    from tocsin.judge.policy import ROGUE_CASES
    from tocsin.judge.rogue import RogueBook

    broken: dict[str, str] = {}
    detectors = find_detectors(broken)
    for reason in broken.values():
        app.notify(f"note: {reason}")
    if only is not None:
        detectors = {name: detector for name, detector in detectors.items() if name in only}
    seated = seats(detectors, app.registry, known, cluster=cluster)
    if "workload" in seated:
        seated["workload"] = _one_screener(seated["workload"])
    rogues = RogueBook(allow_book(app), _deeper(app, follow))
    return Judge(seated, CaseBook(app.store, ROGUE_CASES), rogues)


class Reloading:
    """Gives a judge the models that were promoted since: the one way in which a running process changes models."""

    def __init__(
        self,
        app: App,
        judge: "Judge",
        known: "Known",
        only: Sequence[str] | None = None,
        *,
        cluster: str | None = None,
    ) -> None:
        self._app, self._judge, self._known, self._only, self._cluster = app, judge, known, only, cluster
        self._loaded = self._promotions()

    def reload(self) -> bool:
        """Whether other models are in use now. The judge's allow-list screens by the new ones as well."""
        if (now := self._promotions()) == self._loaded:
            return False
        fresh = open_judge(self._app, self._known, self._only, cluster=self._cluster)
        self._judge.detectors, self._judge.rogues = fresh.detectors, fresh.rogues
        self._loaded = now
        return True

    def _promotions(self) -> dict[str, int]:
        """When the champions of each detector last changed: cheap enough for every round."""
        models = self._app.home.models
        return {path.parent.name: path.stat().st_mtime_ns for path in models.glob("*/aliases.json")}


def _one_screener(workload: "Seat") -> "Seat":
    """The model for ended jobs reads scripts with the model for submitted ones: both must agree on a script."""
    from tocsin.workload.detector import FittedEnd

    first, last = workload.models.get(Stage.SUBMIT), workload.models.get(Stage.END)
    if first is None or last is None or not isinstance(last.fitted, FittedEnd):
        return workload
    joined = replace(last, fitted=last.fitted.heard_with(first.fitted))
    return replace(workload, models={**workload.models, Stage.END: joined})


def _deeper(app: App, follow: bool) -> "Deeper | None":
    if not follow and not app.settings.workload.read_files:
        return None
    from tocsin.judge.deeper import Deeper

    return Deeper(open_screener(app).screen)


def open_screener(app: App) -> "Screener":
    """The script classifier in use: the site's own, or the one shipped with tocsin."""
    from tocsin.workload.screening import load_screener

    return load_screener(screener_folder(app))


def screener_folder(app: App) -> Path:
    """Its folder, with every file verified."""
    return app.registry.open_verified("workload", stage=Stage.SUBMIT)[0]
