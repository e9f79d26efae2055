"""Encoders: a script's commands as numbers for a linear model, behind one interface."""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tocsin.workload import keywords
from tocsin.workload.normal import Commands
from tocsin.workload.vocabulary import Known, Vocabulary

if TYPE_CHECKING:
    import scipy.sparse as sp

__all__ = ["KEYWORD_VALUE", "PASSAGE", "Cached", "Encoder", "Lexical", "Scored", "gibberish_lines"]

Entries = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]
"""A sparse table: row, column and value of each entry, row by row."""

KEYWORD_VALUE = 0.3
"""Value of a keyword relative to n-grams of unit length: large enough to survive regularisation (measured with sources
left out)."""
PASSAGE = 5
"""Lines of a passage: a program and its setup are close together."""
_GIBBERISH = 0.5
"""Known n-grams per character: 1.5 % of real lines have fewer and 99.7 % of random ones (jobspec, 216,181 lines)."""
_MOST_LINES = 64
"""First and last lines of a script that are embedded separately for evidence; each takes milliseconds."""
_LARGE = 100_000
"""N-grams; the shipped vocabulary has four times as many, a site's own examples have far fewer."""


class Scored(Protocol):
    """Scripts scored by one encoder and its weights."""

    @property
    def scores(self) -> NDArray[np.float64]:
        """Scripts by operations."""
        ...

    def line_scores(self, row: int, place: int) -> NDArray[np.float64]:
        """What each line of a script adds to the score of an operation."""
        ...


class Encoder(Protocol):
    """`encode` returns one row per script; the weights of `score` have one column per operation."""

    @property
    def name(self) -> str: ...

    def encode(self, scripts: Sequence[Commands]) -> Any: ...

    def score(
        self, scripts: Sequence[Commands], weights: NDArray[np.float32], margins: Sequence[float | None] = ()
    ) -> Scored: ...


@dataclass(frozen=True, slots=True)
class Lexical:
    """N-grams of the script, weighted by rarity, and keywords. It is as fast as a cache, so it needs none."""

    vocabulary: Vocabulary
    rarity: NDArray[np.float32]
    """Of each n-gram."""
    name: str = "lexical"

    def encode(self, scripts: Sequence[Commands]) -> "sp.csr_matrix":
        import scipy.sparse as sp

        rows, places, values = _entries(self._found(scripts), self.rarity)
        starts = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=len(scripts)))))
        return sp.csr_matrix(
            (values, places, starts), shape=(len(scripts), len(self.rarity) + keywords.columns())
        )

    def score(
        self, scripts: Sequence[Commands], weights: NDArray[np.float32], margins: Sequence[float | None] = ()
    ) -> "LexicalScored":
        """Scores as `encode(scripts) @ weights`, without scipy: importing it takes longer than screening a hundred scripts.

        If an operation has a margin and a passage outscores the whole script by more than that, the passage's score
        counts: unrelated lines around it must not hide it.
        """
        found = self._found(scripts)
        rows, places, values = _entries(found, self.rarity)
        size = len(self.rarity)
        scored = LexicalScored(np.empty((len(scripts), weights.shape[1])), found, weights, self.rarity)
        for place, column in enumerate(weights.T):
            weighed = values * column[places]
            scored.scores[:, place] = np.bincount(rows, weighed, len(scripts))
            if place < len(margins) and (margin := margins[place]) is not None:
                grams = np.bincount(rows, np.where(places < size, weighed, 0), len(scripts))
                foreign = KEYWORD_VALUE * (
                    found.keyword_flags[:, keywords.SCIENCE] @ column[size:][keywords.SCIENCE]
                )
                scored.scores[:, place] += np.maximum(scored.clearest(place) - grams - foreign - margin, 0)
        return scored

    def _found(self, scripts: Sequence[Commands]) -> "_Found":
        lines = [line for script in scripts for line in script.lines]
        starts = np.cumsum([0, *(len(script.lines) for script in scripts)])
        known = self.vocabulary.find(lines)
        gibberish = gibberish_lines(lines, known, len(self.vocabulary))
        named = [keywords.find_keywords(script) for script in scripts]
        keyword_flags = np.zeros((len(scripts), keywords.columns()), dtype=np.float32)
        for row, each in enumerate(named):
            keyword_flags[row] = each.features(gibberish[starts[row] : starts[row + 1]])
        return _Found(known.without(gibberish | keywords.idle_lines(lines)), starts, named, keyword_flags)


