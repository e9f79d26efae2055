"""`tocsin models`: list, show, promote, roll back and verify."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.kits.job_frames import frame
from tests.kits.model_cards import card, write
from tocsin.app.app import App
from tocsin.cli.models import models
from tocsin.core.errors import ModelError, NotFound
from tocsin.core.stages import Stage
from tocsin.models.aliases import is_shipped
from tocsin.models.registry import Registry
from tocsin.store.jobs import upsert


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    made = Registry(tmp_path / "models")
    for stage in (Stage.SUBMIT, Stage.SUBMIT, Stage.START):
        made.add("failure", write, card(stage=stage))
    return made


def tocsin(registry: Registry, *arguments: str) -> Result:
    with App(folder=str(registry.folder.parent)) as app:
        done = CliRunner().invoke(models, arguments, obj=app)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def _trained(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without what came with tocsin."""
    return [row for row in rows if not is_shipped(row["version"])]


def test_an_empty_home_has_what_came_with_tocsin(tmp_path: Path) -> None:
    done = tocsin(Registry(tmp_path / "models"), "list", "--json")
    rows = json.loads(done.stdout)
    assert [(row["detector"], row["version"], row["aliases"]) for row in rows] == [
        ("failure", "builtin", ["champion"]),
        ("failure", "builtin-start", ["champion"]),
        ("failure", "builtin-early", ["champion"]),
        ("workload", "builtin", ["champion"]),
    ]


def test_a_listing_names_the_champion(registry: Registry) -> None:
    tocsin(registry, "promote", "failure", "2")
    lines = tocsin(registry).stdout.splitlines()
    assert lines[0].split()[:3] == ["Detector", "Version", "Alias"]
    assert ["failure", "2", "champion", "submit"] in [line.split()[:4] for line in lines]
    rows = json.loads(tocsin(registry, "list", "failure", "--json").stdout)
    assert [(row["version"], row["aliases"]) for row in _trained(rows)] == [
        ("1", []),
        ("2", ["champion"]),
        ("3", []),
    ]


def test_a_damaged_card_is_a_row_too(registry: Registry) -> None:
    (registry.folder / "failure" / "2" / "card.json").write_text("{")
    rows = json.loads(tocsin(registry, "list", "--json").stdout)
    [damaged] = [row for row in rows if row["trouble"]]
    assert "card.json is refused" in damaged["trouble"]
    assert "cannot be read" in tocsin(registry).stdout


def test_show_prints_the_card(registry: Registry) -> None:
    shown = tocsin(registry, "show", "failure", "1").stdout
    for part in ("lightgbm", "28,476", "at submit; ", "auc 0.9100 [0.9000, 0.9200]", "sha256"):
        assert part in shown
    document = json.loads(tocsin(registry, "show", "failure", "1", "--json").stdout)
    assert document["version"] == "1"
    assert set(document["files"]) == {"model.txt", "encoders/users.json"}


def test_show_without_a_version_is_the_champion(registry: Registry) -> None:
    assert "failure builtin (champion)" in tocsin(registry, "show", "failure").stdout
    with pytest.raises(NotFound, match="tocsin models promote failure VERSION"):
        tocsin(registry, "show", "failure", "--stage", "end")
    tocsin(registry, "promote", "failure", "2", "--why", "fewer alarms")
    shown = tocsin(registry, "show", "failure").stdout
    assert "failure 2 (champion)" in shown
    assert "fewer alarms" in shown
    tocsin(registry, "promote", "failure", "3")
    assert "failure 3" in tocsin(registry, "show", "failure", "--stage", "start").stdout


def test_promote_and_roll_back_say_what_they_did(registry: Registry) -> None:
    assert (
        "now the champion for submit (before: builtin)" in tocsin(registry, "promote", "failure", "1").stderr
    )
    assert "(before: 1)" in tocsin(registry, "promote", "failure", "2").stderr
    assert "already the champion" in tocsin(registry, "promote", "failure", "2").stderr
    assert (
        "failure 1 is now the champion for submit (before: 2)"
        in tocsin(registry, "rollback", "failure").stderr
    )
    assert "failure builtin is now the champion for submit" in tocsin(registry, "rollback", "failure").stderr
    tocsin(registry, "rollback", "failure")
    with pytest.raises(ModelError, match="nothing to roll back"):
        tocsin(registry, "rollback", "failure")


def test_roll_back_to_none_is_one_step_however_many_champions_there_were(registry: Registry) -> None:
    for version in ("1", "2", "1"):
        tocsin(registry, "promote", "failure", version)
    done = json.loads(tocsin(registry, "rollback", "failure", "--none", "--json").stdout)
    assert (done["champion"], done["before"]) == ("builtin", "1")
    assert registry.champion("failure", Stage.SUBMIT) is None, "without what is shipped"


