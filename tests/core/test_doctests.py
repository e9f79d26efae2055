"""The examples in core's docstrings print what they say."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["core.ids", "core.nodelist", "core.units", "app.text", "app.times"])
def test_the_examples_hold(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"tocsin.{name}"))
    assert found.attempted
    assert not found.failed
