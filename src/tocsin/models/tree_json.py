"""Validates the JSON of XGBoost and CatBoost before their parsers read it: both trust indices and sizes.

Valid input is rewritten from the checked values, so that no other parser can read different numbers.
"""

import json
import math
import re
from typing import Any

import numpy as np

__all__ = ["checked_catboost", "checked_xgboost"]

_MOST_TREES = 10_000
_MOST_NODES = 100_000
_DEEPEST = 16  # CatBoost's own limit
_CATBOOST_FEATURE = {
    "borders",
    "feature_id",
    "feature_index",
    "flat_feature_index",
    "has_nans",
    "nan_value_treatment",
}
_CATBOOST_TREE = {"leaf_values", "leaf_weights", "splits"}
_CATBOOST_SPLIT = {"border", "float_feature_index", "split_index", "split_type"}
_MISSING = ("AsIs", "AsFalse", "AsTrue")
_NONE = 2**31 - 1  # in XGBoost: the parent of the root


def checked_xgboost(document: Any) -> bytes:
    """A model of one output with numerical splits, as tocsin trains it."""
    learner = document["learner"]
    booster, model = learner["gradient_booster"], learner["gradient_booster"]["model"]
    features = _size(learner["learner_model_param"]["num_feature"])
    trees = _list(model["trees"], most=_MOST_TREES)
    rounds = list(range(len(trees) + 1))
    plain = (
        booster["name"] == "gbtree"
        and learner["objective"]["name"] == "binary:logistic"
        and model["gbtree_model_param"] == {"num_parallel_tree": "1", "num_trees": str(len(trees))}
        and (model["iteration_indptr"], model["tree_info"]) == (rounds, [0] * len(trees))
        and not any(model["cats"].values())
        and learner["learner_model_param"]["num_class"] == "0"
        and learner["learner_model_param"]["num_target"] == "1"
    )
    if not plain:
        raise ValueError("it is not a model of one output, as tocsin writes it")
    base = re.fullmatch(
        r"\[?([0-9.]{1,20}(?:E-?[0-9]{1,3})?)\]?", learner["learner_model_param"]["base_score"]
    )
    if not base or not 0 < float(base[1]) < 1:
        raise ValueError("its base score is not a probability")
    for number, tree in enumerate(trees):
        _check_xgboost_tree(tree, number, features)
    return json.dumps(document, allow_nan=False).encode()


def _check_xgboost_tree(tree: Any, number: int, features: int) -> None:
    nodes = _size(tree["tree_param"]["num_nodes"])
    expected = {
        "num_deleted": "0",
        "num_feature": str(features),
        "num_nodes": str(nodes),
        "size_leaf_vector": "1",
    }
    if not 1 <= nodes <= _MOST_NODES or tree["tree_param"] != expected or tree["id"] != number:
        raise ValueError(f"tree {number} has other sizes than its model")
    if any(tree[name] for name in tree if name.startswith("categories")) or any(tree["split_type"]):
        raise ValueError(f"tree {number} has categories, which tocsin never writes")
    for name in ("base_weights", "loss_changes", "split_conditions", "sum_hessian"):
        _finite(tree[name], nodes)
    if min(tree["sum_hessian"]) <= 0:
        raise ValueError(f"tree {number} has a node without rows")
    left, right, parents, feature, default_left, _ = (
        _whole(tree[name], nodes)
        for name in (
            "left_children",
            "right_children",
            "parents",
            "split_indices",
            "default_left",
            "split_type",
        )
    )
    inner = np.flatnonzero(left >= 0)
    children = np.concatenate([left[inner], right[inner]])
    # XGBoost numbers a node after the one above it, so every walk down ends; each is reached once.
    if (
        (feature < 0).any()
        or (feature >= features).any()
        or not np.isin(default_left, (0, 1)).all()
        or min(left.min(), right.min()) < -1  # XGBoost takes only -1 as a leaf, and other values as indices
        or not np.array_equal(left < 0, right < 0)
        or (children <= np.tile(inner, 2)).any()
        or not np.array_equal(np.sort(children), np.arange(1, nodes))
        or parents[0] != _NONE
        or not np.array_equal(parents[children], np.tile(inner, 2))
    ):
        raise ValueError(f"the nodes of tree {number} do not make a tree")


