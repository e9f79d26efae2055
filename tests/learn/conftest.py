"""What the tests of this room share: LightGBM, the demo cluster's week, and one walk through it."""

from collections.abc import Callable

import polars as pl
import pytest

from tests.conftest import unavailable
from tests.services import missing
from tocsin.core.detector import Budget, Known
from tocsin.core.outcomes import Target
from tocsin.core.stages import Stage
from tocsin.failure.detector import FailureDetector
from tocsin.judge.check_data import CheckData, demo_check_data
from tocsin.learn.walk import StepResult, Walk, WalkRequest
from tocsin.limits.detector import DETECTOR as LIMITS

QUICK = Budget(trials=1)
DETECTOR = FailureDetector(target=Target.FAILED)


@pytest.fixture(scope="session", autouse=True)
def lightgbm() -> None:
    if sentence := missing("lightgbm"):
        unavailable(sentence)


@pytest.fixture(scope="session")
def check_data() -> CheckData:
    return demo_check_data()


def request_for(stage: Stage = Stage.SUBMIT, **fields: float) -> WalkRequest:
    return WalkRequest(**{"stage": stage, "every_days": 2, "holdback_days": 0.5, "budget": QUICK, **fields})


def walker(known: Callable[[pl.DataFrame], Known], request: WalkRequest | None = None) -> Callable[..., Walk]:
    """Makes the walk through any jobs, with the rules of `limits` beside the model."""

    def walk(jobs: pl.DataFrame, start: int | None = None) -> Walk:
        rules = {LIMITS.name: LIMITS}
        return Walk(jobs, known(jobs), DETECTOR, request or request_for(), rules=rules, start=start)

    return walk


@pytest.fixture(scope="session")
def walked(check_data: CheckData) -> list[StepResult]:
    return list(walker(check_data.known)(check_data.log))
