"""A ledger that one thread moves and others ask: no question moves it, and none sees a half-counted moment."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl

from tocsin.core.stages import Stage
from tocsin.demo.cluster import START, DemoCluster
from tocsin.history.ledger import Ledger
from tocsin.history.present import Present

DAY = 86400


def test_questions_from_other_threads_do_not_move_history() -> None:
    jobs = pl.concat(batch.jobs for batch in DemoCluster(days=1).history().batches())
    jobs = jobs.with_columns(known_at=pl.col("end") + 60)
    later = jobs.sort("submit").tail(5).with_columns(submit=pl.lit(START + 2 * DAY))
    asked, alone = Ledger(), Ledger()
    for ledger in (asked, alone):
        ledger.learn(jobs)
    present = Present(asked)

    def ask(_: int) -> pl.DataFrame:
        return present.features(later, stage=Stage.SUBMIT)

    with ThreadPoolExecutor(3) as pool:
        answers = [pool.submit(ask, number) for number in range(30)]
        for hour in range(1, 25):
            asked.advance(START + hour * 3600)
            alone.advance(START + hour * 3600)
        found = [answer.result() for answer in answers]
    assert asked.known_until == alone.known_until == START + DAY
    expected = alone.peek().features(later, stage=Stage.SUBMIT)
    assert all(answer.equals(expected) for answer in found), (
        "all that was known by then counts, whenever it is asked"
    )
    assert asked.features(later, stage=Stage.SUBMIT).equals(alone.features(later, stage=Stage.SUBMIT))


def test_the_questions_of_one_check_are_answered_from_one_look_until_history_moves() -> None:
    jobs = pl.concat(batch.jobs for batch in DemoCluster(days=1).history().batches())
    jobs = jobs.with_columns(known_at=pl.col("end") + 60).sort("submit")
    ledger = Ledger()
    ledger.learn(jobs.head(100))
    present = Present(ledger)
    job = jobs.tail(1).with_columns(submit=pl.lit(START + 2 * DAY))
    names = ["cluster.submitted", "user.ended", "user.since", "twin.failed_last10"]

    def asked() -> list[float]:
        frame = present.features(job, stage=Stage.SUBMIT, names=names)
        array = present.numbers(job, stage=Stage.SUBMIT, names=names)
        assert frame.equals(ledger.peek().features(job, stage=Stage.SUBMIT, names=names))
        assert np.array_equal(frame.to_numpy(), array, equal_nan=True)
        return list(array[0])

    before = asked()
    assert before[0] == 100
    ledger.learn(jobs)
    assert asked()[0] == jobs.height
    ledger.advance(START + 2 * DAY)
    assert asked()[0] == jobs.height
