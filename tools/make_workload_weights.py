"""Make the shipped weights anew: `python -m tools.make_workload_weights DATA_FOLDER`."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tocsin.core.errors import TocsinError
from tocsin.core.stages import Stage
from tocsin.models.cards import Card, Figure
from tocsin.models.files import hashes
from tocsin.models.registry import CARD
from tocsin.workload.screening import BUILTIN, Screener
from tools.workload.corpus import Example, corpus, corpus_hash
from tools.workload.lessons import OPERATIONS
from tools.workload.training import FALSE_ALARMS, prepare, train_panel

__all__ = ["macro_f1", "make_builtin"]

CREATED = 1794787200
"""Of the weights, not of the run: the same data gives the same files."""
_SPLIT = "five parts of whole owners, each asked of a model that knew nothing of them"
_DATA = "SCRIPT-AI (francescoantici/SCRIPT-AI), jobspec (converged-computing/jobspec-database, weak labels), misuse (mixed)"


def make_builtin(data: Path, folder: Path = BUILTIN) -> Card:
    """Train on the public scripts below `data` and write weights and card to `folder`."""
    examples = corpus(data)
    training_set, stuff = prepare(examples)
    panel, scores, thresholds = train_panel(examples, training_set, stuff)
    folder.mkdir(parents=True, exist_ok=True)
    Screener([panel]).save(folder)
    (folder / CARD).unlink(missing_ok=True)
    card = Card(
        detector="workload",
        version="builtin",
        stage=Stage.SUBMIT,
        engine="logistic regression over hashed n-grams",
        operations=list(OPERATIONS),
        created=CREATED,
        rows=len(examples),
        data_hash=corpus_hash(examples),
        features=[
            "byte n-grams of 4 to 6",
            "words",
            "pairs of words",
            "names of known software, of its domains and languages",
            "words of machine learning",
            "share of random lines",
            "whether directives ask for GPUs (ai alone)",
        ],
        parameters={
            "n-grams": len(stuff.vocabulary),
            "data": _DATA,
            "made-up scripts": "tools.workload",
        },
        calibration={"rule": "one stretch of the score, on scores with the owner left out"},
        thresholds=[
            {"operation": name, "score": thresholds[name], "rule": _rule(name)} for name in OPERATIONS
        ],
        figures=_figures(examples, scores, thresholds),
        files=hashes(folder),
    )
    (folder / CARD).write_bytes(card.render())
    return card


def _rule(operation: str) -> str:
    return "likelier than not" if operation == "ai" else f"{FALSE_ALARMS:.2%} of innocent scripts at most"


def _figures(
    examples: Sequence[Example], scores: Mapping[str, NDArray[np.float64]], thresholds: Mapping[str, float]
) -> list[Figure]:
    found = []
    ai = np.array([-1 if example.ai is None else example.ai for example in examples])
    origin = np.array([example.origin for example in examples])
    word = np.array([example.ai_word for example in examples])
    seen = scores["ai"] >= 0
    for data, rows in (
        ("SCRIPT-AI", origin == "script-ai"),
        ("jobspec, labelled", (origin == "jobspec") & (ai >= 0)),
        ("jobspec, labelled, without a word of AI", (origin == "jobspec") & (ai >= 0) & ~word),
    ):
        found.append(_figure("ai: macro F1", macro_f1(ai[rows], seen[rows]), data))
    for operation in OPERATIONS[1:]:
        rings = scores[operation] >= thresholds[operation]
        real = np.array([example.misuse == operation for example in examples])
        found.append(_figure(f"{operation}: recall, without signs", float(rings[real].mean()), "misuse"))
        innocent = origin == "jobspec"
        found.append(_figure(f"{operation}: false alarms", float(rings[innocent].mean()), "jobspec"))
    return found


def macro_f1(y: NDArray[np.int64], seen: NDArray[np.bool_]) -> float:
    """The mean of the F1 of both classes."""
    parts = []
    for label in (0, 1):
        right = int(((y == label) & (seen == label)).sum())
        parts.append(2 * right / max(int((y == label).sum() + (seen == label).sum()), 1))
    return sum(parts) / 2


def _figure(name: str, value: float, data: str) -> Figure:
    return Figure(
        name=name, value=round(value, 4), low=None, high=None, stage=Stage.SUBMIT, split=_SPLIT, data=data,
        reason="no interval: scripts of one owner are alike",
    )  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m tools.make_workload_weights DATA_FOLDER", file=sys.stderr)
        return 2
    try:
        card = make_builtin(Path(arguments[0]))
    except TocsinError as error:
        print(error, file=sys.stderr)
        return 1
    for figure in card.figures:
        print(f"{figure.name}: {figure.value} ({figure.data}; {figure.split})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
