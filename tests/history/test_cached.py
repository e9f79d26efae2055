"""A past that was asked once says of any job what the past itself says."""

from collections.abc import Sequence

import polars as pl
import pytest

from tocsin.core.stages import Stage
from tocsin.history.cached import CachedKnown
from tocsin.history.replay import Replay
from tocsin.judge.check_data import CheckData, demo_check_data


class Counted(Replay):
    asked = 0

    def features(
        self, jobs: pl.DataFrame, *, stage: Stage, names: Sequence[str] | None = None
    ) -> pl.DataFrame:
        self.asked += 1
        return super().features(jobs, stage=stage, names=names)


@pytest.fixture(scope="module")
def check_data() -> CheckData:
    return demo_check_data()


def test_any_jobs_in_any_order_are_told_the_same_without_asking_again(check_data: CheckData) -> None:
    past = Counted(check_data.log)
    remembered = CachedKnown(past, check_data.log, stage=Stage.SUBMIT)
    some = check_data.log.sample(200, seed=1, shuffle=True)
    assert remembered.features(some, stage=Stage.SUBMIT).equals(
        check_data.known().features(some, stage=Stage.SUBMIT)
    )
    assert remembered.features(some.clear(), stage=Stage.SUBMIT).height == 0
    few = ["user.failed", "user.submitted"]
    assert remembered.features(some, stage=Stage.SUBMIT, names=few).columns == few
    assert past.asked == 1


def test_another_stage_or_an_unknown_job_is_asked_about_anew(check_data: CheckData) -> None:
    past = Counted(check_data.log)
    remembered = CachedKnown(past, check_data.log, stage=Stage.SUBMIT)
    some = check_data.log.head(20)
    assert remembered.features(some, stage=Stage.START).equals(past.features(some, stage=Stage.START))
    stranger = some.with_columns(pl.col("job_id") + 10**9, user=pl.lit("nobody-yet"))
    assert remembered.features(stranger, stage=Stage.SUBMIT).equals(
        past.features(stranger, stage=Stage.SUBMIT)
    )
    assert past.asked == 5


def test_all_else_is_the_pasts_own(check_data: CheckData) -> None:
    past = check_data.known()
    remembered = CachedKnown(past, check_data.log, stage=Stage.SUBMIT)
    digest = next(iter(check_data.scripts))
    assert remembered.machine is past.machine
    assert remembered.script(digest) == past.script(digest) is not None
    assert remembered.script("unknown") is None
