"""Splits by time: a row is used for training only if its outcome was known at the time of the training."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.core.errors import ModelError
from tocsin.core.units import UNLIMITED

__all__ = ["DAY", "NEVER", "Rows", "Step", "first_last", "folds", "walk"]

DAY = 86400
NEVER = UNLIMITED
"""`known_at` of a row whose outcome never became known: it is never used for training."""

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Step:
    """Train at the instant `cut` on the rows `train`, test on the rows `test`; both are in order of time."""

    cut: int
    train: Rows
    test: Rows


def first_last(submit: NDArray[Any], known_at: NDArray[Any], *, share: float = 0.8) -> Step:
    """The first share of the jobs by submission and the rest. Jobs of the same instant stay together."""
    times = _Times(submit, known_at)
    cut = times.cut_after(share)
    return Step(cut, times.known_by(cut), times.between(cut, None))


def walk(
    submit: NDArray[Any],
    known_at: NDArray[Any],
    *,
    first: float = 0.2,
    start: int | None = None,
    every_days: float = 7,
    train_days: float | None = None,
) -> Iterator[Step]:
    """Steps of `every_days` from the instant after the first share of the jobs (or from `start`) to the end.

    Each job from there on is tested exactly once; spans without jobs have no step. With `train_days`, only jobs
    submitted in that many days before the cut are used for training.
    """
    times = _Times(submit, known_at)
    start, every = times.cut_after(first) if start is None else start, round(every_days * DAY)
    if every < 1:
        raise ModelError(f"a walk cannot step by {every_days} days; use a positive number")
    tested = times.submit[np.searchsorted(times.submit, start) :]
    for number in np.unique((tested - start) // every):
        cut = start + int(number) * every
        since = None if train_days is None else cut - round(train_days * DAY)
        yield Step(cut, times.known_by(cut, since), times.between(cut, cut + every))


def folds(submit: NDArray[Any], known_at: NDArray[Any], *, count: int = 3, first: float = 0.5) -> list[Step]:
    """Validation folds within a training: after the first share, `count` spans with about equal numbers of jobs."""
    times = _Times(submit, known_at)
    shares = np.linspace(first, 1.0, count + 1)[:-1]
    cuts = sorted({times.cut_after(float(share)) for share in shares})
    return [
        Step(cut, times.known_by(cut), times.between(cut, following))
        for cut, following in zip(cuts, [*cuts[1:], None], strict=True)
    ]


class _Times:
    """The rows in order of submission, and in the order in which their outcomes became known."""

    def __init__(self, submit: NDArray[Any], known_at: NDArray[Any]) -> None:
        if len(submit) != len(known_at):
            raise ModelError(f"{len(submit):,} submissions, but {len(known_at):,} instants of known outcomes")
        if len(submit) < 2:
            raise ModelError(f"{len(submit)} jobs cannot be split by time; at least 2 are needed")
        submits, knowns = (np.asarray(times, dtype=np.int64) for times in (submit, known_at))
        self.order: Rows = np.argsort(submits, kind="stable")
        self.submit = submits[self.order]
        known = knowns[self.order]
        self.by_known: Rows = np.argsort(known, kind="stable")  # places in `order`
        self.known = known[self.by_known]

    def cut_after(self, share: float) -> int:
        """The submission of the first job after this share of them."""
        if not 0 <= share < 1:
            raise ModelError(f"{share} is not a valid first share of the jobs; use 0 or more and less than 1")
        return int(self.submit[min(int(np.ceil(share * len(self.submit))), len(self.submit) - 1)])

    def between(self, first: int, following: int | None) -> Rows:
        end = None if following is None else np.searchsorted(self.submit, following)
        return self.order[np.searchsorted(self.submit, first) : end]

    def known_by(self, cut: int, since: int | None = None) -> Rows:
        places = self.by_known[: np.searchsorted(self.known, cut, side="right")]
        places = np.sort(places)
        # An outcome known before the submission is an error in the record; such a row must not be in train and test.
        low = 0 if since is None else int(np.searchsorted(self.submit, since))
        high = int(np.searchsorted(self.submit, cut))
        return self.order[places[(places >= low) & (places < high)]]
