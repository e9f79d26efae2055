"""What users see of others: nothing that names a job, a place or a time."""

from dataclasses import replace

from tests.core.test_verdict import FULL
from tocsin.core.outcomes import Outcome
from tocsin.core.verdict import Similar
from tocsin.serve.principal import Principal, Role
from tocsin.serve.visible import visible, visible_points

ANN, OLGA = Principal("ann", Role.USER, "test"), Principal("olga", Role.OPERATOR, "test")
OWN = Similar(job="lab:9@1794700000", outcome=Outcome.OUT_OF_MEMORY, distance=0.1, user="ann")
OTHER = Similar(job="lab:8@1794700000", outcome=Outcome.FAILED, distance=0.1, user="bob")
NOBODYS = Similar(job="lab:7@1794700000", outcome=Outcome.FAILED, distance=0.1)


def test_of_similar_jobs_users_see_their_own_and_not_how_those_of_others_ended() -> None:
    assert FULL.failure
    document = replace(FULL, failure=replace(FULL.failure, similar=[OTHER, OWN, NOBODYS])).to_json()
    assert [each["job"] for each in visible(document, ANN)["failure"]["similar"]] == [OWN.job]
    assert visible(document, OLGA)["failure"]["similar"] == document["failure"]["similar"]


def test_windows_of_other_jobs_have_neither_node_nor_time() -> None:
    place = {"node": "n7", "cpu": 3, "at": "2026-11-15T20:43:13Z", "x": 0.1, "y": 2.0}
    document = {"job": OWN.job, "points": [{**place, "mine": True}, {**place, "mine": False}]}
    own, other = visible_points(document, ANN)["points"]
    assert own == {**place, "mine": True}
    assert other == {"x": 0.1, "y": 2.0, "mine": False}
    assert visible_points(document, OLGA) == document
