"""Small models, cards and logs that the tests of this room share."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.core.stages import Stage
from tocsin.models.cards import Card, Figure, Window

FILES = {"model.txt": b"tree\n1 2 3\n", "encoders/users.json": b'{"ana": 1}'}


def write(folder: Path) -> None:
    for name, content in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)


def card(detector: str = "failure", stage: Stage = Stage.SUBMIT, **more: Any) -> Card:
    figure = Figure(
        name="auc",
        value=0.91,
        low=0.9,
        high=0.92,
        stage=stage,
        split="first 80 % by time → rest",
        data="KTH-SP2",
    )
    known: dict[str, Any] = {
        "target": "failed",
        "clusters": ["kth"],
        "engine": "lightgbm",
        "created": 1_794_775_393,
        "window": Window(first=1_700_000_000, last=1_794_000_000),
        "rows": 28_476,
        "data_hash": "ab" * 32,
        "features": ["user_failures", "time_limit"],
        "parameters": {"num_leaves": 31, "learning_rate": 0.1},
        "calibration": {"kind": "identity", "numbers": []},
        "thresholds": [{"value": 0.5}],
        "figures": [figure],
    }
    return Card(detector=detector, stage=stage, **{**known, **more})


def table(
    rows: int = 1500, features: int = 6, seed: int = 0
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Features with gaps, and outcomes that the first two tell something about."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, features)).astype(np.float32)
    y = (X[:, 0] - 0.5 * X[:, 1] + random.normal(size=rows) > 1).astype(np.float64)
    X[random.random(X.shape) < 0.1] = np.nan
    return X, y


def log(rows: int = 1000, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Submit instants over some months and when each outcome became known."""
    random = np.random.default_rng(seed)
    submit = np.sort(random.integers(1_700_000_000, 1_710_000_000, size=rows))
    return submit, submit + random.integers(60, 10 * 86400, size=rows)
