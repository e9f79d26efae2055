"""Builds the judge from each installed detector and its models in use, and reloads them."""

import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tocsin.app.allow import allow_list_reader
from tocsin.app.app import App
from tocsin.core.errors import StoreError
from tocsin.core.stages import Stage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tocsin.core.detector import Detector, Known, Need
    from tocsin.judge.answers import DetectorModels
    from tocsin.judge.judge import Judge
    from tocsin.judge.policy import Policy
    from tocsin.models.registry import Registry
    from tocsin.workload.screening import Screener

__all__ = [
    "LiveJudge",
    "load_seats",
    "needs",
    "open_judge",
    "open_screener",
    "screener_folder",
    "untrained",
]

_TRAIN = {
    "failure": "train failure --stage {stage}",
    "workload": "train execution",
    "traces": "traces train",
}
"""The command that trains each detector; unknown for plug-ins."""


def untrained(detector: str, stage: Stage, models: Path) -> str:
    """Why there is no model of a detector for a stage in this folder of models, with the command that trains one."""
    from tocsin.store.home import user_name

    command = _TRAIN.get(detector, "train --help").format(stage=stage)
    if not _hidden_models(models):
        return f"no model is trained for the stage `{stage}` yet; run `tocsin {command}`"
    return (
        f"no model for {stage} is available to you, and you cannot read those of this host's service; ask an "
        f"administrator to check the script (`tocsin check -u {user_name()} SCRIPT`), or train one on your own jobs "
        f"(`tocsin {command}`)"
    )


def _hidden_models(models: Path) -> bool:
    """Whether this user, with these models in the own data folder, may not read those of a service on this host."""
    from tocsin.store.home import SERVICE_HOME, Home

    own = Home.default({name: value for name, value in os.environ.items() if name != "TOCSIN_HOME"})
    return models == own.models and SERVICE_HOME.is_dir() and not os.access(SERVICE_HOME, os.R_OK | os.X_OK)


def open_judge(
    app: App,
    known: "Known",
    only: Sequence[str] | None = None,
    *,
    cluster: str | None = None,
    stages: Collection[Stage] = tuple(Stage),
    follow: bool = False,
    policy: "Policy | None" = None,
) -> "Judge":
    """The judge with all detectors, or `only` these, and their champions for the cluster.

    A detector that has no part in the `stages` to be judged is not loaded; one that cannot be used is reported and left out. With `follow`, or the setting workload.read_files, the files that a script calls are read, too.
    `policy` is by default the one without actions.
    """
    from tocsin.judge.judge import Judge
    from tocsin.judge.plugins import find_detectors
    from tocsin.judge.policy import ROGUE_CASES
    from tocsin.store.decisions import load_facts

    broken: dict[str, str] = {}
    detectors = find_detectors(broken)
    for reason in broken.values():
        app.notify(f"note: {reason}")
    detectors = {
        name: detector
        for name, detector in detectors.items()
        if (only is None or name in only) and not set(stages).isdisjoint(detector.stages)
    }
    seats = load_seats(detectors, app.registry, known, cluster=cluster, stages=stages)
    if "workload" in seats:
        seats["workload"] = _with_files(app, _one_screener(seats["workload"]), follow)
    return Judge(
        seats,
        policy or ROGUE_CASES,
        allow_list_reader(app).current,
        lambda request: load_facts(app.store, request),
    )


def needs(app: App, stage: Stage, cluster: str) -> "set[Need]":
    """The evidence that the detectors in use at a stage read, so that nothing else is loaded."""
    from tocsin.judge.plugins import find_detectors

    return {
        need
        for name, detector in find_detectors().items()
        if stage in detector.stages
        and not (detector.learns and app.registry.champion(name, stage, cluster) is None)
        for need in detector.needs
    }


