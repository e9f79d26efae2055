"""A store of its own for every test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tocsin.store.database import Store, open_store
from tocsin.store.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").prepare()


@pytest.fixture
def store(home: Home) -> Iterator[Store]:
    with open_store(home.url, timeout=0.2) as opened:
        yield opened