class _Found(NamedTuple):
    """The contents of some scripts; gibberish and idle lines have none."""

    known: Known
    starts: NDArray[np.int64]
    """The first line of each script, counted across all of them, and the number of lines."""
    keywords: list[keywords.Keywords]
    keyword_flags: NDArray[np.float32]

    @property
    def owners(self) -> NDArray[np.int64]:
        """The script of each line."""
        return np.repeat(np.arange(len(self.keywords)), np.diff(self.starts))


@dataclass(slots=True)
class LexicalScored:
    """Scripts that were scored, with the scores of their lines."""

    scores: NDArray[np.float64]
    found: _Found
    weights: NDArray[np.float32]
    rarity: NDArray[np.float32]
    _sums: dict[int, NDArray[np.float64]] = field(default_factory=dict)
    _squares: NDArray[np.float64] | None = None
    _rarities: NDArray[np.float32] | None = None

    def line_scores(self, row: int, place: int) -> NDArray[np.float64]:
        here = slice(self.found.starts[row], self.found.starts[row + 1])
        named = self.found.keywords[row].line_values(self.weights[len(self.rarity) :, place])
        # keywords are weighed against n-grams of unit length; here these are not scaled
        length = float(np.sqrt(self._line_squares()[here].sum()))
        return self._line_sums(place)[here] + KEYWORD_VALUE * length * named

    def clearest(self, place: int) -> NDArray[np.float64]:
        """For each script, the n-gram score of its highest-scoring passage; gibberish lines are skipped."""
        weighed, squares = self._line_sums(place), self._line_squares()
        kept = np.flatnonzero(squares > 0)
        best = np.full(len(self.scores), -np.inf)
        if len(kept) > PASSAGE:
            weighed = np.concatenate(([0.0], np.cumsum(weighed[kept])))
            squares = np.concatenate(([0.0], np.cumsum(squares[kept])))
            owner = self.found.owners[kept]
            whole = np.flatnonzero(owner[PASSAGE - 1 :] == owner[: -PASSAGE + 1])
            passage_scores = (weighed[whole + PASSAGE] - weighed[whole]) / np.sqrt(
                np.maximum(squares[whole + PASSAGE] - squares[whole], 1e-9)
            )
            np.maximum.at(best, owner[whole], passage_scores)
        return best

    def _line_sums(self, place: int) -> NDArray[np.float64]:
        """For each line the weight of its n-grams."""
        if place not in self._sums:
            columns, lines = self.found.known
            weighed = self._gram_rarity() * self.weights[:, place].take(columns)
            sums = np.bincount(lines, weighed, int(self.found.starts[-1]))
            self._sums[place] = sums.astype(np.float64, copy=False)
        return self._sums[place]

    def _gram_rarity(self) -> NDArray[np.float32]:
        if self._rarities is None:
            self._rarities = self.rarity.take(self.found.known.columns)
        return self._rarities

    def _line_squares(self) -> NDArray[np.float64]:
        if self._squares is None:
            squares = np.bincount(
                self.found.known.lines, np.square(self._gram_rarity()), int(self.found.starts[-1])
            )
            self._squares = squares.astype(np.float64, copy=False)
        return self._squares


