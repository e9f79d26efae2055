"""The detector as a file, and under the checks that every detector must pass."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tocsin.core.errors import ModelError
from tocsin.judge.checks import CHECKS
from tocsin.limits.breach import Thresholds
from tocsin.limits.detector import DETECTOR, FittedLimits


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_it_passes(check: Callable[..., None]) -> None:
    check(DETECTOR)


def test_thresholds_are_kept(tmp_path: Path) -> None:
    FittedLimits(Thresholds(sure=20)).save(tmp_path)
    assert DETECTOR.load(tmp_path) == FittedLimits(Thresholds(sure=20))


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"version": 2}', '{"version": 1}', '{"version": 1, "thresholds": {"sure": 1}}', "\udcff"],
)
def test_a_file_that_is_not_ours_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "limits.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ModelError, match=r"limits\.json"):
        DETECTOR.load(tmp_path)


def test_a_word_for_a_number_is_refused(tmp_path: Path) -> None:
    FittedLimits().save(tmp_path)
    document = json.loads((tmp_path / "limits.json").read_text())
    document["thresholds"]["sure"] = "many"
    (tmp_path / "limits.json").write_text(json.dumps(document))
    with pytest.raises(ModelError, match="thresholds"):
        DETECTOR.load(tmp_path)
    with pytest.raises(ModelError, match="is missing"):
        DETECTOR.load(tmp_path / "nowhere")
