"""Validates LightGBM's model text before its parser reads it: the parser trusts offsets and indices.

A truncated file makes LightGBM 4.7 read beyond its buffer and abort the process; a child index
that points upwards makes a prediction loop forever. LightGBM reads `1_0` as 1 and Python as 10, so only numbers in the
form that LightGBM writes are accepted. Hashes are verified first, but whoever can write a model can write its hash.
"""

import re
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tocsin.core.errors import ModelError

__all__ = ["checked_text"]

_WHOLE = r"-?(?:0|[1-9]\d{0,9})"
_NUMBER = r"-?(?:0|[1-9]\d{0,19})(?:\.\d{1,25})?(?:e[-+]\d{2,3})?"
_LINES = re.compile(
    r"""tree | version=v4 | average_output | num_class=1 | num_tree_per_iteration=1 | label_index=0
      | max_feature_idx=\d+ | objective=(binary\ sigmoid:1 | quantile | regression)
      | feature_names=[!-~]+(\ [!-~]+)* | feature_infos=[!-~]+(\ [!-~]+)*
      | monotone_constraints=(-?[01]\ )*-?[01] | tree_sizes=[\d\ ]* | """,
    re.VERBOSE | re.ASCII,
)
_TREE: Final = frozenset(
    """num_leaves num_cat split_feature split_gain threshold decision_type left_child right_child leaf_value leaf_weight
    leaf_count internal_value internal_weight internal_count is_linear shrinkage""".split()  # noqa: SIM905  # a list of words reads best so
)
_LISTS: Final[dict[type, re.Pattern[str]]] = {
    kind: re.compile(rf"{number}(?: {number})*", re.ASCII)
    for kind, number in ((np.int64, _WHOLE), (np.float64, _NUMBER))
}
_MOST_FEATURES = 100_000
_MOST_LEAVES = 4096  # per tree, which also bounds its depth: contributions are computed by recursion
_MOST_TREES = 10_000
_KINDS = (0, 2, 4, 6, 8, 10)


def checked_text(text: str, place: str) -> str:
    """The head and trees of a valid text.

    The table of offsets is omitted, so that trees are read in sequence; so are the parameters, which predictions do
    not need and whose parser trusts its lines, too.
    """
    try:
        return _checked(text)
    except (ValueError, KeyError, IndexError, OverflowError) as error:
        why = str(error) or type(error).__name__
        raise ModelError(f"{place} is not a valid LightGBM model: {why[:200]}") from None


def _checked(text: str) -> str:
    body, end, _ = text.partition("\nend of trees\n")
    if not end or "\0" in body:
        raise ValueError("it is truncated")
    head, *trees = body.split("\nTree=")
    lines = head.split("\n")
    if lines[:2] != ["tree", "version=v4"] or not all(map(_LINES.fullmatch, lines)):
        raise ValueError("it does not begin as tocsin writes it")
    keys = _keys(head)
    last_feature = _number(keys, "max_feature_idx", _MOST_FEATURES)
    if not {"num_class", "num_tree_per_iteration", "objective"} <= keys.keys():
        raise ValueError("it does not begin as tocsin writes it")
    if not 1 <= len(trees) <= _MOST_TREES:
        raise ValueError(f"it has {len(trees):,} trees")
    for name in ("feature_names", "feature_infos", "monotone_constraints"):
        if name in keys and len(keys[name].split(" ")) != last_feature + 1:
            raise ValueError(f"{name} and features differ in number")
    found = []
    for number, tree in enumerate(trees):
        first, _, rest = tree.partition("\n")
        if first != str(number):
            raise ValueError(f'tree {number} is numbered "{first[:20]}"')
        found.append(_keys(rest))
        if not found[-1].keys() <= _TREE:
            raise ValueError(f"tree {number} has lines that tocsin never writes")
    _check_trees(found, last_feature)
    kept = [line for line in lines if not line.startswith("tree_sizes=")]
    return "\nTree=".join(["\n".join(kept), *trees]) + end


