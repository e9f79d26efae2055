"""What the tests of this room share: LightGBM, and a model of the demo cluster."""

import pytest

from tests.conftest import unavailable
from tests.services import missing
from tocsin.core.stages import Stage
from tocsin.failure.detector import FailureDetector
from tocsin.failure.fitted import FittedFailure
from tocsin.judge.check_data import CheckData, demo_check_data
from tocsin.models.thresholds import ThresholdRule

DETECTOR = FailureDetector(rule=ThresholdRule("precision_at_least", 0.6))
"""Three days of the demo cluster are too few to promise 0.8."""


@pytest.fixture(scope="session", autouse=True)
def lightgbm() -> None:
    if sentence := missing("lightgbm"):
        unavailable(sentence)


@pytest.fixture(scope="session")
def check_data() -> CheckData:
    return demo_check_data()


@pytest.fixture(scope="session")
def model(check_data: CheckData) -> FittedFailure:
    """Trained on what the demo cluster knew after three quarters of its week."""
    fitted = check_data.fitted(DETECTOR, Stage.SUBMIT)
    assert isinstance(fitted, FittedFailure)
    return fitted
