"""`tocsin train failure`, `threshold` and `predict`."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, unavailable
from tests.kits.command_line import Tocsin
from tests.kits.swf_log import swf_log
from tests.services import missing
from tests.test_docs import _BLOCK, _COMMAND
from tocsin.app import backtest, train
from tocsin.cli.main import run

UNDO = "undo: tocsin models promote failure 1"


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (backtest, train):
        monkeypatch.setattr(module, "threads", lambda: 1)


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a log and a model of it, made once."""
    if sentence := missing("lightgbm"):
        unavailable(sentence)
    folder = tmp_path_factory.mktemp("learned")
    (folder / "lab.swf").write_text(swf_log())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "threads", lambda: 1)
        patch.setenv("TZ", "UTC")
        for line in (["import", folder / "lab.swf"], ["train", "failure", "--trials", 1, "--json"]):
            with pytest.raises(SystemExit) as ended:
                run(["--home", str(folder / "home"), *map(str, line)])
            assert not ended.value.code
    return folder


@pytest.fixture
def home(learned: Path, tmp_path: Path, tocsin: Tocsin) -> Path:
    """A copy of it for this test."""
    return Path(shutil.copytree(learned / "home", tmp_path / "home"))


def test_a_training_prints_its_figures_and_its_curves_can_be_drawn(tocsin: Tocsin, tmp_path: Path) -> None:
    (tmp_path / "lab.swf").write_text(swf_log())
    log = tmp_path / "lab.swf"
    said = tocsin("train", "failure", log, "--trials", 1, "--no-promote", "--shortest", 60)
    assert said.code == 0
    assert "failure 1: target unsuccessful at submit, trained on " in said.out
    assert "measured on the last 20%, which was used for nothing else:" in said.out
    for name in ("auc", "baseline", "raises ", "most important features: "):
        assert f"  {name}" in said.out
    assert "jobs that ran for less than 60 s" in said.err
    assert "tocsin models promote failure 1" in said.err
    assert tocsin("models", "show", "failure", "1", "--out", tmp_path / "charts").code == 0
    assert (tmp_path / "charts" / "precision-recall.svg").is_file()
    assert json.loads(tocsin("threshold", "--json").out)["version"] == "builtin"
    assert tocsin("models", "promote", "failure", "1").code == 0
    assert tocsin("threshold").code == 0


def test_a_training_as_json(home: Path, tocsin: Tocsin) -> None:
    document = json.loads(tocsin("train", "failure", "--stage", "start", "--trials", 1, "--json").out)
    assert (document["stage"], document["target"], document["promoted"]) == ("start", "unsuccessful", True)
    assert "used for nothing else" in document["split"]
    assert document["figures"]["auc"] > 0.8
    assert document["features"] > 5
    assert all(reason for reason in document["dropped"].values())
    assert list(document["importances"].values()) == sorted(document["importances"].values(), reverse=True)
    assert json.loads(tocsin("predict", 500, "--stage", "start", "--json").out)[0]["stage"] == "start"


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        (
            swf_log(50),
            "50 of 50 jobs have a known outcome for the target unsuccessful at submit; training needs",
        ),
        (swf_log(200, failing=False), "jobs are unsuccessful; training needs at least 10 that are"),
        ("", "has no job that can be read"),
    ],
    ids=["few", "one class", "empty"],
)
def test_a_log_that_cannot_train_a_model_is_refused(
    tocsin: Tocsin, tmp_path: Path, log: str, sentence: str
) -> None:
    (tmp_path / "a.swf").write_text(log)
    said = tocsin("train", "failure", tmp_path / "a.swf")
    assert said.code == 1
    assert sentence in said.err


def test_an_empty_store_and_an_invalid_rule_are_refused(tocsin: Tocsin) -> None:
    assert "the store has no jobs; `tocsin import` reads some" in tocsin("train", "failure").err
    assert '"x=y" is not a threshold rule' in tocsin("train", "failure", "--rule", "x=y").err
    assert "is not one of" in tocsin("train", "failure", "--engine", "oracle").err


def test_the_table_shows_what_each_threshold_would_have_done(home: Path, tocsin: Tocsin) -> None:
    said = tocsin("threshold")
    header, _, *lines = said.out.splitlines()
    assert header.split()[:4] == ["Threshold", "AlarmsPerDay", "Precision", "Recall"]
    values = [float(line.split()[0]) for line in lines]
    assert values == sorted(values, reverse=True)
    [chosen] = [line for line in lines if line.endswith("yes")]
    assert f"failure 1 raises an alarm at probability {chosen.split()[0]} or more" in said.err
    document = json.loads(tocsin("threshold", "--json").out)
    assert [row["value"] for row in document["table"] if row["chosen"]] == [document["threshold"]["value"]]
    parsable = tocsin("threshold", "--parsable2", "--noheader")
    assert {line.count("|") for line in parsable.out.splitlines()} == {7}
    assert parsable.err == ""


