"""Engines: the same bits after saving, deterministic training, and what they refuse."""

import json
import random
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.models.examples import table
from tocsin.core.errors import ModelError
from tocsin.models.engines import ENGINES, Engine, engine

X, Y = table()
EXTRA = ("catboost", "xgboost")


@pytest.fixture(params=list(ENGINES))
def any_engine(request: pytest.FixtureRequest) -> Engine:
    if request.param in EXTRA:
        pytest.importorskip(request.param)
    return engine(request.param)


def test_a_saved_model_answers_with_the_same_bits(any_engine: Engine, tmp_path: Path) -> None:
    model = any_engine.train(X, Y, rounds=40, seed=3)
    path = tmp_path / f"model{any_engine.suffix}"
    model.save(path)
    loaded = any_engine.load(path)
    assert loaded.rounds == model.rounds
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert np.array_equal(loaded.contributions(X), model.contributions(X))
    loaded.save(tmp_path / "again")
    assert np.array_equal(any_engine.load(tmp_path / "again").predict(X), model.predict(X))


def test_the_same_training_gives_the_same_model(any_engine: Engine) -> None:
    once, again = (any_engine.train(X, Y, rounds=30, seed=5).predict(X) for _ in range(2))
    assert np.array_equal(once, again)


def test_a_row_alone_gets_what_it_gets_among_others(any_engine: Engine) -> None:
    model = any_engine.train(X, Y, rounds=20)
    assert np.array_equal(model.predict(X[7:8]), model.predict(X)[7:8])


def test_it_learns_and_gives_probabilities(any_engine: Engine) -> None:
    p = any_engine.train(X, Y, rounds=60).predict(X)
    assert p.shape == Y.shape
    assert ((p > 0) & (p < 1)).all()
    assert p[Y == 1].mean() > p[Y == 0].mean() + 0.2


def test_contributions_of_a_row_sum_to_its_log_odds(any_engine: Engine) -> None:
    model = any_engine.train(X, Y, rounds=30)
    p = model.predict(X)
    values = model.contributions(X)
    assert values.shape == (len(X), X.shape[1] + 1)
    assert np.allclose(values.sum(axis=1), np.log(p / (1 - p)), atol=1e-4)
    assert (
        np.abs(values[:, 0]).mean() > 3 * np.abs(values[:, 5]).mean()
    )  # the first feature matters, the last not


def test_a_monotone_feature_never_lowers_the_probability(any_engine: Engine) -> None:
    model = any_engine.train(X, Y, rounds=60, monotone=[1, -1, 0, 0, 0, 0])
    rows = np.repeat(np.nan_to_num(X[:20]), 50, axis=0)
    rows[:, 0] = np.tile(np.linspace(-3, 3, 50, dtype=np.float32), 20)
    assert (np.diff(model.predict(rows).reshape(20, 50), axis=1) >= 0).all()


def test_training_stops_when_later_rows_gain_no_more(any_engine: Engine) -> None:
    model = any_engine.train(X[:1000], Y[:1000], rounds=400, valid=(X[1000:], Y[1000:]))
    if any_engine.name == "bagged":
        assert model.rounds == 400
    else:
        assert model.rounds < 300


def test_weights_count_as_rows(any_engine: Engine) -> None:
    plain = any_engine.train(X, Y, rounds=30).predict(X).mean()
    heavy = any_engine.train(X, Y, rounds=30, weight=np.where(Y == 1, 5.0, 1.0)).predict(X).mean()
    assert heavy > plain + 0.05


def test_no_rows_are_answered_by_none_and_wrong_ones_by_a_sentence(any_engine: Engine) -> None:
    model = any_engine.train(X, Y, rounds=3)
    assert model.predict(X[:0]).shape == (0,)
    assert model.contributions(X[:0]).shape == (0, 7)
    with pytest.raises(ModelError, match="6 features"):
        model.predict(X[:, :3])


def test_what_cannot_be_trained_on_is_said(any_engine: Engine) -> None:
    with pytest.raises(ModelError, match="same outcome"):
        any_engine.train(X, np.zeros(len(X)))
    with pytest.raises(ModelError, match="float32"):
        any_engine.train(X.astype(np.float64), Y)
    with pytest.raises(ModelError, match="rows of features"):
        any_engine.train(X, Y[:-1])
    with pytest.raises(ModelError, match="unknown outcomes"):
        any_engine.train(X, np.where(Y == 1, np.nan, 0))
    with pytest.raises(ModelError, match="2 monotone constraints"):
        any_engine.train(X, Y, monotone=[1, 0])


