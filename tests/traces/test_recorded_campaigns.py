"""The recording in bench/recordings: complete, read as it was written, and with the behaviour that its labels promise."""

from functools import cache

import pytest

from tests.conftest import REPOSITORY
from tocsin.traces.campaigns import Campaign, Split, read_campaign
from tocsin.traces.job_types import JOB_TYPES, ranks
from tocsin.traces.labelled import labelled_windows

RECORDING = REPOSITORY / "bench" / "recordings" / "real-2026-11"


@cache
def campaign(split: Split) -> Campaign:
    return read_campaign(RECORDING / split)


@pytest.mark.parametrize("split", Split)
def test_each_split_is_a_campaign_of_its_own_from_a_real_kernel(split: Split) -> None:
    card = campaign(split).card
    assert (card.split, card.origin) == (split, "recorded")
    assert card.kernel
    assert card.slurm
    assert {each.label for each in card.jobs} >= {"fit", "good_io", "mpi_2", "idle", "bad_io"}
    found = labelled_windows(campaign(split))
    assert set(found.label) >= {each.label for each in card.jobs}


def test_the_test_campaign_has_every_type_that_fits_two_cpus() -> None:
    labels = {each.label for each in campaign(Split.TEST).card.jobs}
    assert labels == {label for label in JOB_TYPES if (ranks(label) or 1) <= 2}


@pytest.mark.parametrize("split", Split)
def test_iowait_tells_bad_io_from_everything_else(split: Split) -> None:
    found = labelled_windows(campaign(split))
    waits = found.windows.values[..., 2].mean(axis=1)
    bad = found.label == "bad_io"
    assert waits[bad].min() > 0.4
    assert waits[~bad].max() < 0.3


def test_no_job_is_in_two_splits() -> None:
    keys = [set(campaign(split).keys.values()) for split in Split]
    assert sum(map(len, keys)) == len(set().union(*keys))
