"""A failure model read back from disk: what `FittedFailure.save` wrote, and nothing else."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tocsin.core.errors import ModelError
from tocsin.core.outcomes import Target
from tocsin.failure.columns import Columns
from tocsin.failure.ensemble import load_ensemble
from tocsin.failure.fitted import FILE, NAME, VERSION, FittedFailure
from tocsin.models.calibration import calibrator_from_json
from tocsin.models.cards import Window
from tocsin.models.engines import engine
from tocsin.models.metrics import Metric
from tocsin.models.thresholds import threshold_from_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = ["load"]


def load(folder: Path, *, threads: int) -> FittedFailure:
    """What was saved; anything else is refused with the file's name."""
    path = folder / FILE
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(
            f"{path} cannot be read: {str(error)[:200]}; train the detector {NAME} again"
        ) from None
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise ModelError(f"{path} is not of version {VERSION}; train the detector {NAME} again")
    try:
        return _model(document, folder, threads)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelError(
            f"{path} is not as it was written ({str(error)[:100]}); restore it from a backup or train again"
        ) from None


def _model(document: "Mapping[str, Any]", folder: Path, threads: int) -> FittedFailure:
    name = document["engine"]
    found = engine(name)
    columns = Columns.from_json(document["columns"])
    members = len(document["parameters"]["members"])
    return FittedFailure(
        columns=columns,
        target=Target(document["target"]),
        engine=name,
        model=load_ensemble(folder, found, members, threads=threads),
        calibrator=calibrator_from_json(document["calibrator"]),
        threshold=threshold_from_json(document["threshold"]),
        table=[threshold_from_json(row) for row in document["table"]],
        figures=[Metric(**figure) for figure in document["figures"]],
        parameters=dict(document["parameters"]),
        search=dict(document["search"]),
        brier=dict(document["brier"]),
        causes={str(cause): float(share) for cause, share in document["causes"].items()},
        window=Window(**document["window"]),
        rows=int(document["rows"]),
    )
