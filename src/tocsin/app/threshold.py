"""`threshold`: what each threshold of the failure model would have done, and setting one by a rule."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tocsin.app.app import App
from tocsin.app.champions import chosen_cluster
from tocsin.core.errors import InputError, ModelError
from tocsin.core.stages import Stage

if TYPE_CHECKING:
    from tocsin.failure.fitted import FittedFailure
    from tocsin.models.thresholds import ThresholdRule

__all__ = ["failure_model", "parse_rule", "set_threshold", "thresholds"]


def parse_rule(text: str) -> "ThresholdRule":
    """A rule as the command line writes it: precision_at_least=0.9."""
    from tocsin.models.thresholds import RULES, ThresholdRule

    kind, _, value = text.partition("=")
    try:
        number = float(value)
    except ValueError:
        raise InputError(
            f'"{text}" is not a threshold rule; write KIND=VALUE, such as precision_at_least=0.9 (kinds: {", ".join(RULES)})'
        ) from None
    return ThresholdRule(kind.replace("-", "_"), number)


def failure_model(app: App, stage: Stage, cluster: str | None) -> "tuple[FittedFailure, str]":
    """The failure model in use at a stage, and its version: the cluster's own, or the one for all clusters."""
    from tocsin.failure.detector import FailureDetector

    if app.registry.champion("failure", stage, cluster) is None:
        raise ModelError(
            f"no failure model is trained for the stage `{stage}` yet; "
            f"`tocsin train failure --stage {stage}` trains one on the store"
        )
    folder, card = app.registry.open_verified("failure", stage=stage, cluster=cluster)
    return FailureDetector(threads=1).load(Path(folder)), card.version


def set_threshold(app: App, stage: Stage, cluster: str | None, rule: str) -> dict[str, Any]:
    """Set the threshold by a rule; this makes a new version, which is in use from now on."""
    from tocsin.learn.train_failure import set_rule

    cluster = chosen_cluster(app, "failure", stage, cluster)
    model, version = failure_model(app, stage, cluster)
    wanted, learned_from = parse_rule(rule), app.registry.card("failure", version).clusters
    if wanted.kind == "alarms_per_day_at_most" and len(learned_from) > 1:
        raise ModelError(
            f"failure {version} was measured on samples of {len(learned_from)} clusters, so its alarms per day on one cluster "
            f"are not known; set another kind of rule, or run `tocsin train failure` on your own jobs first"
        )
    trained = set_rule(app.registry, model, wanted, parent=version, cluster=cluster)
    threshold = trained.model.calibrated.threshold
    return {
        "version": trained.version,
        "before": version,
        "cluster": cluster,
        "threshold": threshold.to_json(),
    }


def thresholds(app: App, stage: Stage, cluster: str | None) -> dict[str, Any]:
    """What each threshold would have done, highest first; the chosen one is marked.

    Alarms per day are those of one cluster, so they are null for a model that was measured on several.
    """
    cluster = chosen_cluster(app, "failure", stage, cluster)
    model, version = failure_model(app, stage, cluster)
    now = model.calibrated.threshold
    others = [row for row in model.calibrated.table if row.value != now.value]
    table = sorted([*others, now], key=lambda row: row.value, reverse=True)
    card = app.registry.card("failure", version)
    unknown = {"alarms_per_day": None} if len(card.clusters) > 1 else {}
    return {
        "version": version,
        "cluster": cluster,
        "stage": str(stage),
        "target": card.target,
        "clusters": list(card.clusters),
        "threshold": now.to_json() | unknown,
        "table": [row.to_json() | unknown | {"chosen": row is now} for row in table],
    }
