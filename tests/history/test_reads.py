"""A log that was read with the fields that history looks at tells the same as the whole one."""

import polars as pl

from tocsin.core.stages import Stage
from tocsin.history.nodes import nodes_of
from tocsin.history.replay import READS, Replay
from tocsin.judge.check_data import demo_check_data


def test_the_fields_that_are_read_are_all_that_is_needed() -> None:
    log = demo_check_data().log
    asked = log.tail(50)
    past = [Replay(each) for each in (log, log.select(READS))]
    for stage in (Stage.SUBMIT, Stage.START, Stage.END):
        whole, few = (each.features(asked, stage=stage) for each in past)
        assert whole.equals(few)
        assert whole.select("user.ended").to_series().max() is not None
    nodes = [nodes_of(each)[0] for each in log["node_list"].drop_nulls().tail(50)]
    question = pl.DataFrame({"at": asked["submit"], "node": nodes})
    whole, few = (each.node_outcomes(question) for each in past)
    assert whole.equals(few)
