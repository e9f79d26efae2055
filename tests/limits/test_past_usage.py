"""Requests held against what jobs of the kind needed before."""

import polars as pl
import pytest

from tests.limits.examples import GIB, Known, assess, findings, job, kinds, past_of
from tocsin.core.detector import Budget
from tocsin.core.stages import Stage
from tocsin.core.units import UNLIMITED
from tocsin.demo.cluster import START, DemoCluster
from tocsin.history.replay import Replay
from tocsin.limits.detector import DETECTOR


def test_a_time_limit_below_all_similar_jobs_is_reported_with_the_numbers() -> None:
    (finding,) = findings(features=past_of("name", 12), time_limit=1800)
    assert (finding.kind, str(finding.level)) == ("time_below_every_run", "warning")
    assert finding.text == (
        "requests a time limit of 00:30:00, but all 12 completed jobs of this user with this name ran longer "
        "(01:00:00 to 02:00:00); request 02:24:00, or keep it if this job has less to do"
    )
    (parts,) = assess(job(time_limit=1800), past=Known(None, past_of("name", 12)))
    assert [advice.change for advice in parts.advice] == ["--time=02:24:00"]


@pytest.mark.parametrize(
    ("key", "completed", "level"),
    [
        ("name", 9, None),
        ("name", 10, "warning"),
        ("name", 500, "warning"),
        ("script", 2, None),
        ("script", 3, "warning"),
        ("script", 9, "warning"),
        ("script", 10, "critical"),
    ],
)
def test_only_the_same_script_run_often_is_critical(key: str, completed: int, level: str | None) -> None:
    found = kinds(features=past_of(key, completed), time_limit=1800)
    assert found.get("time_below_every_run") == level


def test_a_limit_somewhat_below_jobs_with_the_same_name_has_no_finding() -> None:
    for key, limit, level in (("name", 2700, None), ("name", 2699, "warning"), ("script", 3599, "critical")):
        assert kinds(features=past_of(key, 50), time_limit=limit).get("time_below_every_run") == level


def test_a_limit_that_some_run_kept_has_no_finding() -> None:
    for limit in (3600, 3601, UNLIMITED, None):
        assert kinds(machine=None, features=past_of("script", 50), time_limit=limit) == {}


def test_memory_far_below_what_the_same_script_used_is_a_warning() -> None:
    (finding,) = findings(features=past_of("script", 4), req_memory=2 * GIB)
    assert (finding.kind, str(finding.level)) == ("memory_below_past_peak", "warning")
    assert "requests 2G on each node" in finding.text
    assert "used 8G; request 9831M" in finding.text
    for enough in (5 * GIB, 0, None):
        assert kinds(features=past_of("script", 4), req_memory=enough) == {}


def test_history_of_the_demo_cluster_is_read_through_the_contract() -> None:
    cluster = DemoCluster(seed=7, days=10)
    log = pl.concat(cluster.accounting(START, START + 10 * 86400)).with_columns(known_at=pl.col("end") + 60)
    past = Replay(log, machine=cluster.machine(), scripts=dict(cluster.scripts()).get)
    fitted = DETECTOR.fit(log, past, stage=Stage.SUBMIT, seed=1, budget=Budget())
    answers = fitted.assess(log, past, stage=Stage.SUBMIT)
    # every job of the demo is one that its machine can run
    assert not [f for parts in answers for f in parts.findings if f.level == "critical"]
    often = log.group_by("user", "name").len().sort("len").tail(1)
    last = log.join(often, on=["user", "name"]).sort("submit").tail(1).select(log.columns)
    short = last.with_columns(time_limit=pl.lit(1, pl.Int64), script=pl.lit(None, pl.String))
    (parts,) = fitted.assess(short, past, stage=Stage.SUBMIT)
    assert [finding.kind for finding in parts.findings] == ["time_below_every_run"]
