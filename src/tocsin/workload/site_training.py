"""Trains a screener on a site's own examples of an operation, on top of the shipped weights."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.core.stages import Stage
from tocsin.models.cards import Card, Figure
from tocsin.workload import keywords
from tocsin.workload.encoders import Cached, Encoder, Lexical
from tocsin.workload.learning import calibrated, fit_linear, material, panel_of
from tocsin.workload.minilm import MiniLM
from tocsin.workload.normal import commands
from tocsin.workload.own_examples import Examples
from tocsin.workload.panel import Panel
from tocsin.workload.screening import Screener, builtin

if TYPE_CHECKING:
    import scipy.sparse as sp

__all__ = ["Correct", "TrainingResult", "operation_card", "train_operation"]

_PARTS = 20
"""Maximum number of cross-validation folds."""
_HOLD = 0.25
"""How firmly the shipped weights are held (the penalty on changes, relative to a loss of 1 per example): with 16 scripts
of each kind that the shipped weights mostly miss, 1 verdict of 1,500 on other scripts of jobspec changes."""
_NOTHING = 0.2
"""Weight of the empty script relative to all others, for a new operation."""
_SPLIT = "a site's examples, each asked of a model that had not seen it"


class Correct(NamedTuple):
    """How many examples a model classifies correctly, of the operation (`yes`) and of others (`no`)."""

    yes: int
    no: int


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """A trained screener, with its cross-validated results and those of the weights before."""

    screener: Screener
    examples: Examples
    now: Correct
    before: Correct | None
    """By the shipped weights; None for a new operation."""

    @property
    def no_worse(self) -> bool:
        """At least as accurate as before; for a new operation, better than chance."""
        if self.before is None:
            return self._share(self.now) > 0.5
        return self._share(self.now) >= self._share(self.before)

    def _share(self, correct: Correct) -> float:
        """Balanced accuracy."""
        return (correct.yes / len(self.examples.yes) + correct.no / len(self.examples.no)) / 2


def train_operation(
    screener: Screener, name: str, examples: Examples, *, encoder: Path | None = None
) -> TrainingResult:
    """Train an operation on these examples.

    A shipped operation starts from the shipped weights each time, so training on the same examples twice changes
    nothing. Other operations are trained on the examples alone, as is every operation with `encoder`, the folder
    of a sentence model whose embeddings replace n-grams.
    """
    shipped = builtin()
    y = np.repeat([1, 0], [len(examples.yes), len(examples.no)])
    before: NDArray[np.float64] | None = None
    for panel in shipped.panels:
        if name in panel.operations and isinstance(panel.encoder, Lexical):
            before = _shipped_scores(panel, panel.encoder, name, examples)
            if encoder is None:
                column, seen = _corrected(panel, panel.encoder, name, examples, y, before)
                trained = _with_column(screener, panel, name, column)
                return TrainingResult(trained, examples, _correct(seen, y), _correct(before, y))
    panel, seen = _learned(name, examples, y, encoder)
    correct_before = None if before is None else _correct(before, y)
    return TrainingResult(screener.with_panel(panel), examples, _correct(seen, y), correct_before)


def _shipped_scores(panel: Panel, encoder: Lexical, name: str, examples: Examples) -> NDArray[np.float64]:
    scripts = [commands(text) for text in (*examples.yes, *examples.no)]
    place = panel.operations.index(name)
    scores: NDArray[np.float64] = encoder.score(scripts, panel.weights, panel.margins).scores[:, place]
    return scores + float(panel.bias[place])


def _correct(score: NDArray[np.float64], y: NDArray[np.int64]) -> Correct:
    return Correct(int((score[y == 1] >= 0).sum()), int((score[y == 0] < 0).sum()))


def _corrected(
    panel: Panel,
    encoder: Lexical,
    name: str,
    examples: Examples,
    y: NDArray[np.int64],
    before: NDArray[np.float64],
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """The operation's weights with a correction, and the scores with each example left out.

    Only n-grams are corrected: a language or domain that a few examples share would affect all other scripts.
    """
    place = panel.operations.index(name)
    texts = [*examples.yes, *examples.no]
    size = len(encoder.rarity)
    X = encoder.encode([commands(text) for text in texts])[:, :size]
    weight = _copy_weights(texts)
    after = before.copy()
    for part in _parts(texts):
        learn = ~part
        change = _correction(X[learn], y[learn], before[learn], weight[learn])
        after[part] += X[part] @ change
    column = panel.weights[:, place].copy()
    column[:size] += _correction(X, y, before, weight)
    return column.astype(np.float16).astype(np.float32), after


def _correction(
    X: "sp.csr_matrix", y: NDArray[np.int64], offset: NDArray[np.float64], weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Logistic regression with an offset, regularised towards no change."""
    from scipy.optimize import minimize

    sign = 2.0 * y - 1
    known = np.unique(X.indices)
    narrow = X[:, known]

    def loss(change: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        clear = sign * (offset + narrow @ change)
        wrong = weight / (1 + np.exp(np.clip(clear, -40, 40)))
        value = weight @ np.logaddexp(0, -clear) + 0.5 * _HOLD * change @ change
        return float(value), _HOLD * change - narrow.T @ (sign * wrong)

    best = minimize(loss, np.zeros(len(known)), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    found = np.zeros(X.shape[1])
    found[known] = best.x
    return found


def _copy_weights(texts: Sequence[str]) -> NDArray[np.float64]:
    """Weights: all copies of a script together count once."""
    _, same, counts = np.unique([commands(t).text for t in texts], return_inverse=True, return_counts=True)
    return np.asarray(1 / counts[same], dtype=np.float64)


def _parts(texts: Sequence[str]) -> list[NDArray[np.bool_]]:
    """Which examples are left out at a time: each alone while there are few; copies of a script always together."""
    _, same = np.unique([commands(text).text for text in texts], return_inverse=True)
    part = np.random.default_rng(0).permutation(same.max() + 1)[same] % _PARTS
    return [part == number for number in np.unique(part)]


def _with_column(screener: Screener, panel: Panel, name: str, column: NDArray[np.float32]) -> Screener:
    """The screener with an operation's weights replaced."""
    for at, other in enumerate(screener.panels):
        if name in other.operations and _same_encoder(other, panel):
            weights = other.weights.copy(order="F")
            place = other.operations.index(name)
            weights[:, place] = column
            bias = other.bias.copy()
            bias[place] = panel.bias[panel.operations.index(name)]
            panels = list(screener.panels)
            panels[at] = replace(other, weights=weights, bias=bias)
            return Screener(panels, screener.rules, site_trained=screener.site_trained | {name})
    place = panel.operations.index(name)
    alone = Panel(
        panel.encoder,
        (name,),
        np.asfortranarray(column[:, None]),
        panel.bias[[place]],
        (panel.margins[place],) if panel.margins else (),
    )
    return screener.with_panel(alone)


def _same_encoder(one: Panel, other: Panel) -> bool:
    if not (isinstance(one.encoder, Lexical) and isinstance(other.encoder, Lexical)):
        return False
    return np.array_equal(one.encoder.vocabulary.keys, other.encoder.vocabulary.keys) and np.array_equal(
        one.encoder.rarity, other.encoder.rarity
    )


def _learned(
    name: str, examples: Examples, y: NDArray[np.int64], folder: Path | None
) -> tuple[Panel, NDArray[np.float64]]:
    """A panel learned from the examples alone, and their scores with each left out."""
    # a script without any known n-gram must not be classified as the operation
    texts, y = [*examples.yes, *examples.no, ""], np.append(y, 0)
    weight = np.where(y == 1, 0.5 * len(y) / len(examples.yes), 0.5 * len(y) / len(examples.no))
    weight[-1] = _NOTHING * len(y)
    encoder: Lexical | Cached
    X: Any
    if folder is not None:
        encoder = Cached(MiniLM(folder))
        X = encoder.encode([commands(text) for text in texts])
    else:
        stuff = material(texts, [str(number) for number in range(len(texts))], [True] * len(texts), least=2)
        encoder = stuff.encoder(least=2)
        # in few examples, a language or domain that all share would replace what is specific to them
        X = stuff.matrix(np.arange(len(texts)), encoder, excluded=[keywords.KINDS])
    score = np.empty(len(y))
    for part in _parts(texts):
        if len(np.unique(y[~part])) < 2:  # all of one kind are alike: nothing is left to learn from
            score[part] = -np.inf
            continue
        linear = fit_linear(X[~part], y[~part], weight[~part])
        score[part] = X[part] @ linear.weights + linear.bias
    known = np.isfinite(score)
    linear = calibrated(fit_linear(X, y, weight), score[known], y[known], 0.0)
    return panel_of(encoder, (name,), [linear]), score[:-1]


def operation_card(
    screener: Screener, operation: str, *, created: int, data: str, training: TrainingResult | None = None
) -> Card:
    """The registry card of a screener that was trained on an operation, or given rules."""
    return Card(
        detector="workload",
        stage=Stage.SUBMIT,
        engine="logistic regression",
        operations=list(screener.operations),
        created=created,
        rows=len(training.examples) if training else 0,
        parameters={
            "trained": operation,
            "data": data,
            "encoders": [_named(panel.encoder) for panel in screener.panels],
        },
        calibration={"rule": "scores with each example left out" if training else "none: rules"},
        figures=_figures(operation, training, data) if training else [],
        parent="builtin",
    )


def _named(encoder: Encoder) -> dict[str, str]:
    """An encoder on a card: by its name; a sentence model also by its folder and hash."""
    inner = encoder.encoder if isinstance(encoder, Cached) else encoder
    if isinstance(inner, MiniLM):
        return {"name": inner.name, "folder": str(inner.folder), "sha256": inner.sha256}
    return {"name": inner.name}


def _figures(operation: str, training: TrainingResult, data: str) -> list[Figure]:
    correct, of = training.now, training.examples
    return [
        Figure(
            name=f"{operation}: {what}", value=round(value, 4), low=None, high=None, stage=Stage.SUBMIT,
            split=_SPLIT, data=data, reason="no interval: scripts of one site are alike",
        )
        for what, value in (
            ("recall", correct.yes / len(of.yes)),
            ("false alarms", 1 - correct.no / len(of.no)),
        )
    ]  # fmt: skip
