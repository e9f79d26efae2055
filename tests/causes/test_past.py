"""What ended the last runs becomes advice for the next one, if it is the same thing again."""

import pytest

from tocsin.causes.catalogue import load_catalogue
from tocsin.causes.past import advice_of_runs
from tocsin.core.verdict import Cause

CATALOGUE = load_catalogue()
CUDA = Cause(kind="cuda_memory", title="CUDA out of memory", text="x")
UNKNOWN = Cause(kind="unknown", title="unknown", text="")


def why(*runs: tuple[str, Cause | None], user: str | None = None) -> list[str]:
    return [a.why for a in advice_of_runs(runs, name="train", user=user, catalogue=CATALOGUE)]


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