def checked_catboost(document: Any) -> bytes:
    """Symmetric trees on numbers, as tocsin trains them; the parameters of the training are left out."""
    found = _list(document["features_info"]["float_features"], most=_MOST_NODES)
    if len(document["features_info"]) != 1:
        raise ValueError("it has features that are not numeric, which tocsin never trains on")
    first: list[int] = []  # CatBoost numbers the borders of all features in sequence, and trusts that number
    borders = 0
    for place, feature in enumerate(found):
        _whole([feature["feature_index"], feature["flat_feature_index"]], 2)
        own = _finite(feature["borders"], len(_list(feature["borders"], most=_MOST_NODES)))
        if (feature["feature_index"], feature["flat_feature_index"]) != (place, place) or (
            np.diff(own) <= 0
        ).any():
            raise ValueError(f"feature {place} has a wrong index, or borders that are not sorted")
        if (
            feature.keys() != _CATBOOST_FEATURE
            or feature["nan_value_treatment"] not in _MISSING
            or type(feature["has_nans"]) is not bool
            or type(feature["feature_id"]) is not str
        ):
            raise ValueError(f"feature {place} has another form than tocsin writes")
        first.append(borders)
        borders += len(own)
    trees = _list(document["oblivious_trees"], most=_MOST_TREES)
    for number, tree in enumerate(trees):
        splits = _list(tree["splits"] or [], most=_DEEPEST)
        if tree.keys() != _CATBOOST_TREE or any(split.keys() != _CATBOOST_SPLIT for split in splits):
            raise ValueError(f"tree {number} has another form than tocsin writes")
        for name in ("leaf_values", "leaf_weights"):
            _finite(tree[name], 2 ** len(splits))
        for split in splits:
            index, place = _whole([split["float_feature_index"], split["split_index"]], 2)
            known = split["split_type"] == "FloatFeature" and 0 <= index < len(found)
            if not known or split["border"] not in found[index]["borders"]:
                raise ValueError(f"tree {number} splits on an unknown feature or border")
            if place != first[index] + found[index]["borders"].index(split["border"]):
                raise ValueError(f"a split of tree {number} has another number than its border")
    scale, [bias] = document["scale_and_bias"]
    if _finite([scale, bias], 2)[0] != 1:
        raise ValueError(f"its values are scaled by {scale}, which tocsin never writes")
    kept = ("features_info", "oblivious_trees", "scale_and_bias")
    return json.dumps({name: document[name] for name in kept}, allow_nan=False).encode()


def _list(value: Any, *, most: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > most:
        raise ValueError(f"{str(value)[:40]} is not a list of at most {most:,} entries")
    return value


def _size(text: Any) -> int:
    """A count, which XGBoost writes as text."""
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or len(text) > 6:
        raise ValueError(f"{str(text)[:40]} is not a count")
    return int(text)


def _whole(values: Any, size: int) -> "np.typing.NDArray[np.int64]":
    if len(_list(values, most=size)) != size or not all(
        type(value) is int and abs(value) <= _NONE for value in values
    ):
        raise ValueError(f"{str(values)[:40]} are not {size} whole numbers")
    return np.array(values, dtype=np.int64)


def _finite(values: Any, size: int) -> "np.typing.NDArray[np.float64]":
    if len(_list(values, most=size)) != size or not all(
        type(value) in (int, float) and math.isfinite(value) for value in values
    ):
        raise ValueError(f"{str(values)[:40]} are not {size} finite numbers")
    return np.array(values, dtype=np.float64)
