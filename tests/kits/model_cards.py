"""A model's card, and small files to keep with it."""

from pathlib import Path
from typing import Any

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
