"""The catalogue of causes: what is shipped keeps its promises, and a site's own kinds are checked when they are read."""

from pathlib import Path

import pytest

from tocsin.causes.catalogue import load_catalogue
from tocsin.causes.matching import find_matches, root_cause
from tocsin.core.errors import SettingsError

SHIPPED = load_catalogue()
OWN = """name = "burst_buffer"
title = "Burst buffer full"
rank = 15
advice = "Ask for more of the burst buffer (--bb)."
certain = ["dwd: no space in pool"]
examples = ["2026-01-01 dwd: no space in pool wlm_pool"]
"""


@pytest.mark.parametrize("name", sorted(SHIPPED.kinds))
def test_every_example_of_a_kind_is_found_as_that_kind(name: str) -> None:
    for example in SHIPPED.kinds[name].examples:
        found = root_cause(find_matches(f"starting\n{example}\n", SHIPPED))
        assert found is not None
        assert found.rule.kind == name, example


@pytest.mark.parametrize("name", sorted(SHIPPED.kinds))
def test_every_kind_says_what_it_means(name: str) -> None:
    assert SHIPPED.kinds[name].meaning.endswith(".")


def test_a_folder_of_the_site_adds_a_kind(tmp_path: Path) -> None:
    (tmp_path / "burst.toml").write_text(OWN)
    found = root_cause(
        find_matches("dwd: no space in pool wlm_pool\nOSError: [Errno 28]\n", load_catalogue(tmp_path))
    )
    assert found is not None
    assert found.rule.kind == "burst_buffer"
    assert root_cause(find_matches("dwd: no space in pool wlm_pool\n", SHIPPED)) is None


def test_a_kind_with_the_name_of_a_shipped_one_replaces_it(tmp_path: Path) -> None:
    (tmp_path / "disk.toml").write_text(OWN.replace("burst_buffer", "disk"))
    catalogue = load_catalogue(tmp_path)
    assert catalogue.kinds["disk"].title == "Burst buffer full"
    assert root_cause(find_matches("x: Disk quota exceeded\n", catalogue)) is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "Burst buffer full"\n', "", "title is missing"),
        ("rank = 15", 'rank = "first"', "rank must be a whole number"),
        ("rank = 15", "rank = 0", "the rank 0"),
        ("rank = 15", "rank = 500", "the rank 500"),
        ("burst_buffer", "Burst Buffer", "lower-case"),
        ("rank = 15", "rank = 15\ncolour = 3", '"colour" is not known'),
        ('"dwd: no space in pool"', '"dwd: nothing"', "no pattern matches the example"),
        ('"dwd: no space in pool"', '"a*b"', "cannot be used"),
        ("certain = [", "certain = [3,", "must be a list of texts"),
        ("name =", "name", "is not TOML"),
    ],
)
def test_a_mistake_in_a_kind_is_named_with_its_file(tmp_path: Path, old: str, new: str, message: str) -> None:
    (tmp_path / "burst.toml").write_text(OWN.replace(old, new))
    with pytest.raises(SettingsError, match=r"burst\.toml") as refused:
        load_catalogue(tmp_path)
    assert message in str(refused.value)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="nowhere"):
        load_catalogue(tmp_path / "nowhere")


def test_a_kind_of_the_site_names_numbers(tmp_path: Path) -> None:
    (tmp_path / "burst.toml").write_text(OWN + "exits = [77]\nerrnos = [99]\nsignals = [35]\n")
    catalogue = load_catalogue(tmp_path)
    for text in ("stage-in: exit code 77\n", "write: errno = 99\n", "task 0: exited on signal 35\n"):
        found = root_cause(find_matches(text, catalogue))
        assert found is not None
        assert found.rule.kind == "burst_buffer", text


@pytest.mark.parametrize("value", ['["9"]', "[0]", "[256]", "9", "[true]"])
def test_numbers_of_a_kind_are_checked(tmp_path: Path, value: str) -> None:
    (tmp_path / "burst.toml").write_text(OWN + f"signals = {value}\n")
    with pytest.raises(SettingsError, match=r"burst\.toml.*signals"):
        load_catalogue(tmp_path)


def test_a_pattern_of_the_site_may_give_a_choice(tmp_path: Path) -> None:
    (tmp_path / "burst.toml").write_text(
        OWN.replace("dwd: no space in pool", "dwd: (no|not enough) space in pool", 1)
    )
    catalogue = load_catalogue(tmp_path)
    for text in ("dwd: no space in pool wlm_pool\n", "dwd: not enough space in pool wlm_pool\n"):
        found = root_cause(find_matches(text, catalogue))
        assert found is not None
        assert found.rule.kind == "burst_buffer", text


def test_numbers_of_a_kind_may_be_a_consequence(tmp_path: Path) -> None:
    text = 'name = "stopped"\ntitle = "Stopped"\nrank = 30\nadvice = "x"\nlikely = ["was stopped"]\nexamples = ["was stopped"]\n'
    (tmp_path / "stopped.toml").write_text(text + 'signals = [19]\nnumbers = "consequence"\n')
    assert load_catalogue(tmp_path).numbers["signal", 19].rank > 1000
    (tmp_path / "stopped.toml").write_text(text + 'signals = [19]\nnumbers = "certain"\n')
    with pytest.raises(SettingsError, match='must be "likely" or "consequence"'):
        load_catalogue(tmp_path)


def test_a_kind_of_the_site_takes_unspecific_lines_about_its_subject(tmp_path: Path) -> None:
    (tmp_path / "burst.toml").write_text(OWN + 'about = ["dwd:"]\n')
    catalogue = load_catalogue(tmp_path)
    for text, kind in (
        ("dwd: Connection refused\n", "burst_buffer"),
        ("git: Connection refused\n", "network"),
    ):
        found = root_cause(find_matches(text, catalogue))
        assert found is not None
        assert found.rule.kind == kind, text


def test_yields_is_true_or_false(tmp_path: Path) -> None:
    (tmp_path / "burst.toml").write_text(OWN + 'yields = "no"\n')
    with pytest.raises(SettingsError, match="yields must be true or false"):
        load_catalogue(tmp_path)
