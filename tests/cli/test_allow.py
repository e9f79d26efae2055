"""`tocsin allow`: entries added, listed, checked and removed."""

import json
from pathlib import Path

import pytest

from tests.kits.command_line import Tocsin
from tests.kits.scripts import labelled_scripts


def test_an_entry_is_added_and_removed(tocsin: Tocsin) -> None:
    said = tocsin(
        "allow",
        "add",
        "cyber",
        "-A",
        "sec",
        "--from",
        "2026-01-01",
        "--until",
        "2099-01-01",
        "--reason",
        "audit",
    )
    assert said.out == (
        "allow-list entry 1: account sec may run cyber from 2026-01-01T00:00:00 through 2099-01-01\n"
    )
    listed = json.loads(tocsin("allow", "list", "--json").out)
    assert listed["default"] == {"ai": "allowed", "cryptomining": "never", "cyber": "listed"}
    [permission] = listed["allow"]
    assert (permission["account"], permission["reason"], permission["origin"]) == (
        "sec",
        "audit",
        "entry 1",
    )
    assert permission["granted_by"]
    assert "account sec" in tocsin("allow").out
    assert tocsin("allow", "remove", "1").code == 0
    assert json.loads(tocsin("allow", "list", "--json").out)["allow"] == []
    assert len(json.loads(tocsin("allow", "list", "--all", "--json").out)["allow"]) == 1
    again = tocsin("allow", "remove", "1")
    assert (again.code, "already revoked" in again.err) == (1, True)


@pytest.mark.parametrize(
    ("until", "end"),
    [
        ("2026-11-10", "2026-11-11T00:00:00Z"),  # as in the file, the day is included
        ("11/10/26", "2026-11-11T00:00:00Z"),
        ("2026-11-10T00:00", "2026-11-10T00:00:00Z"),
        ("2026-11-10T17:30", "2026-11-10T17:30:00Z"),
        ("1794268800", "2026-11-10T00:00:00Z"),
        ("9999-12-31", None),
        ("now+999999999weeks", None),
        ("9" * 30, None),
    ],
)
def test_the_last_day_is_included(tocsin: Tocsin, until: str, end: str | None) -> None:
    days = ("--from", "2020-01-01", "--until", until)
    said = json.loads(tocsin("allow", "add", "cyber", "-u", "ann", *days, "--json").out)
    assert said["until"] == end


def test_an_entry_that_could_never_count_is_refused_and_an_expired_one_is_noted(tocsin: Tocsin) -> None:
    past = ("allow", "add", "cyber", "-u", "ann", "--until", "2020-01-01")
    refused = tocsin(*past)
    assert (refused.code, refused.out) == (1, "")
    assert "would end (2020-01-01) before it begins (now); change --until, or add --from" in refused.err
    assert json.loads(tocsin("allow", "list", "--json").out)["allow"] == []
    assert "has expired already" in tocsin(*past, "--from", "2019-01-01").err
    assert tocsin("allow", "add", "cyber", "-u", "ann", "--from", "0001-01-01").err == ""
    assert tocsin("allow", "list").code == 0


def test_an_entry_may_last_a_single_day(tocsin: Tocsin) -> None:
    day = ("--from", "2026-11-10", "--until", "2026-11-10")
    assert tocsin("allow", "add", "cyber", "-u", "ann", *day).code == 0


def test_a_default_rule_is_set(tocsin: Tocsin) -> None:
    assert (
        tocsin("allow", "default", "ai", "listed").out
        == "ai is allowed for listed users, accounts and groups only\n"
    )
    assert json.loads(tocsin("allow", "list", "--json").out)["default"]["ai"] == "listed"


def test_an_entry_without_effect_is_noted(tocsin: Tocsin) -> None:
    assert "no effect" in tocsin("allow", "add", "cryptomining", "-u", "ann").err


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["add", "cyber"], 2, "name one of --user, --account, --group"),
        (["add", "cyber", "-u", "a", "-g", "b"], 2, "name one of"),
        (["add", "no way", "-u", "a"], 1, "is not an operation; the operations are ai, cryptomining, cyber"),
        (["add", "cybre", "-u", "a"], 1, "did you mean cyber?"),
        (["default", "AI", "never"], 1, "did you mean ai?"),
        (["add", "cyber", "-u", "a", "--from", "2026-02-01", "--until", "2026-01-01"], 1, "before it begins"),
        (["add", "cyber", "-u", "a", "--until", "someday"], 1, "someday"),
        (["check", "/no/such/file"], 1, "cannot be read"),
    ],
)
def test_invalid_entries_are_refused(tocsin: Tocsin, arguments: list[str], code: int, reason: str) -> None:
    said = tocsin("allow", *arguments)
    assert said.code == code
    assert reason in said.err


def test_the_file_and_the_store_are_one_list(
    tocsin: Tocsin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "allow.toml"
    file.write_text(
        '[default]\nai = "never"\n\n[[allow]]\noperation = "cyber"\ngroup = "red"\nreason = "drill"\n'
    )
    monkeypatch.setenv("TOCSIN_WORKLOAD__ALLOW_FILE", str(file))
    tocsin("allow", "add", "cyber", "-u", "ann")
    said = tocsin("allow", "default", "ai", "allowed")
    assert "the allow-list file sets never" in said.err
    rows = tocsin("allow", "list", "-P", "-n").out.splitlines()
    assert rows[0] == "ai|everybody|never|||||"
    assert f"cyber|group red|allowed||||{file}, line 4|drill" in rows
    assert any(row.startswith("cyber|user ann|allowed|") for row in rows)


def test_an_operation_of_the_site_can_be_named_once_it_is_trained(tocsin: Tocsin, tmp_path: Path) -> None:
    grant = ("allow", "add", "rendering", "-u", "ann")
    assert tocsin(*grant).code == 1
    data = labelled_scripts(tmp_path / "data")
    assert tocsin("train", "workload", "--operation", "rendering", "--data", data).code == 0
    assert tocsin(*grant).code == 0
    file = tmp_path / "allow.toml"
    file.write_text('[default]\nrendering = "never"\n')
    assert tocsin("allow", "check", file).code == 0
    assert json.loads(tocsin("allow", "list", "--json").out)["default"]["rendering"] == "listed"
