"""A failure model read back from disk: what `FittedFailure.save` wrote, and nothing else."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tocsin.core.errors import ModelError
from tocsin.core.outcomes import Target
from tocsin.failure.columns import Columns
from tocsin.failure.explainers import Explainers
from tocsin.failure.fitted import FILE, HOLDOUT, NAME, VERSION, FittedFailure
from tocsin.failure.holdout import Calibrated, Holdout
from tocsin.failure.plan import plan_from_json
from tocsin.models.cards import Window
from tocsin.models.engines import engine

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
    found = engine(document["engine"])
    return FittedFailure(
        columns=Columns.from_json(document["columns"]),
        target=Target(document["target"]),
        engine=found.name,
        suffix=found.suffix,
        model=found.load(folder / f"model{found.suffix}", threads=threads),
        plan=plan_from_json(document["plan"]),
        holdout=Holdout.read(folder / HOLDOUT),
        calibrated=Calibrated.from_json(document["calibrated"]),
        causes={str(cause): float(share) for cause, share in document["causes"].items()},
        window=Window(**document["window"]),
        rows=int(document["rows"]),
        clusters=tuple(str(name) for name in document["clusters"]),
        explainers=Explainers.load(folder, threads=threads) if document["explained"] else None,
    )
