"""The published encoder: all-MiniLM-L6-v2 (or another sentence model) run by ONNX Runtime from a model folder."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.core.errors import ModelError
from tocsin.workload.normal import Commands

__all__ = ["MOST_TOKENS", "MiniLM"]

MOST_TOKENS = 512
"""RoWD, section 5.1: raised from 256, since many scripts are longer."""
_FILES = ("model.onnx", "tokenizer.json")
_BATCH = 16


class MiniLM:
    """The mean of the last layer's tokens, scaled to length 1, as in sentence-transformers."""

    name = "minilm"

    def __init__(self, folder: Path, *, threads: int = 1) -> None:
        try:
            import onnxruntime  # type: ignore[import-not-found, import-untyped, unused-ignore]  # an extra
            from tokenizers import Tokenizer  # type: ignore[import-not-found, unused-ignore]  # an extra
        except ImportError:
            raise ModelError(
                "a sentence encoder needs ONNX Runtime and tokenizers; install them: pip install 'tocsin[minilm]'"
            ) from None
        self.folder = folder.absolute()
        self.sha256 = _hash(folder)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = threads
        try:
            self._session: Any = onnxruntime.InferenceSession(
                str(folder / "model.onnx"), settings, providers=["CPUExecutionProvider"]
            )
            self._tokens: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as error:  # both libraries raise exceptions of their own
            raise ModelError(f"the model in {folder} cannot be read: {str(error)[:200]}") from None
        self._tokens.enable_truncation(MOST_TOKENS)
        self._tokens.enable_padding()
        self._wanted = {entry.name for entry in self._session.get_inputs()}

    def encode(self, scripts: Sequence[Commands]) -> NDArray[np.float32]:
        texts = [script.text for script in scripts]
        order = sorted(range(len(texts)), key=lambda row: len(texts[row]))  # similar lengths: little padding
        rows: dict[int, NDArray[np.float32]] = {}
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            rows |= zip(batch, self._embed([texts[row] for row in batch]), strict=True)
        return np.stack([rows[row] for row in range(len(texts))])

    def _embed(self, texts: list[str]) -> NDArray[np.float32]:
        found = self._tokens.encode_batch(texts)
        ids = np.array([each.ids for each in found], dtype=np.int64)
        mask = np.array([each.attention_mask for each in found], dtype=np.int64)
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = self._session.run(None, {name: given[name] for name in self._wanted})[0]
        mean = (hidden * mask[..., None]).sum(axis=1) / np.maximum(mask.sum(axis=1), 1)[:, None]
        scaled: NDArray[np.float32] = mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12)
        return scaled.astype(np.float32)


def _hash(folder: Path) -> str:
    """The SHA-256 of the model and the tokenizer: a panel only fits the encoder it was trained with."""
    found = hashlib.sha256()
    for name in _FILES:
        try:
            found.update((folder / name).read_bytes())
        except OSError as error:
            raise ModelError(
                f"{folder / name} cannot be read: {error.strerror}; the encoder folder must hold {' and '.join(_FILES)}"
            ) from None
    return found.hexdigest()
