"""Causes are kept by job, with the verdict or by themselves, and go with their jobs."""

from tests.kits.ended_jobs import job, jobs
from tocsin.core.decision import Decision
from tocsin.core.stages import Stage
from tocsin.core.verdict import Cause, Level, Verdict
from tocsin.store.causes import keep_cause, latest_runs
from tocsin.store.database import Store
from tocsin.store.decisions import record
from tocsin.store.home import Home
from tocsin.store.jobs import upsert
from tocsin.store.retention import prune

CAUSE = Cause(kind="disk", title="Disk full", text="No space left", file="/a/b", line=3, advice="Free space.")


def runs(store: Store, **more: object) -> list[tuple[str, str, str | None]]:
    asked = {"cluster": "lab", "user": "ann", "name": "relax", "known_by": 10**9, "most": 5, **more}
    found = latest_runs(store, **asked)  # type: ignore[arg-type]  # a test's own keywords
    return [(run.job, run.outcome, run.cause.kind if run.cause else None) for run in found]


def test_the_last_runs_come_with_their_causes_as_far_as_they_were_known(store: Store) -> None:
    upsert(store, jobs([job(1, outcome="failed"), job(2), job(3, user="bob"), job(4, name="other"), job(5)]))
    keep_cause(store, "lab:1@1000", CAUSE, 9000)
    assert runs(store) == [
        ("lab:5@5000", "completed", None), ("lab:2@2000", "completed", None), ("lab:1@1000", "failed", "disk"),
    ]  # fmt: skip
    assert [run[0] for run in runs(store, known_by=3000)] == ["lab:2@2000", "lab:1@1000"]
    assert [run[0] for run in runs(store, skip="lab:2@2000", most=1)] == ["lab:5@5000"]


def test_a_second_look_replaces_the_first(store: Store) -> None:
    upsert(store, jobs([job(1, outcome="failed")]))
    keep_cause(store, "lab:1@1000", Cause(kind="unknown", title="unknown", text=""), 1)
    keep_cause(store, "lab:1@1000", CAUSE, 2)
    [run] = latest_runs(store, cluster="lab", user="ann", name="relax", known_by=10**9, most=5)
    assert run.cause == CAUSE


def test_the_cause_in_a_verdict_is_kept_and_pruned_with_its_job(store: Store, home: Home) -> None:
    upsert(store, jobs([job(1, outcome="failed")]))
    verdict = Verdict(job="lab:1@1000", stage=Stage.END, at=5, known_until=5, level=Level.OK, cause=CAUSE)
    record(store, Decision(verdicts=[verdict]))
    assert runs(store) == [("lab:1@1000", "failed", "disk")]
    prune(store, home, before=10**9)
    upsert(store, jobs([job(1, outcome="failed")]))
    assert runs(store) == [("lab:1@1000", "failed", None)]