@pytest.mark.parametrize(
    "rule", ["precision_at_least=0.5", "recall-at-least=0.7", "alarms_per_day_at_most=3", "least_cost=1"]
)
def test_a_rule_sets_it_as_a_new_version_that_can_be_undone(home: Path, tocsin: Tocsin, rule: str) -> None:
    before = json.loads(tocsin("threshold", "--json").out)["threshold"]
    said = tocsin("threshold", "--rule", rule)
    assert said.code == 0
    assert "failure 2 raises an alarm at probability " in said.out
    assert UNDO in said.err
    now = json.loads(tocsin("threshold", "--json").out)
    assert now["version"] == "2"
    assert now["threshold"]["rule"]["kind"] == rule.partition("=")[0].replace("-", "_")
    assert json.loads(tocsin("models", "show", "failure", "2", "--json").out)["parent"] == "1"
    assert tocsin(*shlex.split(UNDO)[2:]).code == 0
    again = json.loads(tocsin("threshold", "--json").out)
    assert (again["version"], again["threshold"]) == ("1", before)


def test_the_only_clusters_own_model_is_the_one_that_is_shown_and_changed(home: Path, tocsin: Tocsin) -> None:
    assert tocsin("models", "promote", "failure", "builtin").code == 0
    assert tocsin("models", "promote", "failure", "1", "-M", "lab").code == 0
    assert "failure 1 on lab raises an alarm" in tocsin("threshold").err
    said = tocsin("threshold", "--rule", "recall_at_least=0.5")
    assert "failure 2 on lab raises an alarm" in said.out
    undo = said.err.partition("undo: tocsin ")[2]
    assert undo.strip() == "models promote failure 1 -M lab"
    assert json.loads(tocsin("threshold", "-M", "lab", "--json").out)["version"] == "2"
    assert tocsin(*shlex.split(undo)).code == 0
    assert json.loads(tocsin("threshold", "-M", "lab", "--json").out)["version"] == "1"
    assert "for submit on lab" in tocsin("models", "promote", "failure", "2").err
    assert json.loads(tocsin("threshold", "--json").out)["version"] == "2"
    assert (
        "failure 1 is now the champion for submit on lab"
        in tocsin("models", "rollback", "failure", "--stage", "submit").err
    )


def test_a_model_trained_by_hand_is_really_in_use(home: Path, tocsin: Tocsin) -> None:
    assert tocsin("models", "promote", "failure", "1", "-M", "lab").code == 0
    said = tocsin("train", "failure", "--trials", "1")
    assert "failure 2 is now in use on lab" in said.out
    assert json.loads(tocsin("threshold", "-M", "lab", "--json").out)["version"] == "2"
    undo = said.err.partition("undo: tocsin ")[2]
    assert tocsin(*shlex.split(undo)).code == 0
    assert json.loads(tocsin("threshold", "-M", "lab", "--json").out)["version"] == "1"


def test_a_model_of_another_clusters_log_leaves_a_clusters_own_in_use_and_says_so(
    home: Path, tocsin: Tocsin, tmp_path: Path
) -> None:
    assert tocsin("models", "promote", "failure", "1", "-M", "lab").code == 0
    (tmp_path / "other.swf").write_text(swf_log())
    said = tocsin("train", "failure", tmp_path / "other.swf", "--trials", "1")
    assert "note: a model of its own stays in use on lab; replace it with -M lab" in said.err
    assert "failure 2 is now in use (promoted to champion)" in said.out
    assert json.loads(tocsin("threshold", "-M", "lab", "--json").out)["version"] == "1"


def test_a_model_says_what_its_threshold_would_have_done_in_words(home: Path, tocsin: Tocsin) -> None:
    said = tocsin("models", "show", "failure", "1").out
    [line] = [line for line in said.splitlines() if line.startswith("threshold")]
    assert re.search(r"node-hours saved [\d.]+, .* rule precision_at_least=0\.8", line)
    assert "met True" not in line


def test_a_rule_as_json_and_one_that_cannot_be_met(home: Path, tocsin: Tocsin) -> None:
    document = json.loads(tocsin("threshold", "--rule", "recall_at_least=0.5", "--json").out)
    assert (document["version"], document["before"]) == ("2", "1")
    said = tocsin("threshold", "--rule", "alarms_per_day_at_most=0.0001")
    assert said.code == 0
    assert "no threshold met the rule on the held-out jobs, so none is set" in said.err


def test_a_nonsense_rule_changes_nothing(home: Path, tocsin: Tocsin) -> None:
    assert tocsin("threshold", "--rule", "nonsense").code == 2
    said = tocsin("threshold", "--rule", "precision_at_least=2")
    assert said.code == 1
    assert "between 0 and 1" in said.err
    assert json.loads(tocsin("threshold", "--json").out)["version"] == "1"


def test_the_risk_of_jobs_is_predicted(home: Path, tocsin: Tocsin) -> None:
    always, never = 499, 500  # of user 3, whose jobs fail, and of user 4
    rows = json.loads(tocsin("predict", always, never, "--json").out)
    assert [row["job"].partition("@")[0] for row in rows] == ["lab:499", "lab:500"]
    assert [row["user"] for row in rows] == ["3", "4"]
    assert rows[0]["probability"] > 0.5 > rows[1]["probability"]
    assert (rows[0]["will_fail"], rows[1]["will_fail"]) == (True, False)
    assert {row["model"] for row in rows} == {"1"}
    text = tocsin("predict", rows[0]["job"])
    assert f"{rows[0]['probability']:.1%}" in text.out
    assert "yes" in text.out


