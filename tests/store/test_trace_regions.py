"""Confirmed regions: kept with who, when and windows; dismissed ones count no more."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
import sqlalchemy as sa

from tocsin.core.decision import NewCase
from tocsin.core.errors import NotFound, StoreError
from tocsin.core.ids import JobKey
from tocsin.core.verdict import CaseStatus
from tocsin.store import audit, cases
from tocsin.store.database import Store
from tocsin.store.home import Home
from tocsin.store.retention import backup
from tocsin.store.trace_regions import (
    Confirmed,
    confirm,
    confirmed_anomalies,
    dismiss,
    examples,
    list_confirmed,
)

NOON = 1_794_900_000
JOB = JobKey("lab", 17, 4, NOON - 900)
WINDOWS = pl.DataFrame({"at": [NOON], "values": [[0.1, 0.2]]})
DETAIL: dict[str, Any] = {
    "model": "3",
    "centroid": [0.5, -1.25],
    "radius": 0.75,
    "quantile": 0.95,
    "windows": 1,
}


def confirmed(store: Store, home: Home, at: int = NOON) -> Confirmed:
    return confirm(
        store, home.regions, job=JOB, name="bad_io", windows=WINDOWS, detail=DETAIL, who="ada", at=at
    )


def test_a_confirmed_region_is_listed_and_audited_with_who_and_when(store: Store, home: Home) -> None:
    new = confirmed(store, home)
    assert list_confirmed(store) == [new]
    assert (new.name, new.centroid, new.radius, new.model) == ("bad_io", (0.5, -1.25), 0.75, "3")
    assert examples(home.regions, new.examples).equals(WINDOWS)
    [entry] = audit.read(store, job=JOB)
    assert (entry.who, entry.at, entry.what) == ("ada", NOON, "trace region confirmed")


def test_a_dismissed_region_counts_no_more_and_stays_in_the_audit_trail(store: Store, home: Home) -> None:
    first, second = confirmed(store, home), confirmed(store, home)
    dismiss(store, first.number, who="bob", at=NOON + 5, note="a test")
    assert list_confirmed(store) == [second]
    assert [entry.who for entry in audit.read(store, job=JOB)] == ["bob", "ada", "ada"]
    with pytest.raises(NotFound, match=f"no confirmed region {first.number}"):
        dismiss(store, first.number, who="bob", at=NOON + 6)


def test_anomalies_of_a_day_are_those_confirmed_in_it_and_not_dismissed(store: Store, home: Home) -> None:
    new = confirmed(store, home)
    assert confirmed_anomalies(store, NOON, NOON + 1) == [str(JOB)]
    assert confirmed_anomalies(store, NOON + 1, NOON + 100) == []
    assert confirmed_anomalies(store, NOON - 100, NOON) == []
    dismiss(store, new.number, who="bob", at=NOON + 5)
    assert confirmed_anomalies(store, NOON, NOON + 1) == []


def test_the_answer_to_a_case_of_a_trace_is_a_confirmed_anomaly_too(store: Store) -> None:
    with store.writing() as connection:
        number, _ = cases.open_case(connection, NewCase("traces:anomaly:lab:eve:run", str(JOB), NOON, {}))
        cases.open_case(connection, NewCase("workload:rogue:lab:eve:mining", str(JOB), NOON, {}))
    assert confirmed_anomalies(store, NOON, NOON + 100) == []
    cases.answer(store, number, CaseStatus.CONFIRMED, who="ada", at=NOON + 9)
    cases.answer(store, number + 1, CaseStatus.CONFIRMED, who="ada", at=NOON + 90)
    assert confirmed_anomalies(store, NOON, NOON + 50) == [str(JOB)]
    cases.answer(store, number, CaseStatus.DISMISSED, who="ada", at=NOON + 20)
    assert confirmed_anomalies(store, NOON, NOON + 50) == []


def test_windows_that_were_changed_or_lost_are_refused(store: Store, home: Home) -> None:
    new = confirmed(store, home)
    path = home.regions / new.examples
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StoreError, match="was changed after it was written"):
        examples(home.regions, new.examples)
    path.unlink()
    with pytest.raises(StoreError, match="cannot be read"):
        examples(home.regions, new.examples)


def test_a_backup_holds_the_windows_of_confirmed_jobs(store: Store, home: Home, tmp_path: Path) -> None:
    new = confirmed(store, home)
    if isinstance(store.engine.dialect, sa.dialects.sqlite.dialect):
        copy = backup(store, home, tmp_path / "copy")
        assert examples(Home(copy).regions, new.examples).equals(WINDOWS)
