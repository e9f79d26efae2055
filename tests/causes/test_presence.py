"""Pieces of text that may stand in a text."""

import random

from tocsin.causes.catalogue import load_catalogue
from tocsin.causes.presence import Pieces


def test_pieces_that_are_in_the_text_are_always_found() -> None:
    numbers = random.Random(4)
    keys = sorted({rule.pattern.key for rule in load_catalogue().rules})
    pieces = Pieces(keys)
    for _ in range(20):
        inside = numbers.sample(keys, 30)
        text = "\n".join(f"step {numbers.random()} {key}, 设备" for key in inside)
        assert {key for key in keys if key in text} <= pieces.possible(text)


def test_hardly_another_piece_is_found() -> None:
    keys = {rule.pattern.key for rule in load_catalogue().rules}
    text = "".join(f"step {i:8d} energy {i * -1.37:.6f} temperature {i % 300:.3f}\n" for i in range(4000))
    possible = Pieces(keys).possible(text)
    assert {key for key in keys if key in text} <= possible
    assert len(possible) < len(keys) / 50


def test_short_pieces_and_short_texts() -> None:
    assert Pieces(["abc", "abcd"]).possible("") == {"abc"}
    assert Pieces(["abc", "abcd"]).possible("xabcdx") == {"abc", "abcd"}
    assert Pieces(["é", "ééé"]).possible("é") == {"é"}
    assert Pieces([]).possible("text") == set()
