"""A sentence model as encoder: `train workload --encoder FOLDER`, its card, and classifying with it."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.kits.command_line import Tocsin, tocsin
from tocsin.core.errors import ModelError
from tocsin.core.verdict import SEEN_FROM
from tocsin.workload.minilm import MiniLM
from tocsin.workload.normal import commands
from tocsin.workload.screening import load_screener

__all__ = ["tocsin"]

WORDS = ["[UNK]", "blender", "render", "frames", "mpirun", "lmp", "input", "python", "scene"]


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    """A model folder whose embedding of a token is a fixed row of a table."""
    pytest.importorskip("onnxruntime", reason="the extra minilm is not installed")
    tokenizers = pytest.importorskip("tokenizers", reason="the extra minilm is not installed")
    folder = tmp_path / "encoder"
    folder.mkdir()
    folder.joinpath("model.onnx").write_bytes(_lookup_model(np.eye(len(WORDS), dtype=np.float32)))
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    folder = tmp_path / "examples"
    for name, line in (
        ("yes", "blender -b scene {0} --render frames {0}"),
        ("no", "mpirun lmp -in input {0}"),
    ):
        (folder / name).mkdir(parents=True)
        for number in range(6):
            (folder / name / f"{number}.sh").write_text("#!/bin/bash\n" + line.format("x" * number) + "\n")
    return folder


def test_an_operation_trained_on_embeddings_is_kept_and_classifies(
    tocsin: Tocsin, encoder: Path, examples: Path, tmp_path: Path
) -> None:
    ran = tocsin(
        "train", "workload", "--operation", "rendering", "--data", examples, "--encoder", encoder, "--json"
    )
    assert ran.code == 0, ran.err
    made = json.loads(ran.out)
    assert made["right"] == {"yes": 6, "no": 6}
    [folder] = tmp_path.rglob(made["version"])
    [_, named] = json.loads((folder / "card.json").read_text())["parameters"]["encoders"]
    assert (named["name"], named["folder"]) == ("minilm", str(encoder))
    assert named["sha256"] == MiniLM(encoder).sha256
    job = tmp_path / "job.sh"
    job.write_text("#!/bin/bash\nblender -b other.blend --render frames\n")
    told = json.loads(tocsin("classify", job, "--json").out)
    assert '"rendering"' in json.dumps(told)
    screener = load_screener(folder)
    [found] = screener.screen([job.read_text()])
    assert found.operations["rendering"] >= SEEN_FROM
    [other] = screener.screen(["mpirun lmp -in input"])
    assert other.operations["rendering"] < SEEN_FROM


def test_a_changed_encoder_is_refused(tocsin: Tocsin, encoder: Path, examples: Path, tmp_path: Path) -> None:
    ran = tocsin(
        "train", "workload", "--operation", "rendering", "--data", examples, "--encoder", encoder, "--json"
    )
    [folder] = tmp_path.rglob(json.loads(ran.out)["version"])
    (encoder / "model.onnx").write_bytes(_lookup_model(2 * np.eye(len(WORDS), dtype=np.float32)))
    with pytest.raises(ModelError, match="not the one"):
        load_screener(folder)


def test_a_shipped_operation_on_embeddings_is_compared_with_the_shipped_weights(
    tocsin: Tocsin, encoder: Path, examples: Path
) -> None:
    ran = tocsin("train", "workload", "--operation", "ai", "--data", examples, "--encoder", encoder, "--json")
    assert json.loads(ran.out)["right_before"]["no"] == 6


def test_a_folder_without_a_model_is_an_error(encoder: Path) -> None:
    (encoder / "model.onnx").unlink()
    with pytest.raises(ModelError, match=r"model\.onnx"):
        MiniLM(encoder)


def test_embeddings_have_length_one(encoder: Path) -> None:
    rows = MiniLM(encoder).encode([commands("python render"), commands("mpirun lmp input")])
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)


def _lookup_model(table: "np.ndarray[tuple[int, int], np.dtype[np.float32]]") -> bytes:
    """An ONNX model (protobuf, written by hand) with one node: the rows of a table by `input_ids`."""
    rows, size = table.shape
    weights = (
        _number(1, rows) + _number(1, size) + _number(2, 1) + _bytes(8, b"table") + _bytes(9, table.tobytes())
    )
    node = _bytes(1, b"table") + _bytes(1, b"input_ids") + _bytes(2, b"hidden") + _bytes(4, b"Gather")
    graph = (
        _bytes(1, node)
        + _bytes(2, b"lookup")
        + _bytes(5, weights)
        + _bytes(11, _value(b"input_ids", 7, 2))
        + _bytes(12, _value(b"hidden", 1, 3))
    )
    return _number(1, 8) + _bytes(7, graph) + _bytes(8, _bytes(1, b"") + _number(2, 13))


def _value(name: bytes, kind: int, dimensions: int) -> bytes:
    shape = b"".join(_bytes(1, _bytes(2, b"d%d" % number)) for number in range(dimensions))
    return _bytes(1, name) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, shape)))


def _number(field: int, value: int) -> bytes:
    return bytes([field << 3]) + _varint(value)


def _bytes(field: int, content: bytes) -> bytes:
    return bytes([field << 3 | 2]) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])
