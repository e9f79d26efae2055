"""Model cards: written, read back, and refused if damaged."""

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kits.model_cards import card
from tocsin.core.errors import ModelError
from tocsin.models.cards import Promotion, read_card

HASHES = {"model.txt": "0" * 64}
SEALED = card(
    version="1",
    files=HASHES,
    promotions=[Promotion(at=1_794_775_400, cluster="lab", replaced="1", why="better")],
)


def changed(**changes: Any) -> bytes:
    document = json.loads(SEALED.render())
    for key, value in changes.items():
        if value is ...:
            del document[key]
        else:
            document[key] = value
    return json.dumps(document).encode()


def test_a_card_comes_back_as_it_was() -> None:
    assert read_card(SEALED.render(), "card.json") == SEALED


def test_instants_are_written_in_RFC_3339() -> None:
    document = SEALED.to_json()
    assert document["created"] == "2026-11-15T20:43:13Z"
    assert document["promotions"] == [
        {"at": "2026-11-15T20:43:20Z", "cluster": "lab", "replaced": "1", "why": "better"}
    ]
    assert set(document["window"]) == {"first", "last"}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[]", "not a JSON object"),
        (b"[" * 100_000, "not JSON"),
        (b'{"rows": NaN}', "NaN is not"),
        (b'{"rows": 1, "rows": 2}', "twice"),
        (changed(schema=1), "schema is 1"),
        (changed(files=...), "no hashes"),
        (changed(files={}), "no hashes"),
        (changed(rows=...), 'lacks the key "rows"'),
        (changed(colour="red"), 'unknown key "colour"'),
        (changed(rows=7), "its own hash differs"),
        (changed(sha256=...), "its own hash differs"),
        (changed(engine="\ud800"), "its own hash differs"),
    ],
)
def test_what_is_no_card_is_refused_in_a_sentence(content: bytes, says: str) -> None:
    with pytest.raises(ModelError, match=says) as refusal:
        read_card(content, "models/failure/1/card.json")
    assert "models/failure/1/card.json" in str(refusal.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"rows": "many"},
        {"rows": True},
        {"engine": None},
        {"features": [1]},
        {"thresholds": [0.5]},
        {"files": {"model.txt": 1}},
        {"parameters": []},
    ],
)
def test_values_of_the_wrong_type_are_refused_even_under_a_right_hash(wrong: dict[str, Any]) -> None:
    forged = card(**{"version": "1", "files": HASHES, **wrong})
    content = forged.render() if wrong != {"thresholds": [0.5]} else changed(**wrong)
    with pytest.raises(ModelError, match="refused"):
        read_card(content, "card.json")


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_no_byte_of_a_card_can_change_unseen(data: st.DataObject) -> None:
    content = bytearray(SEALED.render())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ModelError):
        read_card(bytes(content), "card.json")


def test_a_number_that_JSON_has_not_is_refused_when_it_is_written() -> None:
    with pytest.raises(ModelError, match="JSON cannot hold"):
        card(parameters={"alpha": float("nan")}).render()


def test_reading_a_card_needs_no_learning_library() -> None:
    code = (
        "import sys; from tocsin.models.registry import Registry; from pathlib import Path;"
        "import tocsin.cli.models; Registry(Path('/nowhere')).detectors();"
        "print([m for m in ('lightgbm','sklearn','optuna','polars','numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