def test_promote_and_roll_back_speak_JSON(registry: Registry) -> None:
    tocsin(registry, "promote", "failure", "1")
    done = json.loads(tocsin(registry, "promote", "failure", "2", "--json").stdout)
    assert done == {"detector": "failure", "stage": "submit", "cluster": None, "champion": "2", "before": "1"}
    assert json.loads(tocsin(registry, "rollback", "failure", "--json").stdout)["champion"] == "1"


def test_a_cluster_has_a_champion_of_its_own(registry: Registry) -> None:
    tocsin(registry, "promote", "failure", "1")
    tocsin(registry, "promote", "failure", "2", "-M", "lab")
    rows = json.loads(tocsin(registry, "list", "failure", "--json").stdout)
    assert [row["aliases"] for row in _trained(rows)] == [["champion"], ["champion@lab"], []]
    shown = json.loads(tocsin(registry, "show", "failure", "-M", "lab", "--json").stdout)
    assert (shown["version"], shown["clusters"]) == ("2", ["kth"])
    done = json.loads(tocsin(registry, "rollback", "failure", "-M", "lab", "--json").stdout)
    assert (done["cluster"], done["champion"], done["before"]) == ("lab", "1", "2")


def test_what_only_the_stores_cluster_uses_is_rolled_back_without_naming_it(registry: Registry) -> None:
    """No model is shipped for this stage, and none is in use for all clusters."""
    with App(folder=str(registry.folder.parent)) as app:
        upsert(app.store, frame({"cluster": "lab"}))
    registry.add("traces", write, card("traces", Stage.RUNNING))
    tocsin(registry, "promote", "traces", "1", "-M", "lab")
    done = json.loads(tocsin(registry, "rollback", "traces", "--json").stdout)
    assert (done["cluster"], done["champion"], done["before"]) == ("lab", None, "1")


def test_a_challenger_is_promoted_by_that_name_and_only_at_its_stage(registry: Registry) -> None:
    registry.challenge("failure", "3", Stage.START)
    tocsin(registry, "promote", "failure", "challenger", "--stage", "start")
    assert registry.champion("failure", Stage.START) == "3"
    with pytest.raises(ModelError, match="for submit, not for start"):
        tocsin(registry, "promote", "failure", "1", "--stage", "start")


def test_verify_loads_what_has_the_right_hashes(registry: Registry) -> None:
    done = tocsin(registry, "verify", "--json")
    rows = json.loads(done.stdout)
    assert [row["sound"] for row in _trained(rows)] == [False, False, False]
    assert all(row["sound"] for row in rows if row not in _trained(rows)), "what is shipped can be loaded"
    assert "failure/1/failure.json" in done.stderr


def test_verify_checks_all_and_exits_1_with_the_name_of_the_file(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tocsin.judge.plugins.find_detectors", dict
    )  # the models of this test cannot be loaded
    done = tocsin(registry, "verify")
    assert done.exit_code == 0
    assert done.stderr.endswith(" models checked: no file was changed\n")
    (registry.folder / "failure" / "2" / "model.txt").write_text("changed")
    done = tocsin(registry, "verify", "--json")
    assert done.exit_code == 1
    assert [row["sound"] for row in _trained(json.loads(done.stdout))] == [True, False, True]
    assert "failure/2/model.txt was changed" in done.stderr
    assert tocsin(registry, "verify", "failure", "1").exit_code == 0
    assert tocsin(registry, "verify", "failure", "2").exit_code == 1


def test_a_detector_that_is_not_there_is_said(registry: Registry) -> None:
    for command in ("list", "verify"):
        with pytest.raises(NotFound, match='"weather"'):
            tocsin(registry, command, "weather")
    with pytest.raises(ModelError, match="name of a detector"):
        tocsin(registry, "promote", "../../etc", "1")


def test_a_challenge_is_ended_without_naming_its_stage_however_many_stages_have_champions(
    registry: Registry,
) -> None:
    for version in ("1", "3"):
        tocsin(registry, "promote", "failure", version, "-M", "lab")
    tocsin(registry, "challenge", "failure", "2", "-M", "lab")
    assert registry.challenger("failure", Stage.SUBMIT, "lab") == "2"
    done = tocsin(registry, "challenge", "failure", "--end", "-M", "lab")
    assert "beside the one in use at submit on lab any more" in done.stderr
    assert registry.challenger("failure", Stage.SUBMIT, "lab") is None


def test_the_list_takes_its_options_without_its_name(registry: Registry) -> None:
    assert tocsin(registry, "--json").stdout == tocsin(registry, "list", "--json").stdout
    assert tocsin(registry, "-P").stdout.startswith("Detector|Version|Alias")
    assert "Commands:" in tocsin(registry, "--help").stdout
