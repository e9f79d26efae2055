"""Validate LightGBM's model text before its parser reads it: the parser trusts offsets and indices.

A truncated file makes LightGBM 4.7 read beyond its buffer and abort the process; a child index
that points upwards makes a prediction loop forever. Hashes are verified first, so this catches damage from before
the card was written, such as a truncated copy.
"""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.core.errors import ModelError

__all__ = ["checked_text"]

_LINES = re.compile(
    r"""tree | version=v4 | average_output | num_class=\d+ | num_tree_per_iteration=\d+ | label_index=0
      | max_feature_idx=\d+ | objective=[a-z0-9_]+(\ [a-z_]+(:[-+.e0-9]+)?)* | feature_names=.* | feature_infos=.*
      | monotone_constraints=(-?[01]\ )*-?[01] | tree_sizes=.* | """,
    re.VERBOSE | re.ASCII,
)
_HEAD = ("num_class", "num_tree_per_iteration", "max_feature_idx")
_MOST = 100_000  # classes, features and leaves of a tree


def checked_text(text: str, place: str) -> str:
    """The head and trees of a valid text.

    The table of offsets is left out, so that trees are read in sequence; so are the parameters, which predictions do
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
    classes, per_round, last_feature = (_number(keys, name) for name in _HEAD)
    if not 1 <= per_round <= classes or not trees or len(trees) % per_round:
        raise ValueError(f"{len(trees)} trees cannot form rounds of {per_round}")
    for name in ("feature_names", "feature_infos", "monotone_constraints"):
        if name in keys and len(keys[name].split(" ")) != last_feature + 1:
            raise ValueError(f"{name} and features differ in number")
    for number, tree in enumerate(trees):
        first, _, rest = tree.partition("\n")
        if first != str(number):
            raise ValueError(f'tree {number} is numbered "{first[:20]}"')
        _check_tree(_keys(rest), number, last_feature)
    kept = [line for line in lines if not line.startswith("tree_sizes=")]
    return "\nTree=".join(["\n".join(kept), *trees]) + end


def _check_tree(keys: dict[str, str], number: int, last_feature: int) -> None:
    leaves = _number(keys, "num_leaves")
    if leaves < 1 or _number(keys, "num_cat") or _number(keys, "is_linear"):
        raise ValueError(
            f"tree {number} has no leaf, or categories or linear leaves, which tocsin never writes"
        )
    splits = leaves - 1
    if not np.isfinite(_numbers(keys, "leaf_value", leaves, np.float64)).all():
        raise ValueError(f"tree {number} has a leaf whose value is not a finite number")
    for name in ("threshold", "split_gain", "internal_value", "internal_weight"):
        _numbers(keys, name, splits, np.float64)
    for name, size in (("leaf_weight", leaves), ("leaf_count", leaves), ("internal_count", splits)):
        _numbers(keys, name, size if splits else len(keys.get(name, "").split()), np.float64)
    feature = _numbers(keys, "split_feature", splits, np.int64)
    kind = _numbers(keys, "decision_type", splits, np.int64)
    if splits and (feature.min() < 0 or feature.max() > last_feature or (kind & 1).any()):
        raise ValueError(f"tree {number} splits on an unknown feature")
    children = np.concatenate(
        [_numbers(keys, side, splits, np.int64) for side in ("left_child", "right_child")]
    )
    inner, leaf = children[children >= 0], ~children[children < 0]
    above = np.tile(np.arange(splits), 2)[children >= 0]
    # LightGBM numbers a split after the one above it, so every walk down ends; each is reached once.
    if (inner <= above).any() or not np.array_equal(np.sort(inner), np.arange(1, splits)):
        raise ValueError(f"the splits of tree {number} do not make a tree")
    if splits and not np.array_equal(np.sort(leaf), np.arange(leaves)):
        raise ValueError(f"the leaves of tree {number} do not make a tree")


def _keys(lines: str) -> dict[str, str]:
    pairs = [line.split("=", 1) for line in lines.split("\n") if "=" in line]
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _number(keys: dict[str, str], name: str) -> int:
    text = keys[name]
    if not re.fullmatch(r"[0-9]{1,6}", text, re.ASCII) or int(text) > _MOST:
        raise ValueError(f'its {name} is "{text[:20]}"')
    return int(text)


def _numbers(keys: dict[str, str], name: str, size: int, kind: type) -> NDArray[Any]:
    words = keys.get(name, "").split()
    if len(words) != size:
        raise ValueError(f"there are {len(words)} numbers in {name}, not {size}")
    read = int if kind is np.int64 else float  # twice as fast as numpy on words
    return np.fromiter(map(read, words), dtype=kind, count=size)