def gibberish_lines(lines: Sequence[str], known: Known, size: int) -> NDArray[np.bool_]:
    """Lines with hardly any known n-gram: random strings, packed data. A small vocabulary cannot detect them."""
    if size < _LARGE:
        return np.zeros(len(lines), dtype=bool)
    counts = np.bincount(known.lines, minlength=len(lines))
    return counts < _GIBBERISH * np.fromiter(map(len, lines), np.int64, len(lines))


def _entries(found: _Found, rarity: NDArray[np.float32]) -> Entries:
    """N-grams, then keywords. Rows are scaled over known n-grams only, so random text weighs nothing."""
    known, size, documents = found.known, len(rarity), len(found.keyword_flags)
    rows, places = np.nonzero(found.keyword_flags)
    bits = (size + found.keyword_flags.shape[1]).bit_length()
    pairs = np.concatenate(
        (found.owners[known.lines] << bits | known.columns, rows << bits | (places + size))
    )
    if documents << bits <= 1 << 32:  # half as long, and sorted twice as fast
        pairs = pairs.astype(np.uint32)
    pairs.sort()  # np.unique of numpy 2.4 hashes first, which takes ten times as long here
    pairs = pairs[np.concatenate((pairs[1:] != pairs[:-1], [True]))] if len(pairs) else pairs
    pairs = pairs.astype(np.int64)
    rows, places = pairs >> bits, pairs & ((1 << bits) - 1)
    gram = places < size
    values = np.full(len(pairs), KEYWORD_VALUE, dtype=np.float32)
    values[gram] = rarity[places[gram]]
    lengths = np.sqrt(np.bincount(rows[gram], values[gram] ** 2, minlength=documents))
    values[gram] /= np.maximum(lengths, 1e-9)[rows[gram]].astype(np.float32)
    return rows, places, values


class Embedder(Protocol):
    """A sentence model."""

    @property
    def name(self) -> str: ...

    def encode(self, scripts: Sequence[Commands]) -> NDArray[np.float32]: ...


class Cached:
    """A sentence model that caches the embeddings of the last scripts by a hash of their commands."""

    def __init__(self, encoder: Embedder, most: int = 4096) -> None:
        self.encoder = encoder
        self.name = encoder.name
        self._most = most
        self._rows: OrderedDict[bytes, NDArray[np.float32]] = OrderedDict()

    def encode(self, scripts: Sequence[Commands]) -> NDArray[np.float32]:
        keys = [hashlib.sha256(script.text.encode("utf-8", "replace")).digest() for script in scripts]
        new = {key: script for key, script in zip(keys, scripts, strict=True) if key not in self._rows}
        fresh = dict(zip(new, self.encoder.encode(list(new.values())), strict=True)) if new else {}
        rows = [fresh[key] if key in fresh else self._rows[key] for key in keys]
        for key, row in zip(keys, rows, strict=True):
            self._rows[key] = row
            self._rows.move_to_end(key)
        while len(self._rows) > self._most:
            self._rows.popitem(last=False)
        return np.stack(rows)

    def score(
        self, scripts: Sequence[Commands], weights: NDArray[np.float32], margins: Sequence[float | None] = ()
    ) -> "EmbeddedScored":
        del margins  # an embedding has no passages
        return EmbeddedScored(
            (self.encode(scripts) @ weights).astype(np.float64), self.encoder, scripts, weights
        )


class EmbeddedScored(NamedTuple):
    """Scripts scored by their embeddings; lines are embedded only when needed."""

    scores: NDArray[np.float64]
    encoder: "Embedder"
    scripts: Sequence[Commands]
    weights: NDArray[np.float32]

    def line_scores(self, row: int, place: int) -> NDArray[np.float64]:
        lines = self.scripts[row].lines
        asked = np.arange(len(lines))
        if len(lines) > _MOST_LINES:
            asked = np.concatenate((asked[: _MOST_LINES // 2], asked[-_MOST_LINES // 2 :]))
        found = np.zeros(len(lines))
        found[asked] = (
            self.encoder.encode([Commands((), (lines[number],)) for number in asked]) @ self.weights[:, place]
        )
        return found
