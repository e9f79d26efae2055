"""Trains the execution-time models on the jobs that ended in the last α days, one forest for each operation."""

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.errors import ModelError
from tocsin.core.frames import key_text
from tocsin.core.units import format_instant
from tocsin.core.verdict import SEEN_FROM
from tocsin.models.calibration import IDENTITY, Calibrator, calibrate
from tocsin.models.cards import Window
from tocsin.models.engines import Booster, Floats, Matrix, engine
from tocsin.models.metrics import Metric, evaluate
from tocsin.models.splits import DAY
from tocsin.workload.execution.features import candidates, matrix, select
from tocsin.workload.execution.gate import Gate, gate
from tocsin.workload.execution.models import Classifier, FittedExecution

__all__ = ["ALPHA_DAYS", "BETA_DAYS", "due", "execution_labels", "in_window", "train_execution"]

ALPHA_DAYS = 5.0
"""Days of ended jobs to train on (RoWD, section 4.2 and table 5)."""
BETA_DAYS = 1.0
"""Days after which the models are trained again (likewise)."""
TREES = 100
FEWEST_OF_EACH = 5
LEVEL = 0.01
REHEARSAL = 0.8
"""The first share of the window trains the rehearsal; the rest is for figures and calibration."""


def in_window(*, now: int, alpha_days: float = ALPHA_DAYS) -> pl.Expr:
    """Whether a job ended in the last α days and that was known by now; a job that we stopped is not an example."""
    return (
        (pl.col("end") > now - round(alpha_days * DAY))
        & (pl.coalesce("known_at", "end") <= now)
        & (pl.col("end") <= now)
        & ~pl.col("intervened").fill_null(False)
    ).fill_null(False)


def due(trained: int | None, *, now: int, beta_days: float = BETA_DAYS) -> bool:
    """Whether it is time to train again; `trained` is the instant of the last training, None if there was none."""
    return trained is None or now - trained >= round(beta_days * DAY)


def execution_labels(
    jobs: pl.DataFrame,
    probabilities: Mapping[str, Mapping[str, float]],
    answered: Mapping[str, Mapping[str, bool]] | None = None,
) -> dict[str, pl.Series]:
    """Labels of each operation from the screening at submission; people's answers to cases override it.

    Both `probabilities` and `answered` (confirmed or dismissed cases) are by job key as text. A task in neither
    gets the label of its array; any other job in neither gets null.
    """
    answered = answered or {}
    keys = jobs.select(key_text()).to_series().to_list()
    arrays = jobs.with_columns(task=pl.lit(None, pl.Int64)).select(key_text()).to_series().to_list()
    names = sorted({name for each in (*probabilities.values(), *answered.values()) for name in each})
    labels = {}
    for name in names:
        known = {key: p[name] >= SEEN_FROM for key, p in probabilities.items() if name in p}
        known |= {key: bool(flags[name]) for key, flags in answered.items() if name in flags}
        values = [known.get(key, known.get(array)) for key, array in zip(keys, arrays, strict=True)]
        labels[name] = pl.Series(name, values, dtype=pl.Boolean)
    return labels


def train_execution(
    jobs: pl.DataFrame,
    labels: Mapping[str, pl.Series],
    *,
    now: int,
    alpha_days: float = ALPHA_DAYS,
    shortest: int = 0,
    answers: Mapping[str, pl.Series] | None = None,
    seed: int = 0,
    threads: int = 1,
    rehearse: bool = True,
) -> FittedExecution:
    """Train on the jobs among these that ended in the last α days; `labels` are row by row, null if unknown.

    An operation that cannot be learned (too few positive or negative jobs) gets no model and a reason; if none can,
    the training is refused. Without `rehearse`, there are no figures and no calibration.
    With `answers`, the labels given by people, each operation must pass the gate to be used.
    """
    rows, known, people = _window(
        jobs, labels, answers or {}, now=now, alpha_days=alpha_days, shortest=shortest
    )
    values = candidates(rows)
    found: dict[str, Classifier] = {}
    untrained: dict[str, str] = {}
    for name, flags in known.items():
        try:
            found[name] = _classifier(
                name,
                rows,
                values,
                flags,
                None if answers is None else people[name],
                seed=seed,
                threads=threads,
                rehearse=rehearse,
            )
        except ModelError as error:
            untrained[name] = str(error)
    if not found:
        raise ModelError(
            "; ".join(untrained.values()) or "no operation was named, so there is nothing to learn"
        )
    submit = rows["submit"]
    return FittedExecution(
        operations=found,
        untrained=untrained,
        alpha_days=float(alpha_days),
        rows=rows.height,
        window=Window(first=int(submit.min()), last=int(submit.max())),  # type: ignore[arg-type]  # instants
        shortest=shortest,
    )


def _window(
    jobs: pl.DataFrame,
    labels: Mapping[str, pl.Series],
    answers: Mapping[str, pl.Series],
    *,
    now: int,
    alpha_days: float,
    shortest: int,
) -> tuple[pl.DataFrame, dict[str, pl.Series], dict[str, pl.Series]]:
    """The training jobs in the order of their ends, with all labels of each operation, and those of people."""
    if not alpha_days > 0:
        raise ModelError(f"a training window of {alpha_days:g} days holds no job; name a positive number")
    for name, flags in labels.items():
        if len(flags) != jobs.height:
            raise ModelError(f'{len(flags):,} labels of "{name}" were given for {jobs.height:,} jobs')
    unknown = pl.Series([None] * jobs.height, dtype=pl.Boolean)
    given = {_label(name): flags for name, flags in labels.items()}
    given |= {_answer(name): answers.get(name, unknown) for name in labels}
    rows = (
        jobs.with_columns(pl.Series(name, flags, dtype=pl.Boolean) for name, flags in given.items())
        .filter(in_window(now=now, alpha_days=alpha_days), (pl.col("elapsed") >= shortest).fill_null(True))
        .sort("end", "submit", "job_id", "task", maintain_order=True)
    )
    if not rows.height:
        raise ModelError(_no_jobs(jobs, now, alpha_days))
    names = sorted(labels)
    return (
        rows.drop(given),
        {name: rows[_label(name)] for name in names},
        {name: rows[_answer(name)] for name in names},
    )


