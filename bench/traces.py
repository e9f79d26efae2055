"""Autoencoders of CPU traces: the paper's Table 2, and anomalies against simpler detectors."""

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np

from bench import traces_anomalies
from bench.traces_data import SIMULATED_SECONDS, available, data
from tocsin.traces.architecture import ARCHITECTURES
from tocsin.traces.training import train

__all__ = ["run"]

SEEDS = 10
SECONDS = 10  # of CPU time to train one model
ANOMALOUS = "bad_io"
PAPER = {
    "vanilla": {"normal": [0.0064, 0.0002], "anomalous": [0.3543, 0.0434], "silhouette": [0.7503, 0.0207]},
    "node_graph": {"normal": [0.0122, 0.0033], "anomalous": [0.3642, 0.0065], "silhouette": [0.6849, 0.0373]},
    "job_graph": {"normal": [0.0069, 0.0003], "anomalous": [0.3733, 0.0151], "silhouette": [0.6694, 0.0232]},
}
"""Table 2 of the paper, mean and standard deviation."""
_SILHOUETTE_WINDOWS = 2000
_TYPES = ("fit", "good_io", "mpi", "idle", "bad_io")
"""The paper's job types (Table 1); those of MPI go by their number of ranks too."""


def run() -> dict[str, Any]:
    names = available()
    return {
        "seeds": SEEDS,
        "cpu_seconds_per_model": SECONDS,
        "simulated_seconds": SIMULATED_SECONDS,
        "paper": PAPER,
        "table2": {name: _table2(name) for name in names},
        "anomalies": {name: traces_anomalies.measure(name) for name in names},
    }


def _table2(name: str) -> dict[str, Any]:
    tasks = [(name, architecture, seed) for architecture in ARCHITECTURES for seed in range(SEEDS)]
    # A process for each core, with one thread each.
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), mp_context=get_context("spawn")) as pool:
        found = list(pool.map(_member, *zip(*tasks, strict=True)))
    given = data(name)
    test = given.test[given.test.whole]
    bad = test.label == ANOMALOUS
    return {
        "windows": {
            "train": len(given.train),
            "normal": int(test.normal.sum()),
            "anomalous": int(bad.sum()),
        },
        **{
            architecture: _summary(
                [each for task, each in zip(tasks, found, strict=True) if task[1] == architecture]
            )
            for architecture in ARCHITECTURES
        },
    }


def _summary(members: list[dict[str, float]]) -> dict[str, Any]:
    figures: dict[str, Any] = {
        name: [
            round(float(np.mean([each[name] for each in members])), 4),
            round(float(np.std([each[name] for each in members])), 4),
        ]
        for name in ("normal", "anomalous", "silhouette")
    }
    return figures | {
        "separated_seeds": int(sum(each["separated"] for each in members)),
        "worst_gap": round(min(each["lowest_anomalous"] / each["highest_normal"] for each in members), 3),
        "parameters": int(members[0]["parameters"]),
        "train_cpu_seconds": round(float(np.mean([each["train_cpu_seconds"] for each in members])), 1),
        "score_cpu_ms_per_1000": round(
            float(np.median([each["score_cpu_ms_per_1000"] for each in members])), 1
        ),
    }


def _member(name: str, architecture: str, seed: int) -> dict[str, float]:
    """One seed of one architecture, trained on the normal windows and measured on the test split."""
    import time

    from sklearn.metrics import silhouette_score

    given = data(name)
    test = given.test
    started = time.process_time()
    model = train(
        given.train,
        architecture=architecture,
        seed=seed,
        validation=given.validation,
        seconds=SECONDS,
    )
    trained = time.process_time()
    model.score(test.windows[:100])
    warm = time.process_time()
    scores = model.score(test.windows)
    scored = time.process_time()
    of_paper = np.flatnonzero(test.whole & [label.startswith(_TYPES) for label in test.label])
    rows = np.random.default_rng(0).permutation(of_paper)[:_SILHOUETTE_WINDOWS]
    normal = scores.error[test.whole & test.normal]
    anomalous = scores.error[test.whole & (test.label == ANOMALOUS)]
    return {
        "normal": float(normal.mean()),
        "anomalous": float(anomalous.mean()),
        "silhouette": float(silhouette_score(scores.embedding[rows], test.label[rows])),
        "highest_normal": float(normal.max()),
        "lowest_anomalous": float(anomalous.min()),
        "separated": float(anomalous.min() > normal.max()),
        "parameters": model.parameters,
        "train_cpu_seconds": trained - started,
        "score_cpu_ms_per_1000": 1e6 * (scored - warm) / len(test),
    }