def test_a_file_that_is_no_model_is_refused(any_engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "model"
    any_engine.train(X, Y, rounds=3).save(path)
    good = path.read_bytes()
    for bad in (b"", b"{}", b"\xff" * 40, b"cos\nsystem\n(S'touch owned'\ntR.", good[: len(good) // 3]):
        path.write_bytes(bad)
        with pytest.raises(ModelError, match=r"not an? (valid )?\w+ model"):
            any_engine.load(path)


def test_a_wrong_parameter_is_a_sentence() -> None:
    with pytest.raises(ModelError, match="LightGBM cannot train"):
        engine("lightgbm").train(X, Y, parameters={"num_leaves": -4})


def test_threads_change_no_bit() -> None:
    one, two = (engine("lightgbm").train(X, Y, rounds=20, threads=n).predict(X) for n in (1, 2))
    assert np.array_equal(one, two)


def test_a_model_that_found_nothing_to_split_can_be_kept(tmp_path: Path) -> None:
    model = engine("lightgbm").train(X[:30], Y[:30], rounds=3)
    model.save(tmp_path / "model.txt")
    loaded = engine("lightgbm").load(tmp_path / "model.txt")
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert loaded.contributions(X).shape == (len(X), 7)


def test_damaged_text_never_harms_the_process(tmp_path: Path) -> None:
    """LightGBM's own parser reads beyond its buffer for some of these, and dies."""
    light, path = engine("lightgbm"), tmp_path / "model.txt"
    light.train(X, Y, rounds=4).save(path)
    good = path.read_bytes()
    chance = random.Random(4)
    refused = 0
    for _ in range(300):
        bad = bytearray(good)
        place = chance.randrange(len(bad))
        match chance.randrange(4):
            case 0:
                bad[place] = chance.choice(b"0123456789-. =\n\xff")
            case 1:
                del bad[place : place + chance.randrange(60)]
            case 2:
                bad[place:place] = chance.choice([b"9999999", b"-", b"nan", b"1e400", b"\nTree=0\n"])
            case _:
                del bad[place:]
        path.write_bytes(bytes(bad))
        try:
            model = light.load(path)
            model.predict(X[:20])
            model.contributions(X[:2])
        except ModelError:
            refused += 1
    assert 50 < refused < 300


@pytest.mark.parametrize(
    "line", ["left_child", "right_child", "split_feature", "decision_type", "leaf_value"]
)
def test_indices_that_lead_astray_are_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "model.txt"
    engine("lightgbm").train(X, Y, rounds=1).save(path)
    head, found, rest = path.read_text().partition(f"\n{line}=")
    numbers, end, tail = rest.partition("\n")
    for wrong in ("99999", "0", "-99999", "1"):
        words = numbers.split()
        words[-1] = wrong if line != "leaf_value" else "nan"
        if line in ("split_feature", "decision_type") and wrong == "0":
            continue  # a feature, and a kind of split, that there is
        if line == "split_feature" and wrong == "1":
            continue
        path.write_text(head + found + " ".join(words) + end + tail)
        with pytest.raises(ModelError, match="not a valid LightGBM model"):
            engine("lightgbm").load(path)


def test_an_engine_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match='"forest" is not an engine; the engines are lightgbm'):
        engine("forest")
    for name in EXTRA:
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ModelError, match=r"tocsin\[engines\]"):
            engine(name).train(X, Y)


@pytest.mark.parametrize(
    "number", ["1_0", "nan", "0x10", "１", "1e400", "+1", "1.", " 1", "1\t", "-", "1e9999999"]
)
@pytest.mark.parametrize(
    "line", ["left_child", "split_feature", "threshold", "leaf_value", "internal_count", "shrinkage"]
)
def test_a_number_that_lightgbm_reads_otherwise_is_refused(tmp_path: Path, line: str, number: str) -> None:
    """`left_child=1_0` is 10 for Python and 1 for LightGBM: a loop without end in a file that looked valid."""
    path = tmp_path / "model.txt"
    engine("lightgbm").train(X, Y, rounds=1).save(path)
    head, found, rest = path.read_text().partition(f"\n{line}=")
    first, _, tail = rest.partition(" " if line != "shrinkage" else "\n")
    path.write_text(head + found + number + rest[len(first) :])
    assert tail
    with pytest.raises(ModelError, match=r"not a (valid )?LightGBM model"):
        engine("lightgbm").load(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("num_class=1", "num_class=2"),
        ("objective=binary sigmoid:1", "objective=multiclass num_class:9"),
        ("num_leaves=", "num_leaves=1"),
        ("\nshrinkage=", "\ncat_boundaries=0 9\nshrinkage="),
        ("\nleaf_value=", "\n\nleaf_value="),
    ],
)
def test_a_lightgbm_model_of_another_kind_is_refused(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "model.txt"
    engine("lightgbm").train(X, Y, rounds=1).save(path)
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(ModelError, match="not a valid LightGBM model"):
        engine("lightgbm").load(path)


@pytest.mark.parametrize("name", EXTRA)
def test_damaged_json_never_harms_the_process(tmp_path: Path, name: str) -> None:
    """The parsers of XGBoost and CatBoost trust indices, too."""
    found, path = engine(name), tmp_path / "model.json"
    found.train(X, Y, rounds=4).save(path)
    good, chance, refused = path.read_text(), random.Random(5), 0
    numbers = list(re.finditer(r"-?\d+(\.\d+)?", good))
    for _ in range(200):
        place = chance.choice(numbers)
        number = chance.choice(
            ["-1", "0", "1", "7", "99999", "2147483647", "NaN", "1e400", "1_0", "[]", '"1"']
        )
        path.write_text(good[: place.start()] + number + good[place.end() :])
        try:
            model = found.load(path)
            model.predict(X[:20])
            model.contributions(X[:2])
        except ModelError:
            refused += 1
    assert 20 < refused <= 200


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [("left_children", -1, -11), ("right_children", -1, -2), ("default_left", 0, 9)],
)
def test_an_xgboost_model_with_another_mark_of_a_leaf_is_refused(
    tmp_path: Path, name: str, place: int, value: int
) -> None:
    path = tmp_path / "model.json"
    engine("xgboost").train(X, Y, rounds=2).save(path)
    model = json.loads(path.read_text())
    model["learner"]["gradient_booster"]["model"]["trees"][0][name][place] = value
    path.write_text(json.dumps(model))
    with pytest.raises(ModelError, match="do not make a tree"):
        engine("xgboost").load(path)


@pytest.mark.parametrize("objective", ["binary", "quantile"])
def test_what_tocsin_trains_can_be_loaded(tmp_path: Path, objective: str) -> None:
    model = engine("lightgbm").train(X, Y, rounds=5, parameters={"objective": objective, "alpha": 0.95})
    model.save(tmp_path / "model.txt")
    assert np.array_equal(engine("lightgbm").load(tmp_path / "model.txt").predict(X), model.predict(X))
