"""First metrics are filled in once, for jobs that are alive and for jobs that have ended."""

import polars as pl
import sqlalchemy as sa

from tests.kits.job_frames import SUBMIT, frame
from tocsin.core.fields import Part, fields_of
from tocsin.store import jobs
from tocsin.store.database import Store, open_store
from tocsin.store.first_metrics import fill, unmeasured
from tocsin.store.migrations import HEAD, VERSION_TABLE

FIELDS = fields_of(Part.FIRST_METRICS)
ENDED = {"start": SUBMIT, "end": SUBMIT + 500, "outcome": "failed", "known_at": SUBMIT + 560}


def test_they_are_filled_in_once(store: Store) -> None:
    rows = [{"job_id": 1, "start": SUBMIT}, {"job_id": 2, **ENDED}, {"job_id": 3, "task": 4, "start": SUBMIT}]
    short = {"job_id": 4, "start": SUBMIT, "end": SUBMIT + 119, "outcome": "failed"}
    jobs.upsert(store, frame(*rows, short))
    found = unmeasured(store, "lab", SUBMIT, SUBMIT + 120)
    assert sorted(found["job_id"]) == [1, 2, 3]
    assert unmeasured(store, "lab", SUBMIT, SUBMIT + 119).is_empty()
    measured = frame(*({**row, "first_cpu_user": 0.5, "first_memory": 7} for row in rows))
    assert fill(store, measured) == 3
    assert fill(store, measured.with_columns(first_cpu_user=pl.lit(0.9))) == 0
    assert jobs.load(store)["first_cpu_user"].to_list() == [0.5, 0.5, 0.5, None]
    # a later record of the job leaves them as they are
    jobs.upsert(store, frame({"job_id": 1, **ENDED, "first_cpu_user": 0.1}))
    assert jobs.load(store)["first_cpu_user"].to_list() == [0.5, 0.5, 0.5, None]


def test_an_older_store_gets_their_columns_and_keeps_its_jobs(url: str) -> None:
    with open_store(url) as store:
        jobs.upsert(store, frame({"job_id": 7}))
        with store.writing() as connection:
            for name in FIELDS:
                connection.exec_driver_sql(f"ALTER TABLE jobs DROP COLUMN {name}")
            connection.exec_driver_sql(f"UPDATE {VERSION_TABLE} SET version_num = '0001'")
    with open_store(url) as store:
        assert jobs.load(store)["job_id"].to_list() == [7]
        with store.reading() as connection:
            columns = {column["name"] for column in sa.inspect(connection).get_columns("jobs")}
            version = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalar()
    assert columns >= set(FIELDS)
    assert version == HEAD
