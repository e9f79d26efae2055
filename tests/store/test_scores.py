"""Scores of challengers are kept apart from verdicts, each once; both are read by cluster and instant."""

from tests.kits.job_frames import SUBMIT
from tocsin.core.decision import Decision
from tocsin.core.outcomes import Target
from tocsin.core.stages import Stage
from tocsin.core.verdict import Failure, Level, Verdict
from tocsin.store import scores
from tocsin.store.database import Store
from tocsin.store.decisions import record
from tocsin.store.scores import Score


def score(job: str, at: int = SUBMIT, **changes: float) -> Score:
    return Score(job, Stage.SUBMIT, "failure", "2", at, **{"probability": 0.5, "threshold": 0.7, **changes})


def verdict(job: str, at: int, failure: Failure | None) -> Verdict:
    return Verdict(
        job=job,
        stage=Stage.SUBMIT,
        at=at,
        known_until=at,
        level=Level.OK,
        failure=failure,
        models={"failure": "1", "limits": "0.1"},
    )


def test_a_score_is_kept_once(store: Store) -> None:
    scores.keep(store, [])
    scores.keep(store, [score("lab:1@5"), score("lab:2@5")])
    scores.keep(store, [score("lab:1@5", probability=0.9), score("lab:3@5")])
    found = scores.of_challengers(store, "lab", detector="failure", since=0)
    assert dict(found.select("job", "probability").iter_rows()) == dict.fromkeys(
        ["lab:1@5", "lab:2@5", "lab:3@5"], 0.5
    )
    assert found["version"].unique().to_list() == ["2"]


def test_scores_are_of_one_cluster_whatever_its_name(store: Store) -> None:
    scores.keep(store, [score("a_b:1@5"), score("axb:1@5"), score("a%:1@5")])
    for cluster in ("a_b", "axb", "a%"):
        found = scores.of_challengers(store, cluster, detector="failure", since=0)
        assert found["job"].to_list() == [f"{cluster}:1@5"]
    assert scores.of_challengers(store, "a", detector="failure", since=0).is_empty()
    assert scores.of_challengers(store, "a_b", detector="siren", since=0).is_empty()


def test_old_scores_are_forgotten(store: Store) -> None:
    scores.keep(store, [score("lab:1@5", at=10), score("lab:2@5", at=20)])
    scores.forget(store, before=20)
    assert scores.of_challengers(store, "lab", detector="failure", since=0)["job"].to_list() == ["lab:2@5"]
    assert scores.of_challengers(store, "lab", detector="failure", since=21).is_empty()


def test_probabilities_are_read_from_verdicts_that_have_one(store: Store) -> None:
    assert scores.last_verdict(store, "lab") is None
    said = Failure(probability=0.25, threshold=0.75, will_fail=False, target=Target.FAILED)
    given = [
        verdict("lab:1@5", 10, said),
        verdict("lab:2@5", 11, None),
        verdict("lab:3@5", 9, said),
        verdict("attic:4@5", 12, said),
    ]
    record(store, Decision(verdicts=given))
    found = scores.of_verdicts(store, "lab", detector="failure", since=10)
    assert found.rows() == [("lab:1@5", "submit", "1", 10, "failed", 0.25, 0.75)]
    assert scores.last_verdict(store, "lab") == 11
