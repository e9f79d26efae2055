"""A challenger scores the jobs that got a verdict, at the same stages and from the same knowledge."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tests.kits.watching import MORNING
from tocsin.core.detector import Known, Parts
from tocsin.core.errors import StoreError
from tocsin.core.outcomes import Target
from tocsin.core.stages import Stage
from tocsin.core.verdict import Failure
from tocsin.demo.cluster import DemoCluster
from tocsin.history.ledger import Ledger
from tocsin.judge.answers import DetectorModels, Model
from tocsin.judge.judge import Judge
from tocsin.store import scores
from tocsin.store.database import Store
from tocsin.watch.challengers import Challengers
from tocsin.watch.watcher import Watcher

STAGES = (Stage.SUBMIT, Stage.START, Stage.EARLY)
Rows = dict[tuple[str, str], float]


@dataclass
class Echo:
    """Its probability is a fingerprint of what was known of the job."""

    broken: bool = False

    def assess(self, jobs: pl.DataFrame, known: Known, *, stage: Stage) -> list[Parts]:
        if self.broken:
            raise RuntimeError("out of tune")
        found = known.features(jobs, stage=stage)
        prints = found.hash_rows(seed=1) % 1_000_003 / 1_000_003
        return [
            Parts(failure=Failure(probability=p, threshold=2.0, will_fail=False, target=Target.FAILED))
            for p in prints.to_list()
        ]

    def explain(self, job: pl.DataFrame, known: Known, *, stage: Stage) -> Parts:
        return self.assess(job, known, stage=stage)[0]

    def save(self, folder: Path) -> None:
        raise NotImplementedError


def models(version: str, fitted: Echo) -> Mapping[Stage, Model]:
    return {stage: Model(fitted, version) for stage in STAGES}


class Run:
    """A watch of the demo cluster with a model in use, and another beside it."""

    def __init__(self, store: Store, challenger: Echo) -> None:
        self.cluster, self.notes = DemoCluster(), list[str]()
        beside = {stage: {"echo": model} for stage, model in models("2", challenger).items()}
        self.challengers = Challengers(store, lambda: beside, self.notes.append)
        self.store = store
        self.watcher = Watcher(
            self.cluster,
            store,
            Judge({"echo": DetectorModels(models("1", Echo()))}),
            Ledger(),
            challengers=self.challengers,
            seconds=lambda: 0.0,
        )

    def round(self, now: int, *, score: bool = True) -> None:
        self.cluster.clock.advance_to(now)
        self.watcher.step(now)
        if score:
            self.challengers.score()

    def given(self) -> Rows:
        return rows(scores.of_verdicts(self.store, "demo", detector="echo", since=0))

    def beside(self) -> Rows:
        return rows(scores.of_challengers(self.store, "demo", detector="echo", since=0))


def rows(frame: pl.DataFrame) -> Rows:
    assert frame.select("job", "stage").is_duplicated().sum() == 0
    return {(job, stage): p for job, stage, p in frame.select("job", "stage", "probability").iter_rows()}


def test_both_score_the_same_jobs_from_the_same_knowledge_also_after_an_outage(store: Store) -> None:
    run = Run(store, Echo())
    for now in range(MORNING, MORNING + 900, 60):
        run.round(now)
    run.round(MORNING + 3 * 3600)  # two hours and three quarters later: verdicts are late
    run.round(MORNING + 3 * 3600 + 60)
    given, beside = run.given(), run.beside()
    assert {stage for _, stage in given} == {str(stage) for stage in STAGES}
    assert len(given) > 100
    assert len(set(given.values())) > 50, "the fingerprints tell jobs and instants apart"
    assert beside == given
    assert run.notes == []


def test_what_was_not_scored_in_its_round_is_never_scored_with_later_knowledge(store: Store) -> None:
    run = Run(store, Echo())
    run.round(MORNING)
    run.round(MORNING + 600, score=False)  # the process was busy dying
    lost = run.given().keys() - run.beside().keys()
    assert lost
    run.round(MORNING + 660)
    assert run.beside().keys() == run.given().keys() - lost
    run.challengers.score()
    assert run.beside().keys() == run.given().keys() - lost


def test_a_broken_challenger_harms_no_verdict_and_is_reported_once(store: Store) -> None:
    run = Run(store, Echo(broken=True))
    for now in range(MORNING, MORNING + 600, 60):
        run.round(now)
    assert len(run.given()) > 20
    assert run.beside() == {}
    assert sorted(run.notes) == sorted(
        f"the challenger echo 2 at {stage}: it failed: RuntimeError: out of tune"
        for stage in {stage for _, stage in run.given()}
    )


def test_a_store_that_is_locked_costs_the_scores_of_a_round_and_nothing_else(store: Store) -> None:
    run = Run(store, Echo())
    run.round(MORNING, score=False)
    locked = Challengers(_Locked(store.engine, store.timeout), run.challengers.models, run.notes.append)
    locked.judged = run.challengers.judged
    locked.score()
    assert run.notes == ["the scores of challengers were not stored: it is locked"]
    run.round(MORNING + 1800)
    assert run.beside()


class _Locked(Store):
    def writing(self) -> None:  # type: ignore[override]  # it never opens
        raise StoreError("it is locked")
