"""Windows as a Known gives them."""

import polars as pl

from tests.kits.watching import NOON, frame
from tocsin.core.frames import WINDOWS
from tocsin.history.known_windows import KnownWindows
from tocsin.history.ledger import Ledger


def windows(*ends: tuple[str, int]) -> pl.DataFrame:
    rows = [(job, "n1", 0, at, 0, [0.5] * 3) for job, at in ends]
    return pl.DataFrame(rows, schema=WINDOWS, orient="row")


def test_a_job_gets_its_own_windows_up_to_the_instant() -> None:
    mine, other = f"lab:1@{NOON}", f"lab:2@{NOON}"
    known = KnownWindows(windows((mine, NOON + 100), (other, NOON + 100), (mine, NOON + 110)))
    found = known(frame({"job_id": 1}), NOON + 105)
    assert found.select("job", "at").rows() == [(mine, NOON + 100)]
    assert found.schema == WINDOWS


def test_a_task_gets_the_windows_of_its_siblings_too() -> None:
    tasks = [f"lab:7_{task}@{NOON}" for task in range(3)]
    requeued = f"lab:7_4@{NOON + 50}"
    known = KnownWindows(windows(*((job, NOON + 100) for job in (*tasks, requeued, f"lab:17_1@{NOON}"))))
    ledger = Ledger(windows=known)
    found = ledger.windows(frame({"job_id": 7, "task": 1}), NOON + 100)
    assert set(found["job"]) == {*tasks, requeued}
