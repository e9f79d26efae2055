"""`tocsin backtest`: figures with their names, one line per job, an audit, and clear errors."""

import json
from datetime import UTC
from pathlib import Path

import pytest

from tests.conftest import unavailable
from tests.kits.command_line import Tocsin
from tests.kits.swf_log import swf_log
from tests.services import missing
from tocsin.app import backtest as command
from tocsin.core.outcomes import Outcome
from tocsin.core.units import parse_instant
from tocsin.learn.audit import Audit

QUICK = ("--every-days", 4, "--trials", 1)
JOBS = 1600
"""Eleven days; a cluster's first model takes 1,000 outcomes."""


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    if sentence := missing("lightgbm"):
        unavailable(sentence)
    monkeypatch.setattr(command, "threads", lambda: 1)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "habits.swf"
    path.write_text(swf_log(JOBS))
    return path


def test_every_job_from_the_first_on_is_one_line(tocsin: Tocsin, log: Path, tmp_path: Path) -> None:
    said = tocsin("backtest", log, *QUICK, "--predictions", tmp_path / "out.jsonl", "--json")
    assert said.code == 0
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [list(line) for line in lines] == [["job", "submit", "probability", "alarms", "outcome"]] * JOBS
    submits = [1_000_000_000 + number * 600 for number in range(1, JOBS + 1)]
    assert [parse_instant(line["submit"], UTC) for line in lines] == submits
    assert [line["job"] for line in lines] == [
        f"habits:{number}@{submit}" for number, submit in enumerate(submits, start=1)
    ]
    assert all(0 <= line["probability"] <= 1 for line in lines)
    assert {line["outcome"] for line in lines} == {Outcome.COMPLETED, Outcome.FAILED}
    document = json.loads(said.out)
    assert (document["predicted"], document["judged"], document["without_model"]) == (JOBS, JOBS, 2)
    assert (document["target"], document["stage"]) == ("unsuccessful", "submit")
    assert (
        document["split"]
        == "retrained every 4 days on everything known by then, then predicted the next 4 days"
    )
    assert "a first model of its own needs 1,000" in document["refused"], (
        "the shipped model predicts the first days"
    )
    assert "audit" not in document
    sources = {source["source"]: source for source in document["sources"]}
    assert list(sources) == ["model", "shortages", "limits", "all"]
    assert sources["model"]["alarms"] == sum("model" in line["alarms"] for line in lines) > 0
    assert sources["all"]["alarms"] == sum(bool(line["alarms"]) for line in lines)
    assert [bool(source["missing"]) for source in sources.values()] == [False, False, True, False]
    figures = {figure["name"]: figure for figure in document["figures"]}
    assert figures["auc"]["value"] > 0.8, "a user whose jobs always fail is learned"
    assert figures["auc"]["low"] < figures["auc"]["value"] < figures["auc"]["high"]


def test_the_report_names_what_was_measured_on_what(tocsin: Tocsin, log: Path) -> None:
    said = tocsin("backtest", log, *QUICK, "--audit")
    assert said.code == 0
    assert (
        "1,600 jobs predicted at submit, target unsuccessful, 1,600 of them with an outcome that counts"
        in said.out
    )
    assert (
        "retrained every 4 days on everything known by then, then predicted the next 4 days, from 2001-09-09T01:56:40Z on"
        in said.out
    )
    for name in ("accuracy", "precision", "recall", "f1", "auc", "brier", "calibration_error", "baseline"):
        assert f"  {name} " in said.out
    for source in ("model", "shortages", "limits", "all"):
        assert f"\n{source} " in said.out
    assert "note: 2 steps could train no model and predicted by the shipped model: " in said.err
    assert "note: limits: " in said.err, "a log has no nodes and partitions"
    assert "2001-09 " in said.out
    assert "audit passed: with everything changed that became known after 2001-09-1" in said.err


def test_the_store_is_walked_as_the_log_is(tocsin: Tocsin, log: Path, tmp_path: Path) -> None:
    assert tocsin("import", log).code == 0
    for name, of in {"store": ["--store"], "log": [log]}.items():
        assert tocsin("backtest", *of, *QUICK, "--predictions", tmp_path / name).code == 0
    assert (tmp_path / "store").read_bytes() == (tmp_path / "log").read_bytes()


def test_training_days_and_retraining_interval_are_options(tocsin: Tocsin, log: Path) -> None:
    said = tocsin("backtest", log, "--train-days", 1.5, "--every-days", 1, "--trials", 1, "--json")
    document = json.loads(said.out)
    assert document["split"] == (
        "retrained every day on the known jobs of the last 1.5 days, then predicted the next day"
    )
    assert document["predicted"] == JOBS
    assert document["without_model"] == 7
    assert document["trainings"] >= 2


def test_the_engine_and_the_shortest_jobs_are_options(tocsin: Tocsin, log: Path) -> None:
    said = tocsin("backtest", log, *QUICK, "--engine", "bagged", "--shortest", 60, "--audit", "--json")
    document = json.loads(said.out)
    assert document["engine"] == "bagged"
    assert document["too_short"] > 0
    assert document["predicted"] < JOBS
    assert document["audit"]["clean"]


def test_an_audit_is_part_of_the_document(tocsin: Tocsin, log: Path) -> None:
    found = json.loads(tocsin("backtest", log, *QUICK, "--audit", "--json").out)["audit"]
    assert found["clean"]
    assert found["differing"] == 0
    assert found["compared"] > 100


