"""Anomalies that operators meet: what the autoencoder finds of each, against simpler detectors on the same windows."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bench.traces_data import STRIDE, Data, data
from tocsin.core.channels import CPU_CHANNELS, JOB_CHANNELS
from tocsin.traces.labelled import LabelledWindows
from tocsin.traces.onnx_model import OnnxModel
from tocsin.traces.scaling import Scaling
from tocsin.traces.thresholds import Rule, upper_quantile
from tocsin.traces.training import train
from tocsin.traces.windows import Windows

__all__ = ["OWN_RULE", "RATE", "measure"]

OWN_RULE = "tocsin, own rule"

RATE = 0.01  # share of the normal validation windows above a detector's threshold
IN_A_ROW = 3
IOWAIT = 0.1  # mean of a window, for the fixed threshold
SECONDS = 15  # of CPU time to train a model

Floats = NDArray[Any]


class Scored(NamedTuple):
    """A detector's scores of the validation and test windows; with `fixed`, its threshold is not set on the first."""

    validation: Floats
    test: Floats
    fixed: float | None = None

    @property
    def alarming(self) -> NDArray[np.bool_]:
        bound = np.quantile(self.validation, 1 - RATE) if self.fixed is None else self.fixed
        return np.asarray(self.test > bound)


def measure(name: str) -> dict[str, Any]:
    return {
        "rate": RATE,
        "in_a_row": IN_A_ROW,
        "iowait": IOWAIT,
        "cpus": _measure(data(name, CPU_CHANNELS)),
        "jobs": _measure(data(name, JOB_CHANNELS)),
    }


def _measure(given: Data) -> dict[str, Any]:
    model = train(given.train, validation=given.validation, seconds=SECONDS)
    usual, found = model.score(given.thresholds.windows), model.score(given.test.windows)
    scaling = Scaling.fit(given.train.values) if tuple(given.train.channels) == JOB_CHANNELS else None
    sets = [given.train, given.thresholds.windows, given.test.windows]
    values = [part.values if scaling is None else scaling.scaled(part.values) for part in sets]
    rule = upper_quantile(usual.error, Rule().rate, overlap=given.overlap)
    detectors = {
        OWN_RULE: Scored(usual.error, found.error, fixed=rule),
        "tocsin": Scored(usual.error, found.error),
        "pca": _pca(values),
        "iforest": _forest(values),
    }
    if scaling is None:
        iowait = [part.values[..., CPU_CHANNELS.index("iowait")].mean(axis=1) for part in sets[1:]]
        detectors["iowait"] = Scored(iowait[0], iowait[1], fixed=IOWAIT)
    watched = (given.test.windows.index["at"] % STRIDE == 0).to_numpy()
    hours = float((given.test.normal & watched).sum()) * STRIDE / 3600
    rang = {who: _rang(given.test.windows, scored.alarming, watched) for who, scored in detectors.items()}
    return {
        "normal_hours": round(hours, 2),
        "false_alarms_per_hour": {
            who: round(_episodes(given.test[watched], rang[who][watched]) / hours, 3) for who in detectors
        },
        "false_window_rate": {
            who: round(float(scored.alarming[given.test.normal].mean()), 4)
            for who, scored in detectors.items()
        },
        "anomalies": {
            label: _anomaly(given.test, label, detectors, rang)
            | {"channels": _channels(model, found.by_channel, given.test, label)}
            for label in np.unique(given.test.label[~given.test.normal]).tolist()
        },
    }


def _anomaly(
    test: LabelledWindows, label: str, detectors: dict[str, Scored], rang: dict[str, NDArray[np.bool_]]
) -> dict[str, Any]:
    rows = test.label == label
    jobs = test.windows.index["job"].to_numpy()
    return {
        "windows": int(rows.sum()),
        "jobs": len(set(jobs[rows])),
        "recall": {who: round(float(each.alarming[rows].mean()), 3) for who, each in detectors.items()},
        "jobs_found": {who: len(set(jobs[rows & rang[who]])) for who in detectors},
    }


def _channels(model: OnnxModel, by_channel: Floats, test: LabelledWindows, label: str) -> dict[str, float]:
    """The channels whose error grows most over that of normal windows, and how many times."""
    usual = by_channel[test.normal].mean(axis=0)
    times = by_channel[test.label == label].mean(axis=0) / np.maximum(usual, 1e-3 * usual.mean() + 1e-9)
    return {model.outputs[n]: round(float(times[n]), 1) for n in np.argsort(-times)[:3]}


def _pca(values: Sequence[Floats]) -> Scored:
    """Reconstruction error of whole windows, 90 % of the variance kept."""
    from sklearn.decomposition import PCA

    train, *others = (part.reshape(len(part), -1) for part in values)
    model = PCA(0.9, svd_solver="full").fit(train)
    return Scored(
        *(((part - model.inverse_transform(model.transform(part))) ** 2).mean(axis=1) for part in others)
    )


def _forest(values: Sequence[Floats]) -> Scored:
    """Isolation forest on each channel's mean, spread, extremes and mean step over the window."""
    from sklearn.ensemble import IsolationForest

    def features(part: Floats) -> Floats:
        steps = np.abs(np.diff(part, axis=1)).mean(axis=1)
        return np.concatenate(
            [part.mean(axis=1), part.std(axis=1), part.min(axis=1), part.max(axis=1), steps], axis=1
        )

    train, *others = map(features, values)
    model = IsolationForest(n_estimators=200, random_state=0).fit(train)
    return Scored(*(-model.score_samples(part) for part in others))


def _runs(windows: Windows, alarming: NDArray[np.bool_]) -> pl.DataFrame:
    """For each window the number of its run: neighbours in time on one CPU, or of one job, that agree on an alarm."""
    rows = (
        windows.index.select("node", "cpu", "job", "at")
        .with_row_index("row")
        .with_columns(alarming=pl.Series(alarming))
    )
    rows = rows.sort("node", "cpu", "job", "at", nulls_last=True)
    new = pl.any_horizontal(
        *(pl.col(name).ne_missing(pl.col(name).shift()) for name in ("node", "cpu", "job", "alarming")),
        pl.col("at").diff() != STRIDE,
    ).fill_null(value=True)
    return rows.with_columns(run=new.cum_sum()).with_columns(length=pl.len().over("run"))


def _rang(windows: Windows, alarming: NDArray[np.bool_], watched: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Windows of runs that are long enough to ring, among those that a watch looks at."""
    runs = _runs(windows[watched], alarming[watched])
    rows = runs.filter(pl.col("alarming") & (pl.col("length") >= IN_A_ROW))
    rang = np.zeros(len(windows), dtype=bool)
    rang[np.flatnonzero(watched)[rows["row"].to_numpy()]] = True
    return rang


def _episodes(test: LabelledWindows, rang: NDArray[np.bool_]) -> int:
    """Alarms of normal windows."""
    rows = _runs(test.windows, rang & test.normal)
    return rows.filter(pl.col("alarming"))["run"].n_unique()
