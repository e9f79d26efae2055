"""What the tests of this room share: LightGBM, and a model of the demo cluster."""

import pytest

from tests.conftest import unavailable
from tests.services import missing
from tocsin.core.stages import Stage
from tocsin.failure.detector import DETECTOR
from tocsin.failure.fitted import FittedFailure
from tocsin.judge.ground import Ground, demo_ground


@pytest.fixture(scope="session", autouse=True)
def lightgbm() -> None:
    if sentence := missing("lightgbm"):
        unavailable(sentence)


@pytest.fixture(scope="session")
def ground() -> Ground:
    return demo_ground()


@pytest.fixture(scope="session")
def model(ground: Ground) -> FittedFailure:
    """Trained on what the demo cluster knew after three quarters of its week."""
    fitted = ground.fitted(DETECTOR, Stage.SUBMIT)
    assert isinstance(fitted, FittedFailure)
    return fitted
