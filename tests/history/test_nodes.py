"""How jobs ended on each node: the same at once and outcome by outcome, and blind to what came later."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.history.test_history import LAG, Store, known
from tocsin.core.fields import Job
from tocsin.core.frames import from_jobs
from tocsin.core.outcomes import Outcome
from tocsin.core.stages import Stage
from tocsin.demo.cluster import DemoCluster
from tocsin.history import nodes
from tocsin.history.ledger import Ledger
from tocsin.history.replay import Replay
from tocsin.history.snapshot import open_ledger, save_ledger

HOUR, DAY = 3600, 86400
ASKED = pl.Schema({"at": pl.Int64(), "node": pl.String()})


def ended(number: int, end: int, node_list: str | None, outcome: Outcome, **fields: str) -> Job:
    told: dict[str, Any] = {"user": "ann", "name": "relax", **fields}
    return Job(
        cluster="lab", job_id=number, task=None, submit=max(end - 100, 0), start=max(end - 90, 0), end=end,
        node_list=node_list, outcome=outcome, known_at=end + LAG, **told,
    )  # fmt: skip


def questions(*pairs: tuple[int, str]) -> pl.DataFrame:
    return pl.DataFrame(pairs, schema=ASKED, orient="row")


@pytest.fixture(scope="module")
def demo() -> pl.DataFrame:
    return known(pl.concat(batch.jobs for batch in DemoCluster(seed=3, days=12).history().batches()))


def asked_at_starts(log: pl.DataFrame) -> pl.DataFrame:
    started = log.filter(pl.col("start").is_not_null(), pl.col("node_list").is_not_null()).sort("start")
    names = [nodes.nodes_of(text) for text in started["node_list"]]
    return pl.DataFrame({"at": started["start"], "node": names}).explode("node").cast(ASKED)


def test_both_forms_agree_on_the_demo(demo: pl.DataFrame) -> None:
    asked = asked_at_starts(demo)
    ledger = Ledger()
    ledger.learn(demo)
    days = asked.with_columns(day=pl.col("at") // DAY).partition_by(
        "day", maintain_order=True, include_key=False
    )
    found = Replay(demo).node_outcomes(asked)
    assert found.equals(pl.concat(ledger.node_outcomes(day) for day in days))
    assert found["failed"].sum() > 1000
    assert found["crashes"].sum() > 100


outcomes = st.sampled_from([Outcome.COMPLETED, Outcome.FAILED, Outcome.NODE_FAIL, Outcome.OUT_OF_MEMORY, Outcome.PREEMPTED])  # fmt: skip
rows = st.tuples(
    st.integers(0, 40), outcomes, st.sampled_from([None, "n1", "n[1-2]", "n[1-3],n1", "n[9", "m[1-9999]"]),
    st.sampled_from([None, "ann", "bob"]), st.sampled_from([None, "a"]),
)  # fmt: skip


@given(
    st.lists(rows, max_size=30), st.lists(st.tuples(st.integers(0, 50), st.sampled_from(["n1", "n2", "x"])))
)
@settings(deadline=None, max_examples=60)
def test_both_forms_agree_on_any_log(log: list, wanted: list) -> None:  # type: ignore[type-arg]  # rows as above
    frame = from_jobs(
        Job(
            cluster="lab", job_id=number, task=None, submit=0, start=0, end=when * 400, known_at=when * 400 + LAG,
            outcome=outcome, node_list=node_list, user=user, name=name,
        )
        for number, (when, outcome, node_list, user, name) in enumerate(log)
    )  # fmt: skip
    asked = questions(*sorted((at * 400, node) for at, node in wanted))
    ledger = Ledger()
    ledger.learn(frame)
    one_by_one = [ledger.node_outcomes(asked[row]) for row in range(asked.height)]
    assert (
        Replay(frame).node_outcomes(asked).equals(pl.concat([pl.DataFrame(schema=nodes.ANSWER), *one_by_one]))
    )


def test_only_outcomes_known_by_then_and_of_the_last_week_count() -> None:
    log = from_jobs([ended(1, 1000, "n1", Outcome.FAILED), ended(2, 2000, "n[1-2]", Outcome.COMPLETED)])
    moments = (1000 + LAG - 1, 1000 + LAG, 2000 + LAG, 1000 + LAG + 7 * DAY - 1, 1000 + LAG + 7 * DAY)
    for past in (Replay(log), Ledger()):
        if isinstance(past, Ledger):
            past.learn(log)
        found = past.node_outcomes(questions(*((at, "n1") for at in moments)))
        assert found["ended"].to_list() == [0, 1, 2, 2, 1]
        assert found["failed"].to_list() == [0, 1, 1, 1, 0]
        assert found["nodes"].to_list() == [0, 1, 2, 2, 2]


def test_failures_that_were_to_be_expected_of_a_user_are_no_fault_of_the_node() -> None:
    """Ann's jobs fail wherever they run; bob's never did."""
    log = from_jobs(
        [ended(n, n * HOUR, "n1", Outcome.FAILED) for n in range(1, 21)]
        + [ended(n, n * HOUR, "n2", Outcome.COMPLETED, user="bob") for n in range(31, 51)]
        + [ended(n, n * HOUR, "n2", Outcome.FAILED, user="bob") for n in range(61, 64)]
    )
    found = Replay(log).node_outcomes(questions((64 * HOUR, "n1"), (64 * HOUR, "n2")))
    ann, bob = found.rows(named=True)
    assert ann["failed"] == 20
    assert ann["expected"] > 15
    assert bob["failed"] == 3
    assert bob["expected"] < 2.5


def test_all_jobs_lost_at_once_are_one_crash() -> None:
    log = from_jobs(
        [ended(n, DAY + n, "n1", Outcome.NODE_FAIL) for n in range(1, 9)]
        + [ended(n, 2 * DAY + n, "n1", Outcome.NODE_FAIL) for n in range(11, 13)]
    )
    found = Replay(log).node_outcomes(questions((3 * DAY, "n1")))
    assert found["ended"].to_list() == [10]
    assert found["crashes"].to_list() == [2]


def test_a_log_without_nodes_says_nothing() -> None:
    log = from_jobs([ended(n, n * HOUR, None, Outcome.FAILED) for n in range(1, 9)])
    assert Replay(log).node_outcomes(questions((DAY, "n1"))).row(0) == (0, 0, 0.0, 0, 0.0, 0)


def test_a_busy_node_is_remembered_by_its_last_outcomes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "MOST", 50)
    log = from_jobs([ended(n, n * 10, "n1", Outcome.FAILED) for n in range(1, 600)])
    ledger = Ledger()
    ledger.learn(log)
    replay = Replay(log)
    for at in (3000, 9000):
        asked = questions((at, "n1"))
        assert ledger.node_outcomes(asked)["ended"].to_list() == [50]
        assert replay.node_outcomes(asked)["ended"].to_list() == [50]
    assert len(ledger.nodes.to_json()["nodes"]["n1"][0]) < 300


def test_a_saved_ledger_remembers_the_nodes(demo: pl.DataFrame, tmp_path: Path) -> None:
    cut = int(demo["submit"].quantile(0.7) or 0)
    asked = asked_at_starts(demo).filter(pl.col("at") > cut)
    store = Store(demo)
    first = open_ledger(tmp_path, store.load, store.fingerprint)
    first.features(demo.filter(pl.col("submit") <= cut), stage=Stage.SUBMIT)
    save_ledger(tmp_path, first, store.fingerprint)
    second = open_ledger(tmp_path, store.load, store.fingerprint)
    assert store.asked[-1] > 0
    days = asked.with_columns(day=pl.col("at") // DAY).partition_by(
        "day", maintain_order=True, include_key=False
    )
    again = pl.concat(second.node_outcomes(day) for day in days)
    assert Replay(demo).node_outcomes(asked).equals(again)
