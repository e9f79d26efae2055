"""Some hundreds of mutated scripts, model files and source files; `make bench` reads 30,000."""

import pytest
from bench.mutations import KINDS, survey

from tests.conftest import unavailable
from tests.services import missing


@pytest.mark.parametrize("kind", KINDS)
def test_a_mutated_file_is_read_or_refused_at_once(kind: str) -> None:
    if kind == "models" and (sentence := missing("lightgbm")):
        unavailable(sentence)
    found = survey(kind, 50_000, 150)
    assert found["wrong"] == {}
    assert found["cases"] - found["refused"] > 0
