"""Encoders: a script's commands as numbers that a linear model can weigh, behind one interface."""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tocsin.workload import keywords
from tocsin.workload.normal import Commands
from tocsin.workload.vocabulary import Known, Vocabulary

if TYPE_CHECKING:
    import scipy.sparse as sp

__all__ = ["KEYWORD_VALUE", "PASSAGE", "Cached", "Encoder", "Lexical", "gibberish_lines"]

Entries = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]
"""Of a sparse table: row, column and value of each entry, row by row."""

KEYWORD_VALUE = 0.3
"""Value of a keyword beside n-grams of unit length: large enough to survive regularisation (measured, leaving sources out)."""
PASSAGE = 5
"""Lines of a passage: a program and its setup stand close together."""
_GIBBERISH = 0.5
"""Known n-grams a character: 1.5 % of real lines have fewer and 99.7 % of random ones (jobspec, 216,181 lines)."""
_LARGE = 100_000
"""N-grams; the shipped vocabulary has four times as many, a site's own examples have far fewer."""


class Encoder(Protocol):
    """`encode` returns one row per script; `line_scores` returns what each line adds to the score with these weights."""

    @property
    def name(self) -> str: ...

    def encode(self, scripts: Sequence[Commands]) -> Any: ...

    def line_scores(self, script: Commands, weights: NDArray[np.float32]) -> NDArray[np.float64]: ...


@dataclass(frozen=True, slots=True)
class Lexical:
    """N-grams of the script, weighted by rarity, and keywords. As fast as a cache, so it needs none."""

    vocabulary: Vocabulary
    rarity: NDArray[np.float32]
    """Of each n-gram."""
    name: str = "lexical"

    def encode(self, scripts: Sequence[Commands]) -> "sp.csr_matrix":
        import scipy.sparse as sp

        rows, places, values = self._entries(scripts)
        starts = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=len(scripts)))))
        return sp.csr_matrix(
            (values, places, starts), shape=(len(scripts), len(self.rarity) + keywords.columns())
        )

    def scores(
        self, scripts: Sequence[Commands], weights: NDArray[np.float32], margins: Sequence[float | None] = ()
    ) -> NDArray[np.float64]:
        """As `encode(scripts) @ weights`, without scipy: to import it takes longer than to screen a hundred scripts.

        Where an operation has a margin and a passage scores higher than the whole script by more than that, the
        passage's score counts: unrelated lines around it must not hide it.
        """
        found = self._found(scripts)
        rows, places, values = _entries(*found, self.rarity)
        size = len(self.rarity)
        score = np.empty((len(scripts), weights.shape[1]))
        for place, column in enumerate(weights.T):
            weighed = values * column[places]
            score[:, place] = np.bincount(rows, weighed, len(scripts))
            if place < len(margins) and (margin := margins[place]) is not None:
                grams = np.bincount(rows, np.where(places < size, weighed, 0), len(scripts))
                foreign = KEYWORD_VALUE * (
                    found.keyword_flags[:, keywords.SCIENCE] @ column[size:][keywords.SCIENCE]
                )
                clearest = self._clearest(found, column, len(scripts))
                score[:, place] += np.maximum(clearest - grams - foreign - margin, 0)
        return score

    def _clearest(self, found: "_Found", column: NDArray[np.float32], count: int) -> NDArray[np.float64]:
        """For each script the n-gram score of its highest-scoring passage; gibberish lines are skipped."""
        known, owners = found.known, found.owners
        rarity = self.rarity[known.columns]
        weighed = np.bincount(known.lines, rarity * column[known.columns], len(owners))
        squares = np.bincount(known.lines, np.square(rarity), len(owners))
        kept = np.flatnonzero(squares > 0)
        best = np.full(count, -np.inf)
        if len(kept) > PASSAGE:
            weighed = np.concatenate(([0.0], np.cumsum(weighed[kept])))
            squares = np.concatenate(([0.0], np.cumsum(squares[kept])))
            owner = owners[kept]
            whole = np.flatnonzero(owner[PASSAGE - 1 :] == owner[: -PASSAGE + 1])
            passage_scores = (weighed[whole + PASSAGE] - weighed[whole]) / np.sqrt(
                np.maximum(squares[whole + PASSAGE] - squares[whole], 1e-9)
            )
            np.maximum.at(best, owner[whole], passage_scores)
        return best

    def _entries(self, scripts: Sequence[Commands]) -> Entries:
        return _entries(*self._found(scripts), self.rarity)

    def _found(self, scripts: Sequence[Commands]) -> "_Found":
        lines = [line for script in scripts for line in script.lines]
        owners = np.repeat(np.arange(len(scripts)), [len(script.lines) for script in scripts])
        known = self.vocabulary.find(lines)
        gibberish = gibberish_lines(lines, known, len(self.vocabulary))
        keyword_flags = np.zeros((len(scripts), keywords.columns()), dtype=np.float32)
        first = 0
        for row, script in enumerate(scripts):
            last = first + len(script.lines)
            keyword_flags[row] = keywords.keyword_features(script, gibberish[first:last])
            first = last
        return _Found(known.without(gibberish | keywords.idle_lines(lines)), owners, keyword_flags)

    def line_scores(self, script: Commands, weights: NDArray[np.float32]) -> NDArray[np.float64]:
        known = self.vocabulary.find(script.lines)
        known = known.without(
            gibberish_lines(script.lines, known, len(self.vocabulary)) | keywords.idle_lines(script.lines)
        )
        values = self.rarity[known.columns] * weights[known.columns]
        scores = np.bincount(known.lines, values, len(script.lines)).astype(np.float64)
        keyword_flags = keywords.line_values(script, weights[len(self.rarity) :])
        # keywords are weighed against n-grams of unit length; here these are not scaled
        scores += KEYWORD_VALUE * np.sqrt(np.square(self.rarity[known.columns]).sum()) * keyword_flags
        return scores


