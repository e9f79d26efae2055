"""Nodes to avoid: those that fail jobs beyond chance, and no others."""

import numpy as np
import polars as pl
import pytest

from tests.kits.ended_jobs import DAY, job, jobs
from tocsin.core.detector import Budget
from tocsin.core.machine import Machine, Node, Partition
from tocsin.core.outcomes import Outcome
from tocsin.core.stages import Stage
from tocsin.demo.cluster import DemoCluster
from tocsin.failure.bad_nodes import bad_nodes, nodes_of_jobs, partition_nodes
from tocsin.failure.detector import FailureDetector
from tocsin.failure.history_features import NODE_FEATURES, history_features
from tocsin.history.replay import Replay


def month(bad: str = "n3") -> pl.DataFrame:
    """Eight users on ten nodes; on the bad one every second job fails, on the others one in twenty."""
    rng = np.random.default_rng(1)
    rows = []
    for n in range(1600):
        node = f"n{rng.integers(10)}"
        fails = rng.random() < (0.5 if node == bad else 0.05)
        rows.append(
            job(
                n,
                submit=n * 600,
                user=f"u{rng.integers(8)}",
                node_list=node,
                outcome=Outcome.FAILED if fails else Outcome.COMPLETED,
            )
        )
    return jobs(rows)


def asking(node_list: str | None, at: int) -> pl.DataFrame:
    return jobs([job(9999, submit=at, node_list=node_list, outcome=None, elapsed=None)])


def test_the_bad_node_among_those_of_a_job_is_named() -> None:
    log = month()
    nodes = nodes_of_jobs(asking("n[1-4]", 1600 * 600), Replay(log), stage=Stage.START)[0]
    assert nodes is not None
    assert [avoid.node for avoid in nodes.avoid] == ["n3"]
    assert "jobs that ended on it in the last 7 days failed" in nodes.avoid[0].why


def test_what_became_known_later_is_not_held_against_it() -> None:
    log = month()
    early = nodes_of_jobs(asking("n[1-4]", 30 * 600), Replay(log), stage=Stage.START)[0]
    assert early is not None
    assert early.avoid == []


def test_a_node_that_was_bad_a_month_ago_is_forgotten() -> None:
    nodes = nodes_of_jobs(asking("n3", 1600 * 600 + 30 * DAY), Replay(month()), stage=Stage.START)[0]
    assert nodes is not None
    assert nodes.avoid == []


def test_where_no_node_is_worse_none_is_named() -> None:
    log = month(bad="none")
    found = nodes_of_jobs(
        pl.concat([asking("n[0-9]", at) for at in range(DAY, 1600 * 600, DAY)]),
        Replay(log),
        stage=Stage.START,
    )
    assert all(nodes is not None and nodes.avoid == [] for nodes in found)


def test_at_submission_a_job_has_no_nodes() -> None:
    assert nodes_of_jobs(asking("n3", 1600 * 600), Replay(month()), stage=Stage.SUBMIT) == [None]
    assert nodes_of_jobs(asking(None, 1600 * 600), Replay(month()), stage=Stage.START) == [None]
    assert nodes_of_jobs(asking("n[3", 1600 * 600), Replay(month()), stage=Stage.START) == [None]


def test_the_nodes_of_a_partition_are_known_to_advice() -> None:
    machine = Machine(
        cluster="lab",
        nodes=tuple(Node(name=f"n{n}", partitions=("main",)) for n in range(10)),
        partitions=(Partition(name="main", default=True), Partition(name="big", node_list="m[1-2]")),
    )
    assert partition_nodes(machine, None) == [f"n{n}" for n in range(10)]
    assert partition_nodes(machine, "big,none") == ["m1", "m2"]
    assert partition_nodes(None, "main") == []
    wide = Machine(cluster="lab", partitions=(Partition(name="wide", node_list="w[1-5000]"),))
    assert len(partition_nodes(wide, "wide")) == 5000
    found = bad_nodes(partition_nodes(machine, "main"), 1600 * 600, Replay(month()))
    assert [avoid.node for avoid in found] == ["n3"]


@pytest.mark.parametrize("seed", [3, 5])
def test_on_the_demo_jobs_on_a_named_node_are_lost_far_more_often(seed: int) -> None:
    log = pl.concat(batch.jobs for batch in DemoCluster(seed=seed, days=20).history().batches())
    log = log.with_columns(known_at=pl.when(pl.col("outcome").is_not_null()).then(pl.col("end") + 60))
    started = log.filter(pl.col("start").is_not_null())
    found = nodes_of_jobs(started, Replay(log), stage=Stage.START)
    named = pl.Series([bool(nodes and nodes.avoid) for nodes in found])
    lost = started["outcome"].eq("node_fail").fill_null(False)
    assert 0 < named.sum() < 0.1 * started.height
    assert len({avoid.node for nodes in found if nodes for avoid in nodes.avoid}) <= 4
    assert float(lost.filter(named).mean()) > 5 * float(lost.filter(~named).mean())  # type: ignore[arg-type]  # shares


def test_from_its_start_on_the_past_of_its_nodes_is_known_of_a_job() -> None:
    log = month()
    asked = pl.concat([asking(nodes, 1600 * 600) for nodes in ("n[1-4]", "n1", "strange", None)])
    found = history_features(asked, Replay(log), stage=Stage.START).select(*NODE_FEATURES)
    worst, good = found["nodes.beyond"][0], found["nodes.beyond"][1]
    assert worst > 10 > good
    assert found["nodes.failed_week"][0] > 2 * found["nodes.failed_week"][1] > 0
    assert found["nodes.failed_week"][2] is None
    assert found.row(3) == (None, None, None)
    assert history_features(
        asked, Replay(log), stage=Stage.START, names=["nodes.beyond", "user.ended"]
    ).columns == [
        "nodes.beyond",
        "user.ended",
    ]
    assert not set(NODE_FEATURES) & set(history_features(asked, Replay(log), stage=Stage.SUBMIT).columns)


def test_a_model_at_start_knows_a_bad_node_and_one_at_submit_does_not() -> None:
    log, past = month(), Replay(month())
    late = log.tail(300)
    on_bad = (late["node_list"] == "n3").to_numpy()
    apart = {}
    for stage in (Stage.SUBMIT, Stage.START):
        model = FailureDetector(explainers=False).fit(
            log.head(1300), past, stage=stage, seed=0, budget=Budget(trials=1)
        )
        p = model.probabilities(late, history_features(late, past, stage=stage))
        apart[stage] = p[on_bad].mean() - p[~on_bad].mean()
    assert apart[Stage.START] > 0.25
    assert abs(apart[Stage.SUBMIT]) < 0.05