def test_a_leak_is_an_error(tocsin: Tocsin, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leak = Audit(until=1_000_300_000, compared=200, differing=3, example="habits:7@1000006300")
    monkeypatch.setattr("tocsin.learn.audit.audit", lambda *_, **__: leak)
    said = tocsin("backtest", log, *QUICK, "--audit")
    assert said.code == 1
    assert "audit failed" in said.err
    assert "3 of 200 earlier predictions differ, first that of job habits:7@1000006300" in said.err


def test_jobs_that_still_run_are_predicted_and_not_judged(tocsin: Tocsin, tmp_path: Path) -> None:
    tocsin("demo", "--days", 3)
    said = tocsin(
        "backtest", "--store", "-M", "demo", "--every-days", 1, "--trials", 1, "--stage", "start", "--json"
    )
    document = json.loads(said.out)
    assert document["target"] == "failed"
    assert document["judged"] < document["predicted"]


def test_a_log_with_one_class_reports_why_and_the_baseline(tocsin: Tocsin, tmp_path: Path) -> None:
    (tmp_path / "good.swf").write_text(swf_log(JOBS, failing=False))
    said = tocsin("backtest", tmp_path / "good.swf", *QUICK, "--audit")
    assert said.code == 0
    assert "jobs are unsuccessful; training needs at least 10 that are" in said.err
    assert "0 trainings" in said.out
    assert "baseline             1.0000" in said.out
    assert "auc                  all rows are of one class" in said.out
    document = json.loads(tocsin("backtest", tmp_path / "good.swf", *QUICK, "--json").out)
    assert "training needs at least 10 that are" in document["refused"]
    assert (document["trainings"], document["without_model"]) == (0, 3)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "has no job that can be read"),
        ("; UnixStartTime: 1000000000\n", "has no job that can be read"),
        (swf_log(1), "1 of 1 jobs reached submit; a back-test needs at least 100: read a longer log"),
        (swf_log(99), "99 of 99 jobs reached submit; a back-test needs at least 100: read a longer log"),
    ],
    ids=["empty", "header", "one", "few"],
)
def test_a_log_too_small_is_refused(tocsin: Tocsin, tmp_path: Path, content: str, sentence: str) -> None:
    (tmp_path / "small.swf").write_text(content)
    said = tocsin("backtest", tmp_path / "small.swf")
    assert said.code == 1
    assert sentence in said.err
    assert said.out == ""


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--rule", "nonsense"], 2, '"nonsense" is not a threshold rule; write KIND=VALUE'),
        (["--rule", "luck=0.9"], 1, '"luck" is not a threshold rule; the rules are precision_at_least'),
        (["--rule", "precision_at_least=7"], 1, "7.0 is not a valid value for precision_at_least"),
        (["--rule", "recall_at_least=nan"], 1, "nan is not a valid value for recall_at_least"),
        (["--every-days", "inf"], 2, "inf is not a number of days"),
        (["--every-days", "nan"], 2, "nan is not a number of days"),
        (["--every-days", "0"], 2, "0.0 is not in the range"),
        (["--train-days", "1e300"], 2, "1e+300 is not a number of days"),
        (["--stage", "end"], 2, "'end' is not one of 'submit', 'start', 'early'"),
        (["--target", "luck"], 2, "'luck' is not one of"),
        (["--predictions", "/nowhere/out.jsonl"], 1, "/nowhere/out.jsonl cannot be written"),
        (["--store"], 2, "LOG, or --store"),
    ],
)
def test_nonsense_is_refused_with_a_sentence(
    tocsin: Tocsin, log: Path, arguments: list[str], code: int, sentence: str
) -> None:
    said = tocsin("backtest", log, *arguments)
    assert said.code == code
    assert sentence in said.err
    assert "internal error" not in said.err


def test_jobs_of_two_clusters_are_not_walked_at_once(tocsin: Tocsin, log: Path) -> None:
    for name in ("one", "two"):
        tocsin("import", log, "-M", name)
    said = tocsin("backtest", "--store")
    assert said.code == 1
    assert "there are jobs of 2 clusters: one, two; name one with -M" in said.err


def test_jobs_that_the_target_does_not_count_are_listed(tocsin: Tocsin, tmp_path: Path) -> None:
    rows = [
        f"{n} {n * 600} 5 100 4 -1 -1 4 200 -1 {(1, 1, 0, 5)[n % 4]} 1 1 1 1 -1 -1 -1" for n in range(1, 201)
    ]
    (tmp_path / "few.swf").write_text("; UnixStartTime: 1000000000\n" + "\n".join(rows) + "\n")
    said = tocsin("backtest", tmp_path / "few.swf", "--target", "failed")
    assert said.code == 0
    assert (
        "200 jobs predicted at submit, target failed, 150 of them with an outcome that counts\n" in said.out
    )
    assert (
        "failing: boot_fail, deadline, failed, node_fail, out_of_memory, timeout; good: completed; left out: 50 cancelled\n"
        in said.out
    )
    assert "promised precision 0.8: not tested, because the model raised no alarm in 1 month\n" in said.out


def test_a_log_that_does_not_say_how_jobs_ended_is_refused(tocsin: Tocsin, tmp_path: Path) -> None:
    rows = "".join(f"{n},ann,{1_600_000_000 + n * 600},{n % 3}\n" for n in range(150))
    (tmp_path / "x.csv").write_text("job_id,user,submit_time,status\n" + rows)
    said = tocsin("backtest", tmp_path / "x.csv")
    assert said.code == 1
    assert (
        "none of 150 jobs ended in a way that the target failed counts: 150 without an outcome; give a log"
        in said.err
    )