def _classifier(
    name: str,
    rows: pl.DataFrame,
    values: pl.DataFrame,
    flags: pl.Series,
    answers: pl.Series | None,
    *,
    seed: int,
    threads: int,
    rehearse: bool,
) -> Classifier:
    labelled = flags.is_not_null()
    rows, values = rows.filter(labelled), values.filter(labelled)
    answers = None if answers is None else answers.filter(labelled)
    y = flags.filter(labelled).cast(pl.Float64).to_numpy()
    positive = int(y.sum())
    if min(positive, len(y) - positive) < FEWEST_OF_EACH:
        raise ModelError(
            f'{positive:,} of the {len(y):,} jobs with a label in the window are "{name}"; a model needs at least '
            f"{FEWEST_OF_EACH} that are and as many that are not: take a longer window"
        )
    selection = select(values, y)
    if not selection.kept:
        raise ModelError(
            f'no counter of the {len(y):,} jobs distinguishes "{name}" from the rest; '
            "let accounting gather energy, CPU time or I/O"
        )
    X = matrix(values, selection.kept)
    held = _rehearsal(X, y, rows, answers, seed=seed, threads=threads) if rehearse else _Rehearsal()
    return Classifier(
        features=selection.kept,
        dropped=selection.dropped,
        forest=_forest(X, y, seed=seed, threads=threads),
        calibrator=held.calibrator,
        figures=held.figures,
        rows=len(y),
        positive=positive,
        gate=held.gate,
    )


def _forest(X: Matrix, y: Floats, *, seed: int, threads: int) -> Booster:
    """As close to scikit-learn's defaults, which the paper uses, as LightGBM's random forest allows."""
    parameters: dict[str, Any] = {
        "num_leaves": 255,
        "min_data_in_leaf": 1,
        "min_sum_hessian_in_leaf": 0.0,
        "feature_fraction": 1.0,
        "feature_fraction_bynode": min(1.0, max(sqrt(X.shape[1]), 2.0) / X.shape[1]),
        "max_bin": 127,
    }
    return engine("bagged").train(X, y, parameters=parameters, seed=seed, threads=threads, rounds=TREES)


class _Rehearsal(NamedTuple):
    calibrator: Calibrator = IDENTITY
    figures: Sequence[Metric] = ()
    gate: Gate | None = None


def _rehearsal(
    X: Matrix, y: Floats, rows: pl.DataFrame, answers: pl.Series | None, *, seed: int, threads: int
) -> _Rehearsal:
    """The same training on the first jobs of the window, evaluated on the later ones."""
    end, submit = rows["end"].to_numpy(), rows["submit"].to_numpy()
    known = rows.select(pl.coalesce("known_at", "end")).to_series().to_numpy()
    cut = end[min(int(REHEARSAL * len(end)), len(end) - 1)]
    early, later = np.flatnonzero(known < cut), np.flatnonzero(end >= cut)
    if _smaller_class(y[early]) < FEWEST_OF_EACH or not len(later):
        nothing = np.array([], dtype=np.int64)
        return _Rehearsal(gate=_gate(y, rows, answers, nothing, nothing.astype(np.bool_)))
    p = _forest(X[early], y[early], seed=seed, threads=threads).predict(X[later])
    calibrator = calibrate(p, y[later]).calibrator
    # A flat curve would make all jobs alike, although the order of the later ones was merely unproven.
    if np.ptp(calibrator.apply(np.array([0.01, 0.99]))) < LEVEL:
        calibrator = IDENTITY
    figures = evaluate(y[later], p, submit[later], threshold=SEEN_FROM, resamples=50, seed=seed)
    # The calibrator was fitted on these jobs, so an alarm of either kind counts.
    alarm = (p >= SEEN_FROM) | (calibrator.apply(p) >= SEEN_FROM)
    return _Rehearsal(calibrator, figures, _gate(y, rows, answers, later, alarm))


def _gate(
    y: Floats,
    rows: pl.DataFrame,
    answers: pl.Series | None,
    later: NDArray[np.int64],
    alarm: NDArray[np.bool_],
) -> Gate | None:
    if answers is None:
        return None
    return gate(y, rows["user"].to_list(), later=later, alarm=alarm, answers=answers.to_list())


def _smaller_class(y: NDArray[np.float64]) -> int:
    return min(int(y.sum()), len(y) - int(y.sum()))


def _label(name: str) -> str:
    return f"label of {name}"


def _answer(name: str) -> str:
    return f"answer about {name}"


def _no_jobs(jobs: pl.DataFrame, now: int, alpha_days: float) -> str:
    last = jobs["end"].max() if jobs.height else None
    seen = f" (the last known one ended at {format_instant(int(last))})" if last is not None else ""  # type: ignore[arg-type]  # an instant
    return (
        f"no job ended in the {alpha_days:g} days before {format_instant(now)}{seen}; "
        "import newer jobs or name a longer window (--days)"
    )
