"""Detectors are found by entry points; a broken one takes no other down."""

import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tocsin.core.stages import Stage
from tocsin.judge.answers import DetectorModels, Model
from tocsin.judge.check_data import demo_check_data
from tocsin.judge.checks import CHECKS
from tocsin.judge.judge import Judge
from tocsin.judge.plugins import find_detectors
from tocsin.limits.detector import DETECTOR as LIMITS

SIREN = Path(__file__).parent / "siren"

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a distribution where Python finds it, as pip would, with neither network nor build backend."""
    target = tmp_path / "site"
    target.mkdir()
    monkeypatch.syspath_prepend(target)

    def install(name: str, entries: dict[str, str], **modules: str) -> None:
        info = target / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [f"{entry} = {value}" for entry, value in entries.items()]
        (info / "entry_points.txt").write_text("\n".join(["[tocsin.detectors]", *lines, ""]))
        for module, text in modules.items():
            (target / f"{module}.py").write_text(text)
            monkeypatch.delitem(sys.modules, module, raising=False)

    return install


@pytest.fixture
def siren(install: Install) -> None:
    """The package of somebody else, as its own pyproject.toml declares it."""
    project = tomllib.loads((SIREN / "pyproject.toml").read_text())["project"]
    install(
        project["name"], project["entry-points"]["tocsin.detectors"], siren=(SIREN / "siren.py").read_text()
    )


def test_the_built_in_one_is_found_like_any_other() -> None:
    broken: dict[str, str] = {}
    assert find_detectors(broken)["limits"] is LIMITS
    assert broken == {}


def test_a_third_partys_is_found_fitted_saved_loaded_and_checked(siren: None) -> None:
    found = find_detectors()
    assert {"failure", "limits", "workload"} < set(found)
    for check in CHECKS:
        check(found["siren"])


def test_a_third_partys_is_heard_in_the_verdict(siren: None, tmp_path: Path) -> None:
    detector, check_data = find_detectors()["siren"], demo_check_data()
    check_data.fit(detector, Stage.SUBMIT).save(tmp_path)
    judge = Judge({"siren": DetectorModels({Stage.SUBMIT: Model(detector.load(tmp_path), "7")})})
    jobs = check_data.log.filter(check_data.log["submit"] > check_data.cut)
    verdicts = judge.decide(jobs, Stage.SUBMIT, known=check_data.known(), at=check_data.cut).verdicts
    rung = [verdict for verdict in verdicts if verdict.findings]
    assert 0 < len(rung) < len(verdicts)
    assert rung[0].findings[0].text.endswith("look at their logs first")
    assert rung[0].level == "warning"
    assert rung[0].models == {"siren": "7"}


GOOD = """
from types import SimpleNamespace
from tocsin.core.stages import Stage
def made(**other):
    return SimpleNamespace(**{"name": "NAME", "stages": (Stage.SUBMIT,), "learns": True, "needs": (), "fit": print, "load": print, **other})
"""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1 / 0", "cannot be imported (ZeroDivisionError"),
        ("raise SystemExit(3)", "cannot be imported (SystemExit"),
        ("import no_such_module_at_all", "cannot be imported (ModuleNotFoundError"),
        ("OTHER = 1", "cannot be imported (AttributeError"),
        ("D = 17", "it has no name, no stages, no learns, no needs, no fit, no load"),
        ("class D: pass", "refers to the class D"),
        (GOOD + "D = made(name='another')", 'it calls itself "another"'),
        (GOOD + "D = made(stages=())", "give at least one"),
        (GOOD + "D = made(stages=('submit',))", "give at least one"),
        (GOOD + "D = made(fit=None)", "it has no fit;"),
        (GOOD + "D = made(load=3)", "cannot be called"),
    ],
)
def test_a_broken_one_is_told_in_a_sentence_and_left_out(install: Install, text: str, why: str) -> None:
    install("wreck", {"wreck": "wreck_module:D"}, wreck_module=text.replace("NAME", "wreck"))
    broken: dict[str, str] = {}
    assert "limits" in (found := find_detectors(broken))
    assert "wreck" not in found
    assert list(broken) == ["wreck"]
    assert broken["wreck"].startswith('the detector "wreck" of wreck is left out: ')
    assert why in broken["wreck"]
    assert find_detectors().keys() == found.keys()


def test_a_name_that_is_taken_stays_with_whom_it_was(install: Install) -> None:
    for package in ("abba", "zappa"):
        module = f"{package}_module"
        entries = {"limits": f"{module}:D", "own": f"{module}:OWN"}
        names = "D = made(name='limits')\nOWN = made(name='own')\n"
        install(package, entries, **{module: GOOD + names})
    broken: dict[str, str] = {}
    found = find_detectors(broken)
    assert found["limits"] is LIMITS
    assert list(broken) == ["limits of abba", "limits of zappa", "own of zappa"]
    assert "that name is taken" in broken["own of zappa"]


def test_nothing_heavy_is_imported_before_detectors_are_asked_for() -> None:
    code = "import sys, tocsin.judge.plugins; print(sorted({'polars', 'numpy', 'tocsin.limits.detector'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
