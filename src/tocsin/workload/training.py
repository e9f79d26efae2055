"""Training: the shipped panel from public scripts, and a site's own operation from a folder of examples."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.core.errors import InputError, ScriptError
from tocsin.core.stages import Stage
from tocsin.models.cards import Card
from tocsin.scripts.text import read
from tocsin.workload import hints
from tocsin.workload.corpus import Example
from tocsin.workload.encoders import Cached, Encoder, Lexical
from tocsin.workload.learning import Linear, Material, calibrated, fit_linear, material, owner_folds
from tocsin.workload.lessons import OPERATIONS, Lesson, labels, lessons
from tocsin.workload.minilm import MiniLM
from tocsin.workload.normal import commands
from tocsin.workload.panel import Panel
from tocsin.workload.rules import OPERATION
from tocsin.workload.screening import Screener

__all__ = [
    "FALSE_ALARMS",
    "left_out_models",
    "operation_card",
    "panel_of",
    "prepare",
    "scores_left_out",
    "threshold_of",
    "train_operation",
    "train_panel",
]

FALSE_ALARMS = 0.0005
"""Share of innocent scripts that may be called misuse: half of what we owe, since other sites have other scripts."""
_FOLDS = 5
_LEAST = 5
"""Examples of each kind."""
_NOTHING = 0.2
"""Weight of the empty script against all others."""
_MOST_EXAMPLES = 100_000
_MARGINS = {"ai": 3.5}
"""With 20 foreign commands around each script of jobspec macro F1 is 0.91 (bench), without passages 0.72 on three parts of
five; scripts as they are keep theirs. Signs do this for misuse."""


def prepare(examples: Sequence[Example], seed: int = 0) -> tuple[list[Lesson], Material]:
    """The lessons of these examples, and the same as n-grams."""
    taught = lessons(examples, seed)
    return taught, material([t.text for t in taught], [t.owner for t in taught], [t.whole for t in taught])


def left_out_models(
    taught: Sequence[Lesson], stuff: Material, operation: str, parts: Sequence[NDArray[np.int64]]
) -> Iterator[tuple[NDArray[np.int64], Lexical, Linear]]:
    """For each part of the owners an encoder and a model that knew nothing of them."""
    rows, y, weight = labels(taught, operation)
    for part in parts:
        encoder = stuff.encoder(part)
        learn = ~np.isin(stuff.owners[rows], part)
        X = stuff.matrix(rows[learn], encoder, unheard=_unheard(operation))
        yield part, encoder, _heard(operation, fit_linear(X, y[learn], weight[learn]))


def _unheard(operation: str) -> slice | None:
    """Scripts of misuse have few directives, and that must not tell them; only AI leans on what these ask for."""
    return None if operation == "ai" else hints.HEADER


def _heard(operation: str, model: Linear) -> Linear:
    return model._replace(margin=_MARGINS.get(operation))


def scores_left_out(
    taught: Sequence[Lesson], stuff: Material, operation: str, parts: Sequence[NDArray[np.int64]]
) -> NDArray[np.float64]:
    """The score of each example by a model that knew nothing of its owner; owners in no part get none."""
    whole = np.array([row for row, lesson in enumerate(taught) if lesson.example is not None])
    scores = np.full(len(whole), np.nan)
    for part, encoder, model in left_out_models(taught, stuff, operation, parts):
        asked = np.flatnonzero(np.isin(stuff.owners[whole], part))
        scripts = [commands(taught[row].text) for row in whole[asked]]
        scores[asked] = encoder.scores(scripts, model.weights[:, None], (model.margin,))[:, 0] + model.bias
    return scores


def threshold_of(operation: str, scores: NDArray[np.float64], examples: Sequence[Example]) -> float:
    """Where an operation counts as seen: AI where it is likelier than not, misuse where innocent scripts stay below."""
    if operation == "ai":
        return 0.0
    innocent = np.sort(scores[[example.misuse is None for example in examples]])
    allowed = int(FALSE_ALARMS * len(innocent))
    return float(innocent[-allowed - 1 : len(innocent) - allowed + 1].mean())


def train_panel(
    examples: Sequence[Example], taught: Sequence[Lesson], stuff: Material, *, seed: int = 0
) -> tuple[Panel, dict[str, NDArray[np.float64]], dict[str, float]]:
    """The shipped panel; and for its card the scores with the owner left out, and the thresholds on them."""
    count = len(examples)
    parts = owner_folds(stuff.owners[:count], _FOLDS, seed)
    encoder = stuff.encoder()
    models, scores, thresholds = [], {}, {}
    for operation in OPERATIONS:
        scores[operation] = scores_left_out(taught, stuff, operation, parts)
        thresholds[operation] = threshold_of(operation, scores[operation], examples)
        rows, y, weight = labels(taught, operation)
        X = stuff.matrix(rows, encoder, unheard=_unheard(operation))
        model = _heard(operation, fit_linear(X, y, weight))
        known = rows < count
        models.append(calibrated(model, scores[operation][rows[known]], y[known], thresholds[operation]))
    return panel_of(encoder, OPERATIONS, models), scores, thresholds


def train_operation(
    name: str,
    folder: Path,
    *,
    background: Iterable[str] = (),
    more: Sequence[tuple[str, bool]] = (),
    model: Path | None = None,
) -> Panel:
    """A panel for one operation of a site's own.

    FOLDER/yes holds scripts that are it, FOLDER/no scripts that are not; without FOLDER/yes all scripts of the folder
    are it. `background` are further scripts that are not, such as all that the site kept; `more` are answered cases.
    With `model`, a folder of a sentence model, the model leans on that instead of on n-grams.
    """
    if not OPERATION.fullmatch(name):
        raise InputError(f'"{name[:80]}" is no name of an operation; it has small letters, digits and _')
    yes = [
        *_scripts(folder / "yes" if (folder / "yes").is_dir() else folder),
        *(t for t, is_it in more if is_it),
    ]
    no = [
        *(_scripts(folder / "no") if (folder / "no").is_dir() else []),
        *(t for t, is_it in more if not is_it),
    ]
    no += list(background)
    for found, what in ((yes, f"of {name}"), (no, "of other jobs")):
        if len(found) < _LEAST:
            raise InputError(
                f"{folder} has {len(found)} examples {what}; at least {_LEAST} are needed"
                + (", in the folder no or among the scripts that tocsin kept" if found is no else "")
            )
    # what says nothing is not it: a script of which no n-gram is known must not be called it
    texts, y = [*yes, *no, ""], np.repeat([1, 0], [len(yes), len(no) + 1])
    weight = np.where(y == 1, 0.5 * len(y) / len(yes), 0.5 * len(y) / len(no))
    weight[-1] = _NOTHING * len(y)
    if model is not None:
        return _over_sentences(name, texts, y, weight, model)
    stuff = material(texts, [str(number) for number in range(len(texts))], [True] * len(texts), least=2)
    encoder = stuff.encoder(least=2)
    # in few examples a language or a domain that all of them share would stand for what they have of their own
    X = stuff.matrix(np.arange(len(texts)), encoder, unheard=hints.KINDS)
    linear = fit_linear(X, y, weight)
    left_out = _left_out_scores(X, y, weight)
    return panel_of(encoder, (name,), [calibrated(linear, left_out, y, 0.0)])


def operation_card(screener: Screener, operation: str, *, examples: int, created: int, data: str) -> Card:
    """For the registry, of a screener that was taught an operation."""
    return Card(
        detector="workload",
        stage=Stage.SUBMIT,
        target=", ".join(screener.operations),
        engine="logistic regression",
        created=created,
        rows=examples,
        parameters={
            "trained": operation,
            "data": data,
            "encoders": [p.encoder.name for p in screener.panels],
        },
        calibration={"rule": "one stretch of the score, on scores with every fifth example left out"},
        parent="builtin",
    )


def _over_sentences(
    name: str, texts: Sequence[str], y: NDArray[np.int64], weight: NDArray[np.float64], model: Path
) -> Panel:
    encoder = Cached(MiniLM(model))
    X = encoder.encode([commands(text) for text in texts])
    linear = fit_linear(X, y, weight)
    return panel_of(encoder, (name,), [calibrated(linear, _left_out_scores(X, y, weight), y, 0.0)])


def _left_out_scores(X: Any, y: NDArray[np.int64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each script's score by a model that had not seen it; every fifth of both kinds at a time."""
    part = np.empty(len(y), dtype=np.int64)
    for kind in (0, 1):
        part[y == kind] = np.arange((y == kind).sum()) % _FOLDS
    scores = np.empty(len(y))
    for fold in range(_FOLDS):
        learn = part != fold
        model = fit_linear(X[learn], y[learn], weight[learn])
        scores[~learn] = X[~learn] @ model.weights + model.bias
    return scores


def panel_of(encoder: Encoder, operations: Sequence[str], models: Sequence[Linear]) -> Panel:
    """Weights as they are saved, so that a loaded panel answers the same."""
    weights = np.stack([model.weights for model in models], axis=1).astype(np.float16)
    return Panel(
        encoder,
        tuple(operations),
        np.asfortranarray(weights, dtype=np.float32),
        np.array([model.bias for model in models], dtype=np.float32),
        tuple(model.margin for model in models),
    )


def _scripts(folder: Path) -> list[str]:
    """The scripts in a folder; what is no text is left out."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.is_file())[:_MOST_EXAMPLES]
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be read: {error.strerror}") from None
    found = []
    for path in paths:
        try:
            found.append(read(path))
        except ScriptError:
            continue
    return found
