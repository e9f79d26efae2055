"""Encoders behind one interface."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tools.workload.disguise import Disguise

from tocsin.core.errors import ModelError
from tocsin.workload.encoders import Cached
from tocsin.workload.lexical import grams
from tocsin.workload.minilm import MiniLM
from tocsin.workload.normal import Commands, commands
from tocsin.workload.vocabulary import Vocabulary


class Counting:
    """It tells how often it was asked."""

    name = "counting"

    def __init__(self) -> None:
        self.asked = 0

    def encode(self, scripts: Sequence[Commands]) -> NDArray[np.float32]:
        self.asked += len(scripts)
        return np.array([[len(script.text)] for script in scripts], dtype=np.float32)


def test_the_same_commands_are_embedded_once() -> None:
    encoder = Counting()
    cached = Cached(encoder, most=2)
    first = commands("#!/bin/sh\n#SBATCH -n 4\nmake\n")
    again = commands("#!/bin/bash\n\n  make\n")  # another header, the same commands
    assert cached.encode([first, again, first]).tolist() == [[4], [4], [4]]
    assert encoder.asked == 1
    cached.encode([commands("one"), commands("two")])
    cached.encode([first])
    assert encoder.asked == 4, "the memory is bounded, so the oldest was forgotten"


def test_a_missing_sentence_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"pip install|must hold model\.onnx"):
        MiniLM(tmp_path)


def test_no_n_gram_reaches_over_the_end_of_a_line() -> None:
    apart = np.concatenate([grams([line]).hashes for line in ("module load gcc", "make all")])
    assert sorted(grams(["module load gcc", "make all"]).hashes.tolist()) == sorted(apart.tolist())


def test_capitals_and_digits_are_spelled_alike() -> None:
    assert np.array_equal(grams(["Module load GCC/12.1"]).hashes, grams(["module load gcc/99.7"]).hashes)


def test_a_vocabulary_finds_its_own_n_grams_alone() -> None:
    lines = ["python train.py --epochs 3"]
    vocabulary = Vocabulary(np.unique(grams(lines).hashes))
    assert len(np.unique(vocabulary.find(lines).columns)) >= 0.999 * len(vocabulary)
    assert len(vocabulary.find(["ß∂ƒ©˙∆ zzz qqq"]).columns) == 0
    assert len(vocabulary.find([]).columns) == 0


def test_a_disguise_replaces_the_share_it_is_told() -> None:
    text = "\n".join(f"line {number}" for number in range(10)) + "\n\n"
    hidden = Disguise(3).replaced(text, 0.7).split("\n")
    assert sum(old == new for old, new in zip(text.split("\n"), hidden, strict=True)) == 3 + 2
    assert Disguise(3).replaced(text, 0.7) == Disguise(3).replaced(text, 0.7)
