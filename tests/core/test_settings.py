"""Settings have one definition; a wrong one is a sentence that names value, place and next step."""

import pytest

from tocsin.core.errors import SettingsError
from tocsin.core.settings import Layer, resolve


def test_a_later_layer_wins_and_each_line_names_its_origin() -> None:
    settings, lines = resolve(
        [Layer("system", {"history": {"lag": 30}}), Layer("$TOCSIN_HISTORY__LAG", {"history": {"lag": "90"}})]
    )
    assert settings.history.lag == 90
    assert {line.name: line.origin for line in lines}["history.lag"] == "$TOCSIN_HISTORY__LAG"


def test_without_any_layer_all_is_default() -> None:
    _, lines = resolve([])
    assert {line.origin for line in lines} == {"default"}


def test_each_cluster_has_its_own_section() -> None:
    settings, _ = resolve([Layer("f", {"cluster": {"lab": {"timeout": 5}, "big": {}}})])
    assert settings.cluster["lab"].timeout == 5
    assert settings.cluster["big"].timeout == 60


@pytest.mark.parametrize(
    ("values", "part"),
    [
        ({"stroe": {"url": "x"}}, '"stroe" in f is not a section'),
        ({"store": {"ulr": "x"}}, '"ulr" in \\[store\\] of f is not a setting'),
        ({"history": {"lag": "soon"}}, "history.lag in f is 'soon'; it must be a whole number"),
        ({"history": {"lag": True}}, "must be a whole number"),
        ({"history": {"lag": -1}}, "cannot be negative"),
        ({"cluster": {"timeout": 5}}, "needs a name"),
        ({"store": 7}, "not a section"),
    ],
)
def test_a_wrong_setting_is_refused_in_a_sentence(values: dict[str, object], part: str) -> None:
    with pytest.raises(SettingsError, match=part):
        resolve([Layer("f", values)])


def test_every_setting_is_documented() -> None:
    _, lines = resolve([Layer("system", {"cluster": {"lab": {}}})])
    assert [line.name for line in lines if not line.doc] == []
