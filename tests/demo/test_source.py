"""The demo's accounting as something to import: all of it once, in order, and resumable."""

import polars as pl
from polars.testing import assert_frame_equal

from tocsin.core.frames import SCHEMA, key_text
from tocsin.core.intake import JobSource
from tocsin.demo.cluster import START, DemoCluster

DAY = 86400


def everything(source: JobSource, resume: int = 0) -> pl.DataFrame:
    return pl.concat(batch.jobs for batch in source.batches(resume))


def test_it_holds_what_accounting_holds_and_each_job_once(cluster: DemoCluster, jobs: pl.DataFrame) -> None:
    found = everything(cluster.history())
    assert found.schema == SCHEMA
    assert found.select(key_text()).to_series().is_unique().all()
    order = ["job_id", "task", "submit"]
    assert_frame_equal(found.sort(order), jobs.sort(order))
    assert set(found["source"]) == {"demo"}


def test_an_interrupted_import_goes_on_in_another_process() -> None:
    batches = list(DemoCluster(seed=2, days=5).history().batches())
    assert [batch.position for batch in batches] == [START + day * DAY for day in range(1, 6)]
    again = DemoCluster(seed=2, days=5).history()
    assert_frame_equal(everything(again, batches[1].position), pl.concat(batch.jobs for batch in batches[2:]))
    assert list(again.batches(batches[-1].position)) == []


def test_it_says_how_far_it_is() -> None:
    source = DemoCluster(seed=2, days=3).history()
    batches = list(source.batches())
    assert [batch.done for batch in batches] == [DAY, 2 * DAY, 3 * DAY]
    assert source.total == 3 * DAY
    assert all(batch.read == batch.jobs.height for batch in batches)
    assert source.rejects.total == 0
    assert "do not use it to measure accuracy" in source.notes[0]


def test_only_the_last_days_are_given_if_so_asked() -> None:
    cluster = DemoCluster(seed=2, days=5)
    last = everything(cluster.history(days=2))
    whole = everything(cluster.history())
    since = START + 3 * DAY
    assert (
        last.height == whole.filter(pl.col("end").is_null() | (pl.col("end") > since)).height < whole.height
    )


def test_its_identity_tells_seeds_and_spans_apart() -> None:
    identities = {
        DemoCluster(seed=1, days=3).history().identity,
        DemoCluster(seed=2, days=3).history().identity,
        DemoCluster(seed=2, days=4).history().identity,
        DemoCluster(seed=2, days=4).history(days=1).identity,
    }
    assert len(identities) == 4
    assert DemoCluster(seed=1, days=3).history().identity in identities
