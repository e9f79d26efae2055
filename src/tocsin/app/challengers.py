"""The models that run beside those in use on a followed cluster, reloaded when others are named."""

from typing import TYPE_CHECKING

from tocsin.app.app import App
from tocsin.core.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tocsin.core.stages import Stage
    from tocsin.judge.answers import Model
    from tocsin.watch.challengers import Challengers

__all__ = ["open_challengers"]


def open_challengers(app: App, cluster: str) -> "Challengers":
    from tocsin.watch.challengers import Challengers

    return Challengers(app.store, _Live(app, cluster).models, lambda text: app.notify(f"tocsin: {text}"))


class _Live:
    """Keeps models loaded until the registry names others."""

    def __init__(self, app: App, cluster: str) -> None:
        self._app, self._cluster = app, cluster
        self._named: dict[tuple[str, Stage], str] = {}
        self._changed: dict[str, int] = {}
        self._models: dict[Stage, dict[str, Model]] = {}

    def models(self) -> "Mapping[Stage, Mapping[str, Model]]":
        changed = {
            path.parent.name: path.stat().st_mtime_ns for path in self._app.home.models.glob("*/aliases.json")
        }
        if changed != self._changed:
            self._changed = changed
            if (named := self._challengers()) != self._named:
                self._named, self._models = named, self._loaded(named)
        return self._models

    def _challengers(self) -> "dict[tuple[str, Stage], str]":
        """By detector and stage: the cluster's own, else the one for all clusters."""
        from tocsin.judge.plugins import find_detectors

        registry = self._app.registry
        return {
            (name, stage): version
            for name, detector in find_detectors().items()
            for stage in detector.stages
            if detector.learns
            and (
                version := registry.challenger(name, stage, self._cluster) or registry.challenger(name, stage)
            )
        }

    def _loaded(self, named: "Mapping[tuple[str, Stage], str]") -> "dict[Stage, dict[str, Model]]":
        from tocsin.judge.answers import Model
        from tocsin.judge.plugins import find_detectors

        detectors = find_detectors()
        found: dict[Stage, dict[str, Model]] = {}
        for (name, stage), version in named.items():
            try:
                folder, card = self._app.registry.open_verified(name, version)
                model = Model(detectors[name].load(folder), card.version)
                found.setdefault(stage, {})[name] = model
            except ModelError as error:
                self._app.notify(f"tocsin: {name} {version} does not run beside the model in use: {error}")
        return found