def load_seats(
    detectors: "Mapping[str, Detector]",
    registry: "Registry",
    known: "Known",
    *,
    cluster: str | None = None,
    stages: Collection[Stage] = tuple(Stage),
) -> "dict[str, DetectorModels]":
    """Every detector with its champions for the cluster and these stages; those that need no training are fitted at once."""
    import polars as pl

    from tocsin import __version__
    from tocsin.core.detector import Budget
    from tocsin.core.errors import ModelError
    from tocsin.core.frames import SCHEMA
    from tocsin.judge.answers import DetectorModels, Model, error_text

    nothing = pl.DataFrame(schema=SCHEMA)
    found = {}
    for name, detector in detectors.items():
        models: dict[Stage, Model] = {}
        missing: dict[Stage, str] = {}
        for stage in (stage for stage in detector.stages if stage in stages):
            try:
                if not detector.learns:
                    fitted = detector.fit(nothing, known, stage=stage, seed=0, budget=Budget(trials=0))
                    models[stage] = Model(fitted, __version__)
                elif registry.champion(name, stage, cluster) is None:
                    missing[stage] = untrained(name, stage, registry.folder)
                else:
                    folder, card = registry.open_verified(name, stage=stage, cluster=cluster)
                    models[stage] = Model(detector.load(folder), card.version)
            except ModelError as error:
                missing[stage] = str(error)
            except Exception as error:  # a plug-in may fail in any way; the others still run
                missing[stage] = error_text(error)
        found[name] = DetectorModels(models, missing)
    return found


class LiveJudge:
    """A judge with the models promoted since: the only way in which a running process changes models."""

    def __init__(
        self,
        app: App,
        known: "Known",
        only: Sequence[str] | None = None,
        *,
        cluster: str | None = None,
        stages: Collection[Stage] = tuple(Stage),
        policy: "Policy | None" = None,
    ) -> None:
        self._app, self._known, self._only, self._cluster = app, known, only, cluster
        self._stages, self._policy = stages, policy
        self._last_answer = 0
        self._loaded = self._promotions()
        self.judge = self._open()

    def reload(self) -> bool:
        """Whether other models are in use now."""
        if (now := self._promotions()) == self._loaded:
            return False
        self.judge.detectors = self._open().detectors
        self._loaded = now
        return True

    def _open(self) -> "Judge":
        """With the trace regions confirmed as bad, which only a process that follows jobs needs."""
        judge = open_judge(
            self._app,
            self._known,
            self._only,
            cluster=self._cluster,
            stages=self._stages,
            policy=self._policy,
        )
        traces = judge.detectors.get("traces")
        if traces is None or not traces.models:
            return judge
        from tocsin.app.traces_regions import with_regions

        judge.detectors = {**judge.detectors, "traces": with_regions(self._app, traces)}
        return judge

    def _promotions(self) -> dict[str, int]:
        """When the champions of each detector and the trace regions last changed: cheap enough for every round."""
        models = self._app.home.models
        found = {path.parent.name: path.stat().st_mtime_ns for path in models.glob("*/aliases.json")}
        if "traces" in found:
            from tocsin.store.trace_regions import last_answer

            with suppress(StoreError):  # the store is down, which the round reports itself
                self._last_answer = last_answer(self._app.store)
            found["trace regions"] = self._last_answer
        return found


def _one_screener(workload: "DetectorModels") -> "DetectorModels":
    """The model for ended jobs reads scripts with the model for submitted ones, so that both agree on a script."""
    from tocsin.workload.detector import FittedEnd

    first, last = workload.models.get(Stage.SUBMIT), workload.models.get(Stage.END)
    if first is None or last is None or not isinstance(last.fitted, FittedEnd):
        return workload
    joined = replace(last, fitted=last.fitted.with_screener_of(first.fitted))
    return replace(workload, models={**workload.models, Stage.END: joined})


def _with_files(app: App, workload: "DetectorModels", follow: bool) -> "DetectorModels":
    """The same, but with called files read if that is wanted."""
    if not follow and not app.settings.workload.read_files:
        return workload
    from tocsin.workload.called_files import FollowedFiles

    screen = open_screener(app).screen
    models = {
        stage: replace(model, fitted=FollowedFiles(model.fitted, screen))
        for stage, model in workload.models.items()
    }
    return replace(workload, models=models)


def open_screener(app: App) -> "Screener":
    """The script classifier in use: the site's own, or the one shipped with tocsin."""
    from tocsin.workload.screening import load_screener

    return load_screener(screener_folder(app))


def screener_folder(app: App) -> Path:
    """Its folder, with every file verified."""
    return app.registry.open_verified("workload", stage=Stage.SUBMIT)[0]
