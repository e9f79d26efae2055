"""The first failure models of a watched cluster, trained as soon as enough outcomes are known."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tocsin.app.app import App
from tocsin.core.errors import ModelError
from tocsin.core.stages import Stage

if TYPE_CHECKING:
    from tocsin.learn.nightly import Outcome

__all__ = ["first_models"]

DETECTOR = "failure"
STAGES = (Stage.SUBMIT, Stage.START, Stage.EARLY)
TRIALS = 20
RULE = "precision_at_least=0.8"


def first_models(app: App, *, only: str | None, dry_run: bool) -> "Iterator[Outcome]":
    """For each watched cluster and stage without a model of its own; a manual rollback is respected."""
    from tocsin.learn.walk import FEWEST_FIRST
    from tocsin.store.jobs import Filter, cluster_names, load
    from tocsin.store.scores import last_verdict

    for cluster in cluster_names(app.store):
        stages = [stage for stage in STAGES if _has_none(app, stage, cluster)]
        if only not in (None, cluster) or not stages or last_verdict(app.store, cluster) is None:
            continue
        known = load(app.store, Filter(clusters=[cluster]), ["outcome"])["outcome"].count()
        if known >= FEWEST_FIRST:
            for stage in stages:
                yield _first(app, cluster, stage, known, dry_run)


def _has_none(app: App, stage: Stage, cluster: str) -> bool:
    aliases = app.registry.aliases(DETECTOR)
    here = [entry for place in ((stage, cluster), (stage, None)) if (entry := aliases.get(place))]
    return not any(entry.champion or entry.held for entry in here)


def _first(app: App, cluster: str, stage: Stage, known: int, dry_run: bool) -> "Outcome":
    from tocsin.app.logs import LogRequest
    from tocsin.app.train import FailureRequest, train_failure
    from tocsin.learn.nightly import Outcome

    before = app.registry.champion(DETECTOR, stage, cluster) or "none"
    version, state = None, "planned"
    why = f"would be replaced by the first model trained on this cluster; {known:,} outcomes are known"
    if not dry_run:
        try:
            request = FailureRequest(
                log=LogRequest(cluster=cluster),
                stage=stage,
                target=None,
                engine="lightgbm",
                rule=RULE,
                trials=TRIALS,
                shortest=0,
                seed=0,
                promote=True,
            )
            version = train_failure(app, request)["version"]
            state, why = "promoted", f"the first model of this cluster; {known:,} outcomes are known"
        except ModelError as error:
            state, why = "skipped", str(error)
    return Outcome(
        detector=DETECTOR,
        stage=stage,
        cluster=cluster,
        champion=before,
        state=state,
        why=why,
        challenger=version,
    )
