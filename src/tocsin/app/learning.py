"""How the models perform live: precision and recall, challengers against champions, drift, and retraining runs."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tocsin.app.app import App
from tocsin.app.schedule import next_run
from tocsin.core.errors import ModelError, StoreError, TocsinError
from tocsin.core.stages import Stage
from tocsin.core.units import format_instant

if TYPE_CHECKING:
    from tocsin.learn.live_figures import Live, LiveFigures
    from tocsin.models.registry import Registry

__all__ = ["LiveMeasurement", "learning", "measure_live", "measured_here"]

_RUNS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveMeasurement:
    at: int
    figures: Sequence[Mapping[str, Any]] = field(default_factory=list)
    """For each cluster and stage: of whichever version was in use, and of each version."""
    challengers: Sequence[Mapping[str, Any]] = field(default_factory=list)
    """Each challenger compared with its champion on the jobs that both scored."""


def measure_live(app: App, detector: str | None = None) -> LiveMeasurement:
    """Based on the verdicts of the last four weeks and the outcomes known by now; empty without a store."""
    if not app.settings.store.url and not app.home.database.exists():
        return LiveMeasurement(at=int(time.time()))
    from tocsin.learn.live_figures import Live
    from tocsin.store.jobs import cluster_names
    from tocsin.store.scores import last_verdict

    figures: list[Mapping[str, Any]] = []
    compared: list[Mapping[str, Any]] = []
    share = app.settings.policy.control_percent / 100
    for cluster in cluster_names(app.store):
        if (last := last_verdict(app.store, cluster)) is None:
            continue
        live = Live(app.store, cluster, now=last, share=share)
        figures += [_row(app.registry, each) for each in live.figures() if detector in (None, each.detector)]
        compared += [row for row in _compared(app.registry, live) if detector in (None, row["detector"])]
    return LiveMeasurement(at=int(time.time()), figures=figures, challengers=compared)


def measured_here(app: App, detector: str | None) -> LiveMeasurement | None:
    """For a listing of models, which works without a store as well."""
    try:
        return measure_live(app, detector)
    except StoreError as error:
        app.notify(f"note: live figures are left out: {error}")
        return None


def learning(app: App, measured: LiveMeasurement | None, *, now: int, running: bool) -> dict[str, Any]:
    """The state of learning: when models are retrained, with what result, and how they perform."""
    from tocsin.store.learning_runs import last_runs

    settings = app.settings.learn
    due = next_run(app, now)
    runs = [run.to_json() for run in last_runs(app.store, _RUNS)]
    return {
        "retraining": {
            "in_service": settings.in_service,
            "failure_days": settings.failure_days,
            "holdback_days": settings.holdback_days,
            "running": running or any(run["state"] == "running" for run in runs),
            "next": None if due is None else format_instant(max(due, now)),
            "runs": runs,
        },
        "measured": measured and format_instant(measured.at),
        "live": list(measured.figures) if measured else [],
        "challengers": list(measured.challengers) if measured else [],
        "drift": list(_drift(runs)),
        "missing": {} if measured else {"live": "the live figures are being measured; try again in a minute"},
    }


def _row(registry: "Registry", figures: "LiveFigures") -> dict[str, Any]:
    """With the version's role, and whether it keeps its promised precision."""
    from tocsin.core.json_form import to_json

    row: dict[str, Any] = {**to_json(figures), "role": None, "promised": None, "held": None}
    if figures.version is None:
        return row
    champion, challenger = _roles(registry, figures.detector, figures.stage, figures.cluster)
    row["role"] = {champion: "champion", challenger: "challenger"}.get(figures.version, "former")
    promised = _promised(registry, figures.detector, figures.version)
    if promised is not None:
        held = None if figures.precision is None else figures.precision.high >= promised
        row |= {"promised": promised, "held": held}
    return row


def _promised(registry: "Registry", detector: str, version: str) -> float | None:
    """The precision that the threshold of a version was chosen for."""
    try:
        thresholds = registry.card(detector, version).thresholds
    except TocsinError:  # the version was removed
        return None
    rule = thresholds[0].get("rule") if thresholds else None
    return rule["value"] if rule and rule["kind"] == "precision_at_least" else None


def _roles(registry: "Registry", detector: str, stage: Stage, cluster: str) -> tuple[str | None, str | None]:
    challenger = registry.challenger(detector, stage, cluster) or registry.challenger(detector, stage)
    return registry.champion(detector, stage, cluster), challenger


def _compared(registry: "Registry", live: "Live") -> Iterator[dict[str, Any]]:
    for detector in registry.detectors():
        for stage in {stage: None for stage, _ in registry.aliases(detector)}:
            champion, challenger = _roles(registry, detector, stage, live.cluster)
            if champion is None or challenger is None:
                continue
            row: dict[str, Any] = {
                "detector": detector,
                "stage": str(stage),
                "cluster": live.cluster,
                "champion": champion,
                "challenger": challenger,
                "result": None,
                "missing": None,
            }
            try:
                row["result"] = live.compared(detector, stage, champion, challenger).to_json()
            except ModelError as error:
                row["missing"] = str(error)
            yield row


def _drift(runs: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """For each model in use, the drift found by the last run that measured it."""
    seen = set()
    for run in runs:
        for outcome in run["outcomes"]:
            place = {name: outcome[name] for name in ("detector", "stage", "cluster")}
            if outcome["drift"] and (key := tuple(place.values())) not in seen:
                seen.add(key)
                yield {
                    **place,
                    "at": run["started"],
                    "champion": outcome["champion"],
                    "drift": outcome["drift"],
                }