class _Found(NamedTuple):
    known: Known
    owners: NDArray[np.int64]
    """The script of each line."""
    keyword_flags: NDArray[np.float32]


def gibberish_lines(lines: Sequence[str], known: Known, size: int) -> NDArray[np.bool_]:
    """Lines with hardly any known n-gram: random strings, packed data. A small vocabulary cannot detect them."""
    if size < _LARGE:
        return np.zeros(len(lines), dtype=bool)
    counts = np.bincount(known.lines, minlength=len(lines))
    return counts < _GIBBERISH * np.fromiter(map(len, lines), np.int64, len(lines))


def _entries(
    known: Known, owners: NDArray[np.int64], keyword_flags: NDArray[np.float32], rarity: NDArray[np.float32]
) -> Entries:
    """N-grams, then keywords. Rows are scaled over known n-grams only, so random text weighs nothing."""
    size, documents = len(rarity), len(keyword_flags)
    rows, places = np.nonzero(keyword_flags)
    pairs = np.concatenate((owners[known.lines] << 32 | known.columns, rows << 32 | (places + size)))
    pairs.sort()  # np.unique of numpy 2.4 hashes first, which takes ten times as long here
    pairs = pairs[np.concatenate((pairs[1:] != pairs[:-1], [True]))] if len(pairs) else pairs
    rows, places = pairs >> 32, pairs & 0xFFFFFFFF
    gram = places < size
    values = np.full(len(pairs), KEYWORD_VALUE, dtype=np.float32)
    values[gram] = rarity[places[gram]]
    lengths = np.sqrt(np.bincount(rows[gram], values[gram] ** 2, minlength=documents))
    values[gram] /= np.maximum(lengths, 1e-9)[rows[gram]].astype(np.float32)
    return rows, places, values


class Cached:
    """An encoder that remembers the embeddings of the last scripts by a hash of their commands."""

    def __init__(self, encoder: Encoder, most: int = 4096) -> None:
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

    def line_scores(self, script: Commands, weights: NDArray[np.float32]) -> NDArray[np.float64]:
        return self.encoder.line_scores(script, weights)
