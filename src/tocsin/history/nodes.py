"""Recent failures on each node compared with the expected ones: over a whole log, and outcome by outcome.

A user whose jobs always fail would make every node look bad. Therefore each outcome is compared with what was expected
of the job: the share of failures among the last ten jobs of its user, or of those with the same name, whichever is
larger. The excess over the sum of these is attributed to the node. Crashes (`node_fail`, `boot_fail`) are compared
with the cluster's share of them; jobs lost together count as one crash. All sums are of integers, so both forms agree
to the bit.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from tocsin.core.errors import NodeListError
from tocsin.core.nodelist import expand_nodes
from tocsin.core.outcomes import Outcome
from tocsin.history import recipe

__all__ = ["ANSWER", "MOST", "NODE_FAILURES", "NodeHistory", "NodeLog", "Release", "nodes_of", "release_of"]

NODE_FAILURES = frozenset(
    recipe.CLASSES[outcome]
    for outcome in (Outcome.FAILED, Outcome.TIMEOUT, Outcome.NODE_FAIL, Outcome.BOOT_FAIL)
)
"""Failures that a node may cause; too little memory and a missed deadline come from the request."""
CRASHES = recipe.NODE
CRASH_SPACING = 600
"""Seconds: jobs lost on a node within this time of each other were lost in the same crash."""
WIDEST = 512
"""Jobs on more nodes are ignored: they say little about each node."""
MOST = 1000
"""Latest outcomes of a node that are used."""
LAST = 10
"""Earlier jobs from which expectations are computed."""
ONE = 2**20
"""Expectations are integers in units of 1/ONE."""
_KEPT = recipe.WEEK + 86400
"""The history is exact for instants up to a day ago."""
ANSWER: dict[str, Any] = {
    "ended": pl.Int64,
    "failed": pl.Int64,
    "expected": pl.Float64,
    "crashes": pl.Int64,
    "crashes_expected": pl.Float64,
    "nodes": pl.Int64,
}
"""Over the last 7 days: outcomes on the node, failures and expected failures, crashes and expected crashes; and the
number of known nodes."""

_ZEROS = ((0,), (0,), (0,), (0,))

Ints = npt.NDArray[np.int64]


@lru_cache(maxsize=4096)
def nodes_of(text: str) -> tuple[str, ...]:
    """The nodes of a list; none if it is invalid or too long."""
    try:
        return tuple(dict.fromkeys(expand_nodes(text, most=WIDEST)))
    except NodeListError:
        return ()


class Release(NamedTuple):
    """An outcome as a node counts it; expectations are in units of 1/ONE."""

    known: int
    failed: bool
    expected: int
    crash: bool
    crash_expected: int


def release_of(
    code: int, known: int, counts: Mapping[int, int], ended: int, latest: Iterable[bytearray]
) -> Release:
    """`counts` and `ended` are the cluster's before it; `latest` the last outcomes of its user and of jobs with its name."""
    prior = ONE * (_sum(counts, NODE_FAILURES) + 1) // (ended + 20)
    lately = [(sum(code in NODE_FAILURES for code in last[-LAST:]), min(len(last), LAST)) for last in latest]
    return Release(
        known,
        code in NODE_FAILURES,
        max(((ONE * failed + prior) // (number + 1) for failed, number in lately), default=prior),
        code in CRASHES,
        ONE * (_sum(counts, CRASHES) + 1) // (ended + 200),
    )


def _sum(counts: Mapping[int, int], codes: Iterable[int]) -> int:
    return sum(counts.get(code, 0) for code in codes)


class _Node:
    """The outcomes of one node: when each became known, and running totals with a zero in front."""

    __slots__ = ("crashed", "known", "totals")

    def __init__(
        self,
        known: Sequence[int] = (),
        totals: Sequence[Sequence[int]] = _ZEROS,
        crashed: int = -CRASH_SPACING,
    ):
        self.known = array("q", known)
        self.totals = [array("q", values) for values in totals]
        """Failures, expected failures, crashes, expected crashes."""
        self.crashed = crashed
        """When a job was last lost in a crash."""

    def add(self, release: Release) -> None:
        known = max(release.known, self.known[-1]) if self.known else release.known
        fresh = release.crash and known - self.crashed >= CRASH_SPACING
        self.crashed = known if release.crash else self.crashed
        self.known.append(known)
        added = (release.failed, release.expected, fresh, release.crash_expected)
        for total, value in zip(self.totals, added, strict=True):
            total.append(total[-1] + value)
        stale = max(bisect_right(self.known, known - _KEPT), len(self.known) - 3 * MOST)
        if stale > 64:  # not each time
            for values in (self.known, *self.totals):
                del values[:stale]

    def read(self, at: int) -> tuple[int, ...]:
        now = bisect_right(self.known, at)
        low = max(bisect_right(self.known, at - recipe.WEEK), now - MOST)
        return now - low, *(total[now] - total[low] for total in self.totals)


class NodeHistory:
    """Kept by the ledger, which counts each outcome once, in order."""

    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {}
        self._firsts: list[int] = []
        """When the first outcome of each node became known."""
        self._base: Mapping[str, _Node] = {}

    def branch(self) -> "NodeHistory":
        """A copy that continues counting from here."""
        history = NodeHistory()
        history._base, history._firsts = self._nodes, self._firsts[:]
        return history

    def release(self, node_list: str, release: Release) -> None:
        for name in nodes_of(node_list):
            node = self._nodes.get(name)
            if node is None and (before := self._base.get(name)) is not None:
                node = self._nodes[name] = _Node(before.known, before.totals, before.crashed)
            elif node is None:
                node = self._nodes[name] = _Node()
                self._firsts.append(max(release.known, self._firsts[-1]) if self._firsts else release.known)
            node.add(release)

    def read(self, asked: pl.DataFrame) -> pl.DataFrame:
        """`asked` has `at` and `node`; one answer per row."""
        return pl.DataFrame(list(self._rows(asked)), schema=ANSWER, orient="row")

    def _rows(self, asked: pl.DataFrame) -> Iterator[tuple[float, ...]]:
        for at, name in asked[["at", "node"]].rows():
            node = self._nodes.get(name) or self._base.get(name)
            ended, failed, expected, crashes, crashes_expected = node.read(at) if node else (0,) * 5
            known = bisect_right(self._firsts, at)
            yield ended, failed, expected / ONE, crashes, crashes_expected / ONE, known

    def to_json(self) -> dict[str, Any]:
        nodes = {
            name: [list(node.known), [list(total) for total in node.totals], node.crashed]
            for name, node in self._nodes.items()
        }
        return {"nodes": nodes, "firsts": self._firsts}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "NodeHistory":
        history = cls()
        history._nodes = {name: _Node(*values) for name, values in document["nodes"].items()}
        history._firsts = list(document["firsts"])
        return history


class NodeLog:
    """The same for a whole log at once, at any instant."""

    def __init__(self, log: pl.DataFrame) -> None:
        """`log` has outcomes and `known_at`."""
        pairs = _pairs(log)
        self._names = pairs["node"].unique().sort()
        node = _places(self._names, pairs["node"])
        known = pairs["known_at"].to_numpy()
        order = np.lexsort((np.arange(len(node)), known, node))
        self._node, self._known = node[order], known[order]
        crash = pairs["crash"].to_numpy()[order]
        fresh = crash & _begins_crash(self._node, self._known, crash)
        columns = (pairs["failed"].to_numpy()[order], pairs["expected"].to_numpy()[order])
        self._totals = [
            _totals(values) for values in (*columns, fresh, pairs["crash_expected"].to_numpy()[order])
        ]
        self._span = np.int64((int(known.max()) if len(known) else 0) + 2)
        first = np.ones(len(node), bool)
        first[1:] = self._node[1:] != self._node[:-1]
        self._firsts = np.sort(self._known[first])

    def read(self, asked: pl.DataFrame) -> pl.DataFrame:
        node = _places(self._names, asked["node"])
        at = np.clip(asked["at"].to_numpy(), 0, int(self._span) - 1).astype(np.int64)
        begin, now = self._upto(node, np.full_like(at, -1)), self._upto(node, at)
        week = self._upto(node, asked["at"].to_numpy().astype(np.int64) - recipe.WEEK)
        low = np.maximum(np.maximum(week, now - MOST), begin)
        low = np.where(node < 0, now, low)
        failed, expected, crashes, crashes_expected = (total[now] - total[low] for total in self._totals)
        known = np.searchsorted(self._firsts, asked["at"].to_numpy(), side="right")
        answer = (now - low, failed, expected / ONE, crashes, crashes_expected / ONE, known)
        return pl.DataFrame(dict(zip(ANSWER, answer, strict=True)), schema=ANSWER)

    def _upto(self, node: Ints, at: Ints) -> Ints:
        """The index after the node's last outcome known at this instant."""
        whole = self._node * self._span + self._known
        return np.searchsorted(whole, node * self._span + np.clip(at, -1, self._span - 1), side="right")


def _begins_crash(node: Ints, known: Ints, crash: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """For each lost job, whether it begins a new crash of its node."""
    places = np.flatnonzero(crash)
    apart = np.ones(len(places), bool)
    same = node[places][1:] == node[places][:-1]
    apart[1:] = ~same | (np.diff(known[places]) >= CRASH_SPACING)
    found = np.zeros(len(node), bool)
    found[places] = apart
    return found


_PAIRS = {
    "known_at": pl.Int64,
    "failed": pl.Int64,
    "expected": pl.Int64,
    "crash": pl.Boolean,
    "crash_expected": pl.Int64,
    "node": pl.String,
}


def _pairs(log: pl.DataFrame) -> pl.DataFrame:
    """One row for each outcome and each of its nodes, in the order in which they became known."""
    codes = {str(outcome): number for outcome, number in recipe.CLASSES.items()}
    code = pl.col("outcome").replace_strict(codes, default=None, return_dtype=pl.Int64)
    counted = (
        log.select("cluster", "job_id", "task", "submit", "user", "name", "known_at", "node_list", code=code)
        .filter(pl.col("code").is_in(list(recipe.COUNTED)), pl.col("known_at").is_not_null())
        .sort("known_at", "cluster", "job_id", pl.col("task").fill_null(-1), "submit")
        .with_columns(
            failed=pl.col("code").is_in(list(NODE_FAILURES)).cast(pl.Int64),
            crash=pl.col("code").is_in(list(CRASHES)),
        )
    )
    texts = counted["node_list"].drop_nulls().unique().to_list()
    if not texts:
        return pl.DataFrame(schema=_PAIRS)
    lists = pl.DataFrame(
        {"node_list": texts, "node": [list(nodes_of(text)) for text in texts]},
        schema={"node_list": pl.String, "node": pl.List(pl.String)},
    )
    return (
        _with_expected(counted)
        .join(lists, on="node_list", how="inner", maintain_order="left")
        .select(*_PAIRS)
        .explode("node", empty_as_null=True)
        .filter(pl.col("node").is_not_null())
    )


def _with_expected(counted: pl.DataFrame) -> pl.DataFrame:
    """The expectations of `release_of`, for each row from the rows before it."""
    number = pl.int_range(pl.len())
    last = pl.col("failed").shift(1, fill_value=0).rolling_sum(LAST, min_samples=1).cast(pl.Int64)

    def before(values: pl.Expr) -> pl.Expr:
        return (values.cum_sum() - values).over("cluster")

    def lately(*key: str) -> pl.Expr:
        return (ONE * last.over(key) + pl.col("prior")) // (number.over(key).clip(upper_bound=LAST) + 1)

    ended = number.over("cluster")
    own = pl.max_horizontal(lately("user"), lately("user", "name"))
    return counted.with_columns(
        prior=ONE * (before(pl.col("failed")) + 1) // (ended + 20),
        crash_expected=ONE * (before(pl.col("crash").cast(pl.Int64)) + 1) // (ended + 200),
    ).with_columns(expected=pl.when(pl.col("user").is_null()).then(pl.col("prior")).otherwise(own))


def _places(names: pl.Series, wanted: pl.Series) -> Ints:
    """The index of each name in the sorted names; -1 if absent."""
    if not len(names):
        return np.full(len(wanted), -1, np.int64)
    table = pl.DataFrame({"node": names}).with_row_index("place")
    found = wanted.to_frame("node").join(table, on="node", how="left", maintain_order="left")["place"]
    return found.cast(pl.Int64).fill_null(-1).to_numpy()


def _totals(values: npt.NDArray[Any]) -> Ints:
    return np.concatenate(([0], np.cumsum(values, dtype=np.int64)))
