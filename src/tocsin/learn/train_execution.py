"""Train the execution-time models on the jobs in the store, and store them in the registry."""

from dataclasses import dataclass, replace

import polars as pl

from tocsin.core.errors import ModelError
from tocsin.core.stages import Stage
from tocsin.learn.feedback import answered
from tocsin.models.aliases import is_shipped
from tocsin.models.cards import Card
from tocsin.models.registry import Registry
from tocsin.models.splits import DAY
from tocsin.store import screenings
from tocsin.store.database import Store
from tocsin.store.jobs import Filter, load
from tocsin.workload.execution.gate import LEAST_SECONDS
from tocsin.workload.execution.models import FittedExecution
from tocsin.workload.execution.training import ALPHA_DAYS, due, execution_labels, train_execution

__all__ = ["TrainedExecution", "execution_is_due", "fit_on_store", "train_on_store"]

_DETECTOR = "workload"
KEPT = 3
"""Versions kept that a service trained and that are not in use, nor were recently: the last ones."""
_BY_SERVICE = "by_service"
"""A parameter on the card: the service trained it, not a person, so it may be removed."""


@dataclass(frozen=True, slots=True)
class TrainedExecution:
    """The models and their version in the registry."""

    version: str
    model: FittedExecution
    promoted: bool

    @property
    def refused(self) -> dict[str, str]:
        """Operations that did not pass the gate, and why."""
        return {name: each.refused for name, each in self.model.operations.items() if each.refused}


def train_on_store(
    store: Store,
    registry: Registry,
    *,
    now: int,
    alpha_days: float = ALPHA_DAYS,
    cluster: str | None = None,
    seed: int = 0,
    promote: bool = True,
    why: str = "trained by hand",
    unless_held: bool = False,
) -> TrainedExecution:
    """Train on jobs that ended in the last α days, labelled by the screenings of their scripts and by answered cases.

    The model is used only if at least one operation passes the gate, and then for those operations only.
    `unless_held`: trained by a service, which keeps the last few models that are not in use.
    """
    fitted, card = fit_on_store(store, now=now, alpha_days=alpha_days, cluster=cluster, seed=seed)
    if unless_held:
        card = replace(card, parameters={**card.parameters, _BY_SERVICE: True})
    # Each training of a service is stored: the time of the last one determines when the next is due.
    version = registry.add(_DETECTOR, fitted.save, card, unless_stored=not unless_held)
    promoted = (
        promote
        and bool(fitted.in_use)
        and registry.promote(_DETECTOR, version, cluster=cluster, why=why, at=now, unless_held=unless_held)
    )
    if unless_held:
        registry.prune(_DETECTOR, lambda card: bool(card.parameters.get(_BY_SERVICE)), keep=KEPT)
    return TrainedExecution(version, fitted, promoted)


def fit_on_store(
    store: Store, *, now: int, alpha_days: float = ALPHA_DAYS, cluster: str | None = None, seed: int = 0
) -> tuple[FittedExecution, Card]:
    """Train on the jobs that ended in the α days before `now`, without storing the model."""
    since = now - round(alpha_days * DAY)
    jobs = load(store, Filter(clusters=[cluster] if cluster else [], since=since))
    jobs = jobs.filter(pl.col("end") >= since, pl.col("outcome").is_not_null())
    first = jobs["submit"].min()
    screened = screenings.operations_by_job(store, since=int(first)) if first is not None else {}  # type: ignore[arg-type]  # an instant
    by_people = answered(store, jobs)
    labels = execution_labels(jobs, screened, by_people)
    if not labels:
        raise ModelError(
            f"no job that ended in the last {alpha_days:g} days has a screened script to learn from; run: tocsin screen"
        )
    fitted = train_execution(
        jobs,
        labels,
        now=now,
        alpha_days=alpha_days,
        shortest=LEAST_SECONDS,
        answers=execution_labels(jobs, {}, by_people),
        seed=seed,
    )
    card = replace(
        fitted.card(created=now, data="the jobs in the store"), clusters=sorted(jobs["cluster"].unique())
    )
    return fitted, card


def execution_is_due(registry: Registry, *, now: int, beta_days: float) -> bool:
    """Whether there was no training, promoted or not, in the last β days."""
    newest_first = reversed([one for one in registry.versions(_DETECTOR) if not is_shipped(one)])
    cards = (registry.card(_DETECTOR, one) for one in newest_first)
    trained = next((card.created for card in cards if card.stage is Stage.END), None)
    return due(trained, now=now, beta_days=beta_days)
