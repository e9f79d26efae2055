"""Trains linear models over the lexical encoder, so that whole owners can be left out at little cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.workload import keywords
from tocsin.workload.encoders import KEYWORD_VALUE, Encoder, Lexical, gibberish_lines
from tocsin.workload.lexical import grams
from tocsin.workload.normal import Commands, commands
from tocsin.workload.panel import Panel
from tocsin.workload.vocabulary import Vocabulary

if TYPE_CHECKING:
    import scipy.sparse as sp

__all__ = ["Linear", "Material", "calibrated", "fit_linear", "material", "panel_of"]

LEAST_OWNERS = 6
"""Owners that must have an n-gram for it to be known: with fewer, it is a name of theirs."""
STRENGTH = 4.0
"""Of the fit relative to the regularisation (C of scikit-learn); chosen with owners left out, flat from 2 to 6."""
_MOST_ITERATIONS = 60


class Linear(NamedTuple):
    """A linear model; `margin` is how much a passage must outscore the whole script to count instead of it."""

    weights: NDArray[np.float32]
    bias: float
    margin: float | None = None


@dataclass(frozen=True, slots=True)
class Material:
    """Scripts as n-grams of one vocabulary, with keywords and owners; each training uses its own subset of owners."""

    vocabulary: Vocabulary
    presence: "sp.csr_matrix"
    keyword_flags: NDArray[np.float32]
    owners: NDArray[np.int64]
    by_owner: "sp.csr_matrix"

    def encoder(
        self, left_out: Sequence[int] | NDArray[np.int64] = (), *, least: int = LEAST_OWNERS
    ) -> Lexical:
        """The lexical encoder as learned without some owners: n-grams that only they have are unknown."""
        kept = np.ones(self.by_owner.shape[0], dtype=bool)
        kept[list(left_out)] = False
        had = np.asarray(self.by_owner[kept].sum(axis=0)).ravel()
        rarity = np.where(had >= least, np.log(max(kept.sum(), 2) / np.maximum(had, 1)) + 0.1, 0)
        return Lexical(
            self.vocabulary, (rarity / max(rarity.max(), 1e-9)).astype(np.float16).astype(np.float32)
        )

    def matrix(
        self, rows: NDArray[np.int64], encoder: Lexical, *, excluded: Sequence[slice] = ()
    ) -> "sp.csr_matrix":
        """The encoded scripts, with `excluded` keyword columns set to 0."""
        import scipy.sparse as sp

        chosen = self.presence[rows]
        chosen.data = encoder.rarity[chosen.indices]
        lengths = np.sqrt(np.asarray(chosen.multiply(chosen).sum(axis=1)).ravel())
        chosen.data /= np.repeat(np.maximum(lengths, 1e-9), np.diff(chosen.indptr)).astype(np.float32)
        keyword_flags = KEYWORD_VALUE * self.keyword_flags[rows]
        for columns in excluded:
            keyword_flags[:, columns] = 0
        return sp.hstack([chosen, sp.csr_matrix(keyword_flags)], format="csr")


def material(
    texts: Sequence[str], owners: Sequence[str], whole: Sequence[bool], *, least: int = LEAST_OWNERS
) -> Material:
    """What trainings share: n-grams that at least this many owners have in `whole`, undisguised scripts."""
    import scipy.sparse as sp

    names = {name: number for number, name in enumerate(dict.fromkeys(owners))}
    numbers = np.array([names[owner] for owner in owners], dtype=np.int64)
    scripts = [commands(text) for text in texts]
    vocabulary = Vocabulary(
        _shared_keys([s for s, w in zip(scripts, whole, strict=True) if w], numbers[np.array(whole)], least)
    )
    lines = {line: None for script in scripts for line in script.lines}
    place = {line: number for number, line in enumerate(lines)}
    known = vocabulary.find(list(lines))
    gibberish = gibberish_lines(list(lines), known, len(vocabulary))
    kept = known.without(gibberish | keywords.idle_lines(list(lines)))
    table = _presence(kept.lines, kept.columns, (len(lines), len(vocabulary)))
    where = [[place[line] for line in script.lines] for script in scripts]
    rows = np.repeat(np.arange(len(scripts)), [len(each) for each in where])
    presence = _presence(rows, np.concatenate([*map(_ints, where)]), (len(scripts), len(lines))) @ table
    presence.data[:] = 1  # presence, not frequency
    keyword_flags = np.stack(
        [keywords.find_keywords(s).features(gibberish[_ints(w)]) for s, w in zip(scripts, where, strict=True)]
    )
    member = sp.csr_matrix((np.array(whole, np.float32), (numbers, np.arange(len(numbers)))))
    by_owner = (member @ presence).tocsr()
    by_owner.eliminate_zeros()
    by_owner.data[:] = 1
    return Material(vocabulary, presence.tocsr(), keyword_flags, numbers, by_owner)


def _shared_keys(scripts: Sequence[Commands], owners: NDArray[np.int64], least: int) -> NDArray[np.uint64]:
    """The hashes that at least this many owners have."""
    found = []
    counts = np.unique(owners, return_counts=True)[1]
    for rows in np.split(np.argsort(owners, kind="stable"), np.cumsum(counts)[:-1]):
        lines = list(dict.fromkeys(line for row in rows for line in scripts[row].lines))
        found += [np.unique(grams(lines).hashes)] if lines else []
    together = np.sort(np.concatenate(found))
    first = np.flatnonzero(np.diff(together, prepend=together[:1] + np.uint64(1)))
    return together[first[np.diff(first, append=len(together)) >= least]]


def _presence(rows: NDArray[np.int64], columns: NDArray[np.int64], shape: tuple[int, int]) -> "sp.csr_matrix":
    import scipy.sparse as sp

    return sp.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)


def _ints(values: Sequence[int]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def fit_linear(
    X: "sp.csr_matrix", y: NDArray[np.int64], weight: NDArray[np.float64], *, strength: float = STRENGTH
) -> Linear:
    """Logistic regression."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning  # type: ignore[import-untyped]  # it has no types
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

    model = LogisticRegression(C=strength, max_iter=_MOST_ITERATIONS, tol=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopping early is regularisation, too
        model.fit(X, y, weight)
    return Linear(model.coef_[0].astype(np.float32), float(model.intercept_[0]))


def calibrated(model: Linear, score: NDArray[np.float64], y: NDArray[np.int64], threshold: float) -> Linear:
    """The model with its score scaled so that 0 is the threshold and the odds are right beyond it.

    `score` comes from models that had not seen these scripts. Only the scale is fitted: one number.
    """
    from scipy.optimize import minimize_scalar

    sign, away = 2 * y - 1, score - threshold
    balance = np.where(y == 1, 0.5 / max((y == 1).sum(), 1), 0.5 / max((y == 0).sum(), 1))

    def loss(stretch: float) -> float:
        return float(balance @ np.logaddexp(0, -sign * np.exp(stretch) * away))

    stretch = float(np.exp(minimize_scalar(loss, bounds=(-3, 3), method="bounded").x))
    margin = None if model.margin is None else stretch * model.margin
    return Linear(model.weights * np.float32(stretch), stretch * (model.bias - threshold), margin)


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