def _check_trees(trees: list[dict[str, str]], last_feature: int) -> None:
    """All at once: a model has hundreds of small trees, and checking them one by one took a third of its loading time."""
    leaves = np.array([_leaves(keys, number) for number, keys in enumerate(trees)])
    splits = leaves - 1
    _numbers(trees, "leaf_value", leaves, np.float64)
    _numbers(trees, "shrinkage", np.ones_like(leaves), np.float64)
    for name in ("threshold", "split_gain", "internal_value", "internal_weight"):
        _numbers(trees, name, splits, np.float64)
    for name, kind in (("leaf_weight", np.float64), ("leaf_count", np.int64)):
        given = np.array([bool(keys.get(name)) for keys in trees])
        _numbers(trees, name, np.where((splits > 0) | given, leaves, 0), kind)
    tree = np.repeat(np.arange(len(trees)), splits)
    _refuse(tree[_numbers(trees, "internal_count", splits, np.int64) < 1], "has a split without rows")
    feature = _numbers(trees, "split_feature", splits, np.int64)
    # Its bits: a category, which side is the default, and two for what counts as missing.
    decisions = np.isin(_numbers(trees, "decision_type", splits, np.int64), _KINDS)
    unknown = (feature < 0) | (feature > last_feature) | ~decisions
    _refuse(tree[unknown], "splits on an unknown feature")
    first_split, first_leaf = np.cumsum(splits) - splits, np.cumsum(leaves) - leaves
    above = np.tile(np.arange(len(tree)) - first_split[tree], 2)
    child = np.concatenate(
        [_numbers(trees, side, splits, np.int64) for side in ("left_child", "right_child")]
    )
    tree = np.tile(tree, 2)
    inner = child >= 0
    # LightGBM numbers a split after the one above it, so every walk down ends; each is reached once.
    wrong = inner & ((child <= above) | (child >= splits[tree]))
    _refuse(tree[wrong], "has splits that do not make a tree")
    _refuse(tree[~inner & (~child >= leaves[tree])], "has leaves that do not make a tree")
    reached = np.bincount((first_split[tree] + child)[inner], minlength=splits.sum())
    root = np.isin(np.arange(len(reached)), first_split[splits > 0])
    _refuse(tree[: len(reached)][reached != ~root], "has splits that do not make a tree")
    ends = np.bincount((first_leaf[tree] + ~child)[~inner], minlength=leaves.sum())
    _refuse(np.repeat(np.arange(len(trees)), leaves)[ends != np.repeat(splits > 0, leaves)],
            "has leaves that do not make a tree")  # fmt: skip


def _leaves(keys: dict[str, str], number: int) -> int:
    leaves = _number(keys, "num_leaves", _MOST_LEAVES)
    if leaves < 1 or _number(keys, "num_cat", 1) or _number(keys, "is_linear", 1):
        raise ValueError(
            f"tree {number} has no leaf, or categories or linear leaves, which tocsin never writes"
        )
    return leaves


def _refuse(trees: NDArray[np.int64], why: str) -> None:
    if len(trees):
        raise ValueError(f"tree {trees[0]} {why}")


def _keys(lines: str) -> dict[str, str]:
    kept = lines.strip("\n").split("\n")
    if "" in kept:  # LightGBM would stop there
        raise ValueError("it has an empty line between others")
    pairs = [line.partition("=")[::2] for line in kept]
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _number(keys: dict[str, str], name: str, most: int) -> int:
    text = keys[name]
    if not re.fullmatch(r"[0-9]{1,6}", text, re.ASCII) or int(text) > most:
        raise ValueError(f'its {name} is "{text[:20]}"')
    return int(text)


def _numbers(trees: list[dict[str, str]], name: str, sizes: NDArray[np.int64], kind: type) -> NDArray[Any]:
    """The numbers of a line of each tree, one tree after the other."""
    texts = [keys.get(name, "") for keys in trees]
    for number, (text, size) in enumerate(zip(texts, sizes.tolist(), strict=True)):
        found = text.count(" ") + 1 if text else 0
        if found != size:
            raise ValueError(f"there are {found} numbers in {name} of tree {number}, not {size}")
    joined = " ".join(filter(None, texts))
    words = joined.split(" ") if joined else []
    # a threshold between numbers and missing values is infinite
    infinite = name == "threshold" and "inf" in words
    if words and not _LISTS[kind].fullmatch(joined.replace("inf", "0") if infinite else joined):
        raise ValueError(f"{name} has a number in another form than LightGBM writes it")
    read = int if kind is np.int64 else float  # twice as fast as numpy on words
    values: NDArray[Any] = np.fromiter(map(read, words), dtype=kind, count=len(words))
    if not infinite and not np.isfinite(values).all():
        raise ValueError(f"{name} has a number that is not finite")
    return values
