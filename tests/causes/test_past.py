"""What ended the last runs becomes advice for the next one, if it is the same thing again."""

import pytest

from tests.kits.ended_jobs import GIB, row
from tocsin.causes.catalogue import load_catalogue
from tocsin.causes.past import PastRun, advice_of_runs
from tocsin.core.verdict import Cause

CATALOGUE = load_catalogue()
CUDA = Cause(kind="cuda_memory", title="CUDA out of memory", text="x")
UNKNOWN = Cause(kind="unknown", title="unknown", text="")


def why(*runs: tuple[str, Cause | None], user: str | None = None) -> list[str]:
    job = row(name="train", user=user)
    past = [PastRun(*run) for run in runs]
    return [a.why for a in advice_of_runs(job, past, yours=user is None, catalogue=CATALOGUE)]


def test_three_of_four_runs_with_one_cause_are_said() -> None:
    runs = [("failed", CUDA), ("completed", None), ("failed", CUDA), ("failed", CUDA)]
    assert why(*runs) == ['3 of your last 4 runs of "train" ended by: CUDA out of memory']
    assert why(*runs, user="ann") == ['3 of ann\'s last 4 runs of "train" ended by: CUDA out of memory']


def test_a_state_of_slurm_counts_where_nobody_looked() -> None:
    assert why(("timeout", None), ("timeout", UNKNOWN)) == [
        '2 of your last 2 runs of "train" ended by: Time limit reached'
    ]


@pytest.mark.parametrize(
    "runs",
    [
        [],
        [("failed", CUDA)],
        [("failed", CUDA), ("failed", None), ("completed", None)],
        [("failed", CUDA), ("failed", CUDA), ("completed", None), ("completed", None), ("completed", None)],
        [("failed", UNKNOWN), ("failed", UNKNOWN)],
        [("failed", Cause(kind="gone", title="Gone", text=""))] * 2,
    ],
)
def test_one_failure_mixed_or_unknown_ones_are_not(runs: list[tuple[str, Cause | None]]) -> None:
    assert why(*runs) == []


def test_cancelled_runs_do_not_count() -> None:
    assert why(("cancelled", None), ("failed", CUDA), ("failed", CUDA))[0].startswith("2 of your last 2 runs")


@pytest.mark.parametrize(
    ("asked", "ended_with", "said"),
    [
        (8, 4, False),
        (4, 4, True),
        (4, 8, True),
        (0, 8, False),
        (8, 0, True),
        (None, 4, True),
        (4, None, True),
    ],
)
def test_runs_with_less_memory_say_nothing_against_a_job_with_more(
    asked: int | None, ended_with: int | None, said: bool
) -> None:
    """A request of 0 is for all memory of the node."""
    memory = None if ended_with is None else ended_with * GIB
    past = [PastRun("out_of_memory", None, memory)] * 3
    job = row(req_memory=None if asked is None else asked * GIB)
    advice = advice_of_runs(job, past, yours=True, catalogue=CATALOGUE)
    assert [a.field for a in advice] == (["req_memory"] if said else [])


def test_runs_with_less_time_say_nothing_against_a_job_with_more() -> None:
    past = [PastRun("timeout", None, None, 3600)] * 2
    assert advice_of_runs(row(time_limit=7200), past, yours=True, catalogue=CATALOGUE) == []
    assert len(advice_of_runs(row(time_limit=3600), past, yours=True, catalogue=CATALOGUE)) == 1
