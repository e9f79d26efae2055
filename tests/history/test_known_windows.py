"""Windows as a Known gives them."""

import polars as pl

from tests.kits.watching import NOON, frame
from tocsin.core.frames import WINDOWS, key_text
from tocsin.history.known_windows import KnownWindows
from tocsin.history.ledger import Ledger


def windows(*ends: tuple[str, int]) -> pl.DataFrame:
    rows = [(job, "n1", 0, at, 0, [0.5] * 3) for job, at in ends]
    return pl.DataFrame(rows, schema=WINDOWS, orient="row")


def test_a_job_gets_its_own_windows_up_to_the_instant() -> None:
    mine, other = f"lab:1@{NOON}", f"lab:2@{NOON}"
    jobs = frame({"job_id": 1, "start": NOON}, {"job_id": 2, "start": NOON})
    known = KnownWindows(windows((mine, NOON + 100), (other, NOON + 100), (mine, NOON + 110)), jobs)
    found = known(jobs[0], NOON + 105)
    assert found.select("job", "at").rows() == [(mine, NOON + 100)]
    assert found.schema == WINDOWS


def test_a_task_gets_the_windows_of_its_siblings_at_the_same_age() -> None:
    starts = {0: NOON, 1: NOON + 1000, 2: NOON + 30}
    jobs = frame(*({"job_id": 7, "task": task, "start": start} for task, start in starts.items()))
    requeued = frame({"job_id": 7, "task": 4, "submit": NOON + 50, "start": NOON + 60})
    other = frame({"job_id": 17, "task": 1, "start": NOON})
    everyone = pl.concat([jobs, requeued, other])
    keys = everyone.select(key_text()).to_series().to_list()
    ends = [
        (key, start + age) for key, start in zip(keys, everyone["start"], strict=True) for age in (100, 500)
    ]
    ledger = Ledger(windows=KnownWindows(windows(*ends), everyone))
    found = ledger.windows(jobs[1], NOON + 1000 + 110)
    assert sorted(found.select("job", "at").rows()) == [
        (f"lab:7_0@{NOON}", NOON + 100),
        (f"lab:7_1@{NOON}", NOON + 1100),
        (f"lab:7_2@{NOON}", NOON + 130),
        (f"lab:7_4@{NOON + 50}", NOON + 160),
    ]
