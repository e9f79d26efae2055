"""An App on an empty home."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tocsin.app.app import App


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    with App(folder=str(tmp_path / "home"), environ={"HOME": str(tmp_path), "TZ": "UTC"}) as made:
        made.home.prepare()
        yield made