def test_many_jobs_are_predicted_at_once_as_one_by_one(home: Path, tocsin: Tocsin) -> None:
    numbers = [500, 3, 499, 3, 120]
    rows = json.loads(tocsin("predict", *numbers, "--json").out)
    assert rows == [json.loads(tocsin("predict", number, "--json").out)[0] for number in numbers]


def test_an_answer_is_a_label_of_the_next_training(home: Path, tocsin: Tocsin) -> None:
    from tocsin.app.app import App
    from tocsin.app.logs import LogRequest, read_jobs
    from tocsin.learn.feedback import with_answers

    completed = 500
    assert tocsin("answer", completed, "completed").code == 0
    assert tocsin("answer", completed, "failed", "--note", "its results are wrong").code == 0
    assert tocsin("answer", 99999, "failed").code == 1
    with App(folder=str(home)) as app:
        jobs = read_jobs(app, LogRequest())
        labelled = with_answers(app.store, jobs)
    changed = labelled.filter(labelled["outcome"].ne_missing(jobs["outcome"]))
    assert changed.select("job_id", "outcome").rows() == [(completed, "failed")]
    assert labelled.columns == jobs.columns


def test_the_risk_is_drawn_as_a_waterfall(home: Path, tocsin: Tocsin, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    said = tocsin("explain", 499, "--out", tmp_path / "charts", "--json")
    failure = json.loads(said.out)["failure"]
    drawn = (tmp_path / "charts" / "risk.svg").read_text()
    assert f">{failure['probability']:.0%}<" in drawn
    points = f"{failure['contributions'][0]['effect'] * 100:.0f} percentage points"
    assert f"raises the risk by {points}" in tocsin("explain", 499).out


def test_the_first_job_of_a_user_says_so(home: Path, tocsin: Tocsin) -> None:
    said = tocsin("predict", 1)
    assert said.code == 0
    assert "%" in said.out
    assert 'no earlier job of user "2" is known' in said.err
    assert "failure.history" in json.loads(tocsin("predict", 1, "--json").out)[0]["missing"]


def test_the_jobs_worth_asking_about_are_those_that_the_model_is_unsure_of(
    home: Path, tocsin: Tocsin
) -> None:
    done = tocsin("predict", "--ask", 5, "--json")
    asked = json.loads(done.out)
    assert len(asked) == 5
    everyone = json.loads(tocsin("predict", "--ask", 2000, "--json").out)
    unsure = [abs(row["probability"] - 0.5) for row in everyone]
    assert max(abs(row["probability"] - 0.5) for row in asked) < max(unsure)
    assert tocsin("predict").code == 2
    assert tocsin("predict", "1", "--ask", 3).code == 2


def test_jobs_that_cannot_be_predicted_are_reported(home: Path, tocsin: Tocsin) -> None:
    for arguments, sentence in {
        ("99999",): "no job 99999",
        ("lab:1@5",): "no job lab:1@5",
        ("hello",): '"hello" is not a job id',
        ("1", "-M", "nowhere"): 'no cluster "nowhere"; known clusters: ',
    }.items():
        said = tocsin("predict", *arguments)
        assert said.code == 1
        assert sentence in said.err
        assert "internal error" not in said.err


def test_without_a_model_of_its_own_a_cluster_uses_the_shipped_one(tocsin: Tocsin) -> None:
    document = json.loads(tocsin("threshold", "--json").out)
    assert document["version"] == "builtin"
    assert "on every cluster that was left out" in document["threshold"]["text"]
    assert tocsin("threshold", "--rule", "recall_at_least=0.5").code == 0
    assert json.loads(tocsin("threshold", "--json").out)["version"] == "1", "a version never changes"


def test_alarms_per_day_of_other_clusters_are_no_promise_for_this_one(tocsin: Tocsin) -> None:
    said = tocsin("threshold", "--rule", "alarms_per_day_at_most=5")
    assert said.code == 1
    assert "its alarms per day on one cluster are not known" in said.err
    assert "tocsin train failure" in said.err
    found = json.loads(tocsin("threshold", "--json").out)
    assert {row["alarms_per_day"] for row in found["table"]} == {None}
    assert "measured at submit, target failed, on held-out jobs of 8 clusters" in tocsin("threshold").err


def test_every_command_of_the_page_works(
    tocsin: Tocsin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order of the page, on a log of our own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "LOG").write_text(swf_log())
    page = (REPOSITORY / "docs" / "back-test.md").read_text()
    lines = [line for _, block in _BLOCK.findall(page) for line in _COMMAND.findall(block)]
    assert len(lines) > 8
    for line in lines:
        words = shlex.split(line)[1:]
        if words[0] in ("backtest", "train") and "--trials" not in words:
            words += ["--trials", "1"]
        said = tocsin(*words)
        assert said.code == 0, f"{line}: {said.err}"
