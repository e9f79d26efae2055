"""A panel: linear models of several operations over one encoder."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.core.errors import ModelError
from tocsin.models.files import MALFORMED, MOST_BYTES, read_document, read_file
from tocsin.workload import keywords
from tocsin.workload.encoders import Cached, Encoder, Lexical, Scored
from tocsin.workload.lexical import BITS
from tocsin.workload.minilm import MiniLM
from tocsin.workload.normal import Commands
from tocsin.workload.vocabulary import Vocabulary

__all__ = ["VERSION", "Panel", "evidence_lines", "load_panel"]

VERSION = 1
"""Version of the file format."""
_MOST_LINES = 3
_SHARE = 0.25
"""Share of the highest line score: lines below it are not evidence."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One column of weights per operation, calibrated so that an operation is detected from 0.5 on."""

    encoder: Encoder
    operations: tuple[str, ...]
    weights: NDArray[np.float32]
    """Encoder columns by operations, contiguous by operation."""
    bias: NDArray[np.float32]
    margins: tuple[float | None, ...] = ()
    """By operation: how much a passage must outscore the whole script to count instead of it; None: never."""

    def score(self, scripts: Sequence[Commands]) -> Scored:
        return self.encoder.score(scripts, self.weights, self.margins)

    def probabilities(self, scripts: Sequence[Commands], scored: Scored | None = None) -> NDArray[np.float64]:
        """Scripts by operations; 0 for a script without commands."""
        score = (scored or self.score(scripts)).scores
        p: NDArray[np.float64] = 1 / (1 + np.exp(-np.clip(score + self.bias, -40, 40)))
        empty = [not script.lines for script in scripts]
        p[empty] = 0
        return p

    def save(self, folder: Path, name: str) -> None:
        from safetensors.numpy import save

        document: dict[str, Any] = {
            "version": VERSION,
            "encoder": self.encoder.name,
            "operations": list(self.operations),
            "bias": [float(value) for value in self.bias],
            "margins": list(self.margins),
        }
        arrays: dict[str, NDArray[Any]] = {"weights": np.ascontiguousarray(self.weights, dtype=np.float16)}
        encoder = self.encoder.encoder if isinstance(self.encoder, Cached) else self.encoder
        if isinstance(encoder, Lexical):
            document["hints"] = keywords.columns()
            arrays |= {"keys": encoder.vocabulary.keys, "rarity": encoder.rarity.astype(np.float16)}
        elif isinstance(encoder, MiniLM):
            document |= {"model": str(encoder.folder), "sha256": encoder.sha256}
        text = json.dumps(document, indent=1, allow_nan=False)
        (folder / f"{name}.json").write_text(text + "\n", "utf-8")
        (folder / f"{name}.safetensors").write_bytes(save(arrays))


def evidence_lines(script: Commands, scores: NDArray[np.float64]) -> list[int]:
    """The lines of the raw script with the highest scores, in order."""
    best = np.argsort(-scores, kind="stable")[:_MOST_LINES]
    least = max(_SHARE * float(scores[best[0]]), 1e-9) if len(best) else 0.0
    return sorted({script.numbers[place] for place in best if scores[place] >= least})


def load_panel(folder: Path, name: str) -> Panel:
    """Load a saved panel; with a sentence model, that model's folder must still be in place."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    path = folder / f"{name}.json"
    again = "restore it from a backup or train again"
    try:
        arrays = load(read_file(folder / f"{name}.safetensors", most=MOST_BYTES))
    except (SafetensorError, *MALFORMED) as error:
        raise ModelError(f"{path} cannot be read: {str(error)[:200]}; {again}") from None
    document = read_document(path, version=VERSION, next_step=again)
    try:
        operations = tuple(str(operation) for operation in document["operations"])
        weights = np.asfortranarray(arrays["weights"], dtype=np.float32)
        bias = np.array(document["bias"], dtype=np.float32)
        margins = tuple(None if value is None else float(value) for value in document.get("margins", ()))
        encoder = _encoder(document, arrays, path)
        expected = (
            len(arrays["keys"]) + document["hints"] if document["encoder"] == "lexical" else len(weights)
        )
        if (
            not np.isfinite(weights).all()
            or weights.shape != (expected, len(operations))
            or bias.shape != (len(operations),)
            or len(margins) not in (0, len(operations))
        ):
            raise ValueError("the weights do not fit")
    except MALFORMED as error:
        raise ModelError(f"{path} is damaged ({str(error)[:100]}); {again}") from None
    return Panel(encoder, operations, weights, bias, margins)


def _encoder(document: dict[str, Any], arrays: dict[str, Any], path: Path) -> Encoder:
    if document["encoder"] == "lexical":
        if document["hints"] != keywords.columns():
            raise ModelError(f"{path} was written by a version of tocsin with other keywords; train again")
        keys, rarity = arrays["keys"], arrays["rarity"].astype(np.float32)
        if keys.dtype != np.uint64 or keys.ndim != 1 or keys.shape != rarity.shape:
            raise ValueError("the n-grams do not fit")
        if len(keys) and (int(keys.max()) >> BITS or not np.isfinite(rarity).all()):
            raise ValueError("an n-gram is out of range")
        return Lexical(Vocabulary(keys), rarity)
    if document["encoder"] != "minilm":
        raise ModelError(f'{path} names the encoder "{document["encoder"]}"; there are lexical and minilm')
    encoder = MiniLM(Path(document["model"]))
    if encoder.sha256 != document["sha256"]:
        raise ModelError(
            f"the encoder in {encoder.folder} is not the one that {path} was trained with; restore it or train again"
        )
    return Cached(encoder)
