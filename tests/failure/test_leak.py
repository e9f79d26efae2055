"""On a real log: nothing that became known after T moves a prediction before T, through training and history alike."""

from pathlib import Path

import polars as pl

from tocsin.core.detector import Budget
from tocsin.core.stages import Stage
from tocsin.failure.detector import DETECTOR
from tocsin.history.replay import Replay
from tocsin.judge.check_data import scrambled
from tocsin.sources.swf import SwfFile

LAG = 60


def test_scrambling_the_future_changes_no_bit_of_the_past(data: Path) -> None:
    path = data / "swf" / "KTH-SP2-1996-2.1-cln.swf.gz"
    log = pl.concat(batch.jobs for batch in SwfFile(path).batches())
    log = log.with_columns(known_at=pl.when(pl.col("outcome").is_not_null()).then(pl.col("end") + LAG))
    submits = log["submit"].sort()
    cut, until = int(submits[log.height // 3]), int(submits[log.height // 2])
    other = scrambled(log, until)
    answers = []
    for world in (log, other):
        past = Replay(world)
        train = world.filter(pl.col("known_at") <= cut, pl.col("submit") < cut)
        model = DETECTOR.fit(train, past, stage=Stage.SUBMIT, seed=1, budget=Budget(trials=2))
        asked = world.filter(pl.col("submit").is_between(cut, until)).sort("submit", "job_id")
        answers.append(model.probabilities(asked, past.features(asked, stage=Stage.SUBMIT)))
    assert len(answers[0]) == len(answers[1]) > 4_000
    assert answers[0].tobytes() == answers[1].tobytes()
    later = pl.col("submit") > until
    assert not log.filter(later).equals(other.filter(later)), "the scramble must have changed something"
