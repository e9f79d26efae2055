"""Settings come from files and the environment, and `tocsin config` says from which."""

import json
from pathlib import Path

import pytest

from tests.kits.command_line import Tocsin


def test_each_setting_is_shown_with_its_origin(
    tocsin: Tocsin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config" / "tocsin").mkdir(parents=True)
    user = tmp_path / "config" / "tocsin" / "tocsin.toml"
    user.write_text("[history]\nlag = 30\n[cluster.lab]\ntimeout = 5\n")
    monkeypatch.setenv("TOCSIN_CLUSTER__lab__TIMEOUT", "9")
    shown = json.loads(tocsin("config", "show", "--json").out)
    assert shown["history.lag"]["value"] == 30
    assert shown["history.lag"]["origin"] == str(user)
    assert shown["cluster.lab.timeout"] == {
        "value": 9,
        "origin": "$TOCSIN_CLUSTER__lab__TIMEOUT",
        "doc": shown["cluster.lab.timeout"]["doc"],
    }
    assert shown["store.keep_days"]["origin"] == "default"
    [line] = [line for line in tocsin("config", "show").out.splitlines() if line.startswith("watch.scripts")]
    assert line.split() == ["watch.scripts", "true", "default"], "as a settings file writes it"


def test_a_variable_in_upper_case_means_the_cluster_in_the_file(
    tocsin: Tocsin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It used to add a second cluster, and the first one kept its setting."""
    (tmp_path / "mine.toml").write_text("[cluster.lab]\ntimeout = 5\n")
    monkeypatch.setenv("TOCSIN_CLUSTER__LAB__TIMEOUT", "9")
    shown = json.loads(tocsin("--config", tmp_path / "mine.toml", "config", "show", "--json").out)
    assert shown["cluster.lab.timeout"]["value"] == 9
    assert "cluster.LAB.timeout" not in shown


def test_a_file_named_on_the_line_wins_over_the_others(tocsin: Tocsin, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "tocsin.toml").write_text("[history]\nlag = 30\n")
    (tmp_path / "mine.toml").write_text("[history]\nlag = 7\n")
    shown = json.loads(tocsin("--config", tmp_path / "mine.toml", "config", "show", "--json").out)
    assert shown["history.lag"]["value"] == 7


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[history]\nlag = soon\n", "is not TOML"),
        ("[history]\nlagg = 5\n", '"lagg" in [history]'),
        ("[cluster.lab]\ntimezone = 'Middle/Earth'\n", '"Middle/Earth" is not a time zone'),
        ("[cluster.lab]\nrest_url = 'ftp://x'\n", "write http://host:6820"),
        ("[cluster.lab]\nslurm_conf = '/nonexistent'\n", "which does not exist"),
        ("[cluster.lab]\ntimeout = 0\n", "at least a second"),
        ("[history]\nlag = " + "[" * 9000, "nested too deeply"),
        ("[history]\n" + "a." * 300_000 + "b = 1\n", "a key of too many parts"),
        ("[history]\nx = {" + "'a' . " * 300 + "b = 1}\n", "a key of too many parts"),
        ("[history]\nlag = " + "9" * 5000, "is not TOML"),
        ("#" * 2_000_000, "more than 1,048,576"),
        ("[store]\nurl = 'nonsense'\n", "is not a supported URL"),
        ("[store]\nurl = 'postgresql://host:notaport/x'\n", "is not a supported URL"),
    ],
)
def test_an_invalid_setting_is_one_error_message(
    tocsin: Tocsin, tmp_path: Path, text: str, sentence: str
) -> None:
    (tmp_path / "bad.toml").write_text(text)
    said = tocsin("--config", tmp_path / "bad.toml", "config", "check")
    assert said.code == 1
    assert sentence in said.err
    assert len(said.err.splitlines()) == 1


@pytest.mark.parametrize(("content", "mode", "word"), [("", 0o600, "empty"), ("secret", 0o644, "chmod 600")])
def test_a_secret_that_others_can_read_is_refused(
    tocsin: Tocsin, tmp_path: Path, content: str, mode: int, word: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_text(content)
    secret.chmod(mode)
    (tmp_path / "c.toml").write_text(f'[store]\npassword_file = "{secret}"\n')
    said = tocsin("--config", tmp_path / "c.toml", "config", "check")
    assert said.code == 1
    assert word in said.err
    assert (
        "secret" not in said.err.replace(str(secret), "").replace("secret file", "").lower()
        or word in said.err
    )


def test_the_allow_list_and_the_log_are_no_secrets(tocsin: Tocsin, tmp_path: Path) -> None:
    allow, config = tmp_path / "allow.toml", tmp_path / "c.toml"
    allow.write_text('[default]\nai = "listed"\n')
    allow.chmod(0o644)
    sink = '[sinks.log]\nkind = "log"\nfile = '
    config.write_text(f'[workload]\nallow_file = "{allow}"\n{sink}"{tmp_path}/not-yet.jsonl"\n')
    said = tocsin("--config", config, "config", "check")
    assert (said.code, "valid: 3 set" in said.err) == (0, True)
    allow.write_text('[default]\nai = "maybe"\n')
    said = tocsin("--config", config, "config", "check")
    assert (said.code, f"{allow}, line 2: ai is 'maybe'" in said.err) == (1, True)
    config.write_text(f'{sink}"{tmp_path}/no/folder.jsonl"\n')
    said = tocsin("--config", config, "config", "check")
    assert (said.code, "does not exist" in said.err) == (1, True)


def test_valid_settings_are_reported(tocsin: Tocsin) -> None:
    said = tocsin("config", "check")
    assert (said.code, said.out) == (0, "")
    assert "valid" in said.err


def test_a_password_in_the_url_is_refused(tocsin: Tocsin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOCSIN_STORE__URL", "postgresql://tocsin:hunter2@localhost/jobs")
    said = tocsin("jobs")
    assert said.code == 1
    assert "password_file" in said.err
    assert "hunter2" not in said.err


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:sw0rdfish@host/jobs",
        "postgresql://ann:sw0rd@fish/sw0rdfish@host/jobs",
        "postgresql://ann@host/jobs?password=sw0rdfish",
        "mysql://ann:sw0rdfish@host/jobs",
        "nonsense://:sw0rdfish@",
    ],
)
def test_no_command_prints_a_password(tocsin: Tocsin, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("TOCSIN_STORE__URL", url)
    monkeypatch.setenv("TOCSIN_CLUSTER__lab__REST_URL", url)
    for command in (
        ["config", "show"],
        ["config", "show", "--json"],
        ["config", "check"],
        ["jobs"],
        ["doctor"],
    ):
        printed = tocsin(*command)
        assert "sw0rd" not in printed.out + printed.err, command
    assert "***" in tocsin("config", "show").out


def test_settings_that_others_can_write_are_refused(tocsin: Tocsin, tmp_path: Path) -> None:
    folder = tmp_path / "config" / "tocsin"
    folder.mkdir(parents=True)
    file = folder / "tocsin.toml"
    file.write_text("[history]\nlag = 30\n")
    assert tocsin("config", "check").code == 0
    for place, safe in ((file, 0o644), (folder, 0o755)):
        place.chmod(0o777)
        refused = tocsin("config", "show")
        assert refused.code == 1
        assert f"chmod o-w {place}" in refused.err
        place.chmod(safe)
    assert tocsin("config", "check").code == 0


def test_the_example_can_be_used_as_a_settings_file(tocsin: Tocsin, tmp_path: Path) -> None:
    (tmp_path / "example.toml").write_text(tocsin("config", "example").out)
    said = tocsin("--config", tmp_path / "example.toml", "config", "check")
    assert said.code == 0
    assert "0 set" in said.err
