"""The engines need LightGBM, and LightGBM needs a library of the system."""

import pytest

from tests.conftest import unavailable
from tests.services import missing


@pytest.fixture(scope="session", autouse=True)
def lightgbm() -> None:
    if sentence := missing("lightgbm"):
        unavailable(sentence)
