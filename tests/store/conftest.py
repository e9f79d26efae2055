"""A store of its own for every test, on each database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tocsin.store.database import Store, open_store
from tocsin.store.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").prepare()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, home: Home) -> str:
    """The address of a store that is not there yet."""
    if request.param == "sqlite":
        return home.url
    new: str = request.getfixturevalue("postgres").new_database()
    return new


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url) as opened:
        yield opened
