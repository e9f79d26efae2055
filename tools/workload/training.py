"""Training the shipped panel from public scripts."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tocsin.workload import keywords
from tocsin.workload.encoders import Lexical
from tocsin.workload.learning import Linear, Material, calibrated, fit_linear, material, panel_of
from tocsin.workload.normal import commands
from tocsin.workload.panel import Panel
from tools.workload.corpus import Example
from tools.workload.lessons import OPERATIONS, Lesson, labels, lessons

__all__ = [
    "FALSE_ALARMS",
    "left_out_models",
    "owner_folds",
    "prepare",
    "scores_left_out",
    "threshold_of",
    "train_panel",
]

FALSE_ALARMS = 0.0005
"""Share of innocent scripts that may be called misuse: half of what we owe, since other sites have other scripts."""
_FOLDS = 5
_MARGINS = {"ai": 3.5}
"""With 20 foreign commands around each script of jobspec macro F1 is 0.89 (bench), without passages 0.72 on three parts of
five; scripts as they are keep theirs. Signs do this for misuse."""


def prepare(examples: Sequence[Example], seed: int = 0) -> tuple[list[Lesson], Material]:
    """The lessons of these examples, and the same as n-grams."""
    training_set = lessons(examples, seed)
    return training_set, material(
        [t.text for t in training_set], [t.owner for t in training_set], [t.whole for t in training_set]
    )


def owner_folds(owners: NDArray[np.int64], count: int, seed: int) -> list[NDArray[np.int64]]:
    """The owners in so many parts, dealt out at random, those with most scripts first so that parts are alike."""
    sizes = np.bincount(owners)
    order = np.random.default_rng(seed).permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    return [order[start::count] for start in range(count)]


def left_out_models(
    training_set: Sequence[Lesson], stuff: Material, operation: str, parts: Sequence[NDArray[np.int64]]
) -> Iterator[tuple[NDArray[np.int64], Lexical, Linear]]:
    """For each part of the owners an encoder and a model that knew nothing of them."""
    rows, y, weight = labels(training_set, operation)
    for part in parts:
        encoder = stuff.encoder(part)
        learn = ~np.isin(stuff.owners[rows], part)
        X = stuff.matrix(rows[learn], encoder, excluded=_excluded(operation))
        yield part, encoder, _with_margin(operation, fit_linear(X, y[learn], weight[learn]))


def _excluded(operation: str) -> Sequence[slice]:
    """Few scripts of misuse have directives, and half of the examples are disguised: neither must be a feature."""
    return () if operation == "ai" else (keywords.HEADER, keywords.GIBBERISH)


def _with_margin(operation: str, model: Linear) -> Linear:
    return model._replace(margin=_MARGINS.get(operation))


def scores_left_out(
    training_set: Sequence[Lesson], stuff: Material, operation: str, parts: Sequence[NDArray[np.int64]]
) -> NDArray[np.float64]:
    """The score of each example by a model that knew nothing of its owner; owners in no part get none."""
    whole = np.array([row for row, lesson in enumerate(training_set) if lesson.example is not None])
    scores = np.full(len(whole), np.nan)
    for part, encoder, model in left_out_models(training_set, stuff, operation, parts):
        asked = np.flatnonzero(np.isin(stuff.owners[whole], part))
        scripts = [commands(training_set[row].text) for row in whole[asked]]
        scores[asked] = (
            encoder.score(scripts, model.weights[:, None], (model.margin,)).scores[:, 0] + model.bias
        )
    return scores


def threshold_of(operation: str, scores: NDArray[np.float64], examples: Sequence[Example]) -> float:
    """Where an operation counts as seen: AI where it is likelier than not, misuse where innocent scripts stay below."""
    if operation == "ai":
        return 0.0
    innocent = np.sort(scores[[example.misuse is None for example in examples]])
    allowed = int(FALSE_ALARMS * len(innocent))
    return float(innocent[-allowed - 1 : len(innocent) - allowed + 1].mean())


def train_panel(
    examples: Sequence[Example], training_set: Sequence[Lesson], stuff: Material, *, seed: int = 0
) -> tuple[Panel, dict[str, NDArray[np.float64]], dict[str, float]]:
    """The shipped panel; and for its card the scores with the owner left out, and the thresholds on them."""
    count = len(examples)
    parts = owner_folds(stuff.owners[:count], _FOLDS, seed)
    encoder = stuff.encoder()
    models, scores, thresholds = [], {}, {}
    for operation in OPERATIONS:
        scores[operation] = scores_left_out(training_set, stuff, operation, parts)
        thresholds[operation] = threshold_of(operation, scores[operation], examples)
        rows, y, weight = labels(training_set, operation)
        X = stuff.matrix(rows, encoder, excluded=_excluded(operation))
        model = _with_margin(operation, fit_linear(X, y, weight))
        known = rows < count
        models.append(calibrated(model, scores[operation][rows[known]], y[known], thresholds[operation]))
    return panel_of(encoder, OPERATIONS, models), scores, thresholds
