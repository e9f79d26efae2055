"""What scripts are: tocsin beside its rivals, with whole sources, owners and repositories left out.

`python -m bench workload`. Every figure is of scripts whose owner the encoder, the model and its threshold never saw,
but for the one threshold of misuse: it lies where 0.05 % of the innocent scripts of this very run are above it, the
rule of the shipped weights. The settings of the training were chosen on these same splits, the weights never.
"""

import os
import random
import re
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tools.make_workload_weights import macro_f1
from tools.workload.corpus import Example, corpus
from tools.workload.disguise import Disguise
from tools.workload.lessons import OPERATIONS, Lesson
from tools.workload.training import left_out_models, owner_folds, prepare, scores_left_out, threshold_of

from bench import workload_rivals as rivals
from tocsin.core.verdict import SEEN_FROM
from tocsin.workload.learning import Linear, Material, material, panel_of
from tocsin.workload.normal import Commands, commands
from tocsin.workload.screening import Screener, builtin

__all__ = ["run"]

FOLDS = 5
SHARES = tuple(round(0.1 * step, 1) for step in range(1, 10))
SAMPLE = 1500
"""Labelled scripts of jobspec that the slow rivals are asked about."""
TOOLS = re.compile(
    r"xmrig|ethminer|cpuminer|minerd|ccminer|cgminer|bfgminer|phoenixminer|nbminer|lolminer|t-rex|gminer|hashcat|\bjohn\b|"
    r"hydra|medusa|masscan|nmap|zmap|aircrack-ng|airodump-ng|aireplay-ng|airmon-ng|reaver|wash\b", re.IGNORECASE
)  # fmt: skip


def run(folder: Path | None = None) -> dict[str, Any]:
    folder = folder or Path(os.environ.get("TOCSIN_DATA", "../shared/data"))
    examples = corpus(folder)
    taught, stuff = prepare(examples)
    sources = _sources(examples, taught, stuff)
    folds = _folds(examples, taught, stuff)
    return {
        "split": "whole owners left out of vocabulary, encoder and model",
        "scripts": len(examples),
        "script_ai": {"split": "one source left out at a time", **sources},
        **_jobspec(examples, folds),
        "misuse": _misuse(examples, folds),
        "disguise": _disguise(examples, folds),
        "among_foreign_commands": _among_foreign(examples, folds),
        "kinds": _kinds(examples),
        "speed": _speed(examples),
    }


class _Fold:
    """Screeners that knew nothing of some owners, and the examples of those."""

    def __init__(self, rows: NDArray[np.int64], screener: Screener) -> None:
        self.rows, self.screener = rows, screener


def _folds(examples: Sequence[Example], taught: Sequence[Lesson], stuff: Material) -> list[_Fold]:
    owners = stuff.owners[: len(examples)]
    parts = owner_folds(owners, FOLDS, 1)
    models: dict[str, list[Linear]] = {}
    encoders = []
    for operation in OPERATIONS:
        scores = np.full(len(examples), np.nan)
        models[operation] = []
        for part, encoder, model in left_out_models(taught, stuff, operation, parts):
            encoders.append(encoder)
            models[operation].append(model)
            asked = np.flatnonzero(np.isin(owners, part))
            scores[asked] = stuff.matrix(asked, encoder) @ model.weights + model.bias
        level = threshold_of(operation, scores, examples)
        models[operation] = [m._replace(bias=m.bias - level) for m in models[operation]]
    return [
        _Fold(
            np.flatnonzero(np.isin(owners, part)),
            Screener(
                [panel_of(encoders[at], OPERATIONS, [models[operation][at] for operation in OPERATIONS])]
            ),
        )
        for at, part in enumerate(parts)
    ]


def _sources(examples: Sequence[Example], taught: Sequence[Lesson], stuff: Material) -> dict[str, Any]:
    """(a): tocsin on SCRIPT-AI with one source left out at a time, and rivals that learn from SCRIPT-AI alone."""
    chosen = [row for row, example in enumerate(examples) if example.origin == "script-ai"]
    texts = [examples[row].text for row in chosen]
    groups = [examples[row].owner for row in chosen]
    y = np.array([examples[row].ai for row in chosen])
    parts = [np.array([owner]) for owner in dict.fromkeys(stuff.owners[chosen].tolist())]
    scores = scores_left_out(taught, stuff, "ai", parts)[chosen]
    found = {
        "tocsin": figures(y, scores >= 0),
        "keyword matching": figures(y, rivals.keywords(texts)),
        "ssdeep + RF": figures(
            y, rivals.left_out(rivals.CLASSIFIERS["RF"], rivals.similarities(texts), y, groups, square=True)
        ),
    }
    for preprocess in (True, False):
        said = "" if preprocess else ", no preprocessor"
        scripts = texts if preprocess else [text.replace("#", "") for text in texts]  # nothing is a comment
        stuff_here = material(scripts, groups, [True] * len(scripts), least=2)
        tables: dict[str, Any] = {
            "lexical": stuff_here.matrix(np.arange(len(y)), stuff_here.encoder(least=2))
        }
        if (model := rivals.minilm_folder()) is not None:
            tables["MiniLM"] = rivals.embedded(texts, model, "script-ai", preprocess=preprocess)
        for encoder, X in tables.items():
            for name, make in rivals.CLASSIFIERS.items():
                found[f"{encoder} + {name}{said}"] = figures(y, rivals.left_out(make, X, y, groups))
    return found


def _jobspec(examples: Sequence[Example], folds: Sequence[_Fold]) -> dict[str, Any]:
    """(b): the weakly labelled scripts of jobspec."""
    chosen = np.array([e.origin == "jobspec" and e.ai is not None for e in examples])
    y = np.array([-1 if e.ai is None else e.ai for e in examples])
    plain = np.array([not e.ai_word for e in examples])
    texts = [e.text for e in examples]
    p = np.zeros(len(examples))
    for fold in folds:
        p[fold.rows] = [s.operations["ai"] for s in fold.screener.screen([texts[row] for row in fold.rows])]
    words = np.zeros(len(examples), dtype=bool)
    words[chosen] = rivals.keywords([texts[row] for row in np.flatnonzero(chosen)])
    rows = {"jobspec": chosen, "jobspec_without_ai_word": chosen & plain}
    found: dict[str, Any] = {
        name: {
            "split": f"{FOLDS} parts of whole owners; labels by rule, so partly circular",
            "tocsin": figures(y[these], p[these] >= SEEN_FROM),
            "keyword matching": figures(y[these], words[these]),
        }
        for name, these in rows.items()
    }
    if (model := rivals.minilm_folder()) is not None:
        picked = np.sort(np.random.default_rng(0).permutation(np.flatnonzero(chosen))[:SAMPLE])
        X = rivals.embedded([texts[row] for row in picked], model, "jobspec")
        groups = [str(hash_part(examples[row].owner)) for row in picked]
        for name in ("LR", "LR balanced"):
            seen = rivals.left_out(rivals.CLASSIFIERS[name], X, y[picked], groups)
            said = f"MiniLM + {name}, of and on {SAMPLE} of them"
            found["jobspec"][said] = figures(y[picked], seen)
            without = plain[picked]
            found["jobspec_without_ai_word"][said] = figures(y[picked][without], seen[without])
    return found


def hash_part(owner: str) -> int:
    return sum(owner.encode()) % FOLDS


def _misuse(examples: Sequence[Example], folds: Sequence[_Fold]) -> dict[str, Any]:
    """(c): a row a repository; headers are stripped from all scripts alike."""
    variants = {
        "as they are": lambda text, _: text,
        "base64": _wrapped,
        "renamed": _renamed,
        "padded": _padded,
    }
    innocent = [example.text for example in examples if example.origin == "jobspec"]
    hits: dict[str, dict[int, bool]] = {name: {} for name in variants}
    alarms = dict.fromkeys(OPERATIONS[1:], 0)
    for fold in folds:
        mine = [int(row) for row in fold.rows if examples[row].misuse is not None]
        for name, change in variants.items():
            chance = random.Random(name)
            changed = [change(examples[row].text, chance.choice(innocent)) for row in mine]
            for row, said in zip(mine, fold.screener.screen(changed), strict=True):
                hits[name][row] = said.operations[examples[row].misuse or ""] >= SEEN_FROM
        for said in fold.screener.screen(
            [examples[row].text for row in fold.rows if examples[row].origin == "jobspec"]
        ):
            for operation in alarms:
                alarms[operation] += said.operations[operation] >= SEEN_FROM
    found: dict[str, Any] = {
        "split": f"{FOLDS} parts of whole owners, those of misuse and of innocent scripts"
    }
    for operation in OPERATIONS[1:]:
        rows = [row for row, example in enumerate(examples) if example.misuse == operation]
        found[operation] = {
            "scripts": len(rows),
            "recall": {name: round(statistics.mean(hits[name][row] for row in rows), 4) for name in variants},
            "false_alarms": alarms[operation],
            "false_alarm_rate": round(alarms[operation] / len(innocent), 6),
            "repositories": {
                name: [sum(hits["as they are"][r] for r in rows if examples[r].source == name),
                       sum(examples[r].source == name for r in rows)]
                for name in sorted({examples[row].source for row in rows})
            },
        }  # fmt: skip
    return found


def _wrapped(text: str, _: str) -> str:
    import base64

    packed = base64.b64encode(commands(text).text.encode("utf-8", "replace")).decode()
    return f"module load gcc\necho {packed} | base64 -d | bash\n"


def _renamed(text: str, _: str) -> str:
    return TOOLS.sub("solver", text)


def _padded(text: str, innocent: str) -> str:
    """Between the halves of an innocent script, which has some three lines for one of it."""
    lines = innocent.split("\n")
    lines = (
        lines * (1 + 3 * text.count("\n") // max(len(lines), 1))
        if len(lines) < 3 * text.count("\n")
        else lines
    )
    half = len(lines) // 2
    return "\n".join([*lines[:half], text, *lines[half:]])


def _disguise(examples: Sequence[Example], folds: Sequence[_Fold]) -> dict[str, Any]:
    """Lines of the raw script replaced by random strings, other strings than in the training."""
    y = np.array([-1 if e.ai is None else e.ai for e in examples])
    origin = np.array([e.origin for e in examples])
    curves: dict[str, Any] = {"jobspec": {}, "script-ai": {}}
    for share in (0.0, *SHARES):
        hide = Disguise(1000 + int(100 * share))
        seen = np.zeros(len(examples), dtype=bool)
        for fold in folds:
            rows = fold.rows[y[fold.rows] >= 0]
            panel = fold.screener.panels[0]
            for start in range(0, len(rows), 256):
                some = rows[start : start + 256]
                hidden: list[Commands] = [commands(hide.replaced(examples[row].text, share)) for row in some]
                seen[some] = panel.probabilities(hidden)[:, 0] >= SEEN_FROM
        for name, curve in curves.items():
            these = (y >= 0) & (origin == name)
            curve[str(share)] = figures(y[these], seen[these])
    return curves


def _among_foreign(examples: Sequence[Example], folds: Sequence[_Fold]) -> dict[str, Any]:
    """Each labelled script of jobspec between 20 lines of those that are not AI; labels stay."""
    chance = random.Random("foreign")
    foreign = [
        line for e in examples if e.origin == "jobspec" and e.ai == 0 for line in commands(e.text).lines
    ]
    y = np.array([-1 if e.ai is None or e.origin != "jobspec" else e.ai for e in examples])
    seen = np.zeros(len(examples), dtype=bool)
    for fold in folds:
        rows = fold.rows[y[fold.rows] >= 0]
        texts = ["\n".join([*chance.choices(foreign, k=10), examples[row].text, *chance.choices(foreign, k=10)])
                 for row in rows]  # fmt: skip
        seen[rows] = [said.operations["ai"] >= SEEN_FROM for said in fold.screener.screen(texts)]
    return figures(y[y >= 0], seen[y >= 0])


def _kinds(examples: Sequence[Example]) -> dict[str, Any]:
    """Domain and language against SCRIPT-AI's own; they come from a catalogue and rules, not from training."""
    rows = [example for example in examples if example.origin == "script-ai"]
    said = builtin().screen([example.text for example in rows])
    found = {}
    for kind in ("domain", "language"):
        pairs = [
            (getattr(s, kind), getattr(e, kind)) for s, e in zip(said, rows, strict=True) if getattr(e, kind)
        ]
        told = [(ours, theirs) for ours, theirs in pairs if ours is not None]
        right = sum(
            ours.lower() in theirs.lower().replace("fortrand", "fortran").split(":") for ours, theirs in told
        )
        found[kind] = {"labelled": len(pairs), "told": len(told), "right": right}
    return found


def _speed(examples: Sequence[Example]) -> dict[str, Any]:
    rows = [e for e in examples if e.origin == "jobspec"]
    texts = [e.text for e in rows]
    began = time.perf_counter()
    screener = builtin()
    load = time.perf_counter() - began
    seconds = []
    screener.screen(texts[:100])
    for text in texts[:2000]:
        began = time.perf_counter()
        screener.screen([text])
        seconds.append(time.perf_counter() - began)
    began = time.perf_counter()
    screener.screen(texts[:8000])
    one_core = 8000 / (time.perf_counter() - began)
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(_screened, [texts[:100]] * 2))
        began = time.perf_counter()
        list(pool.map(_screened, [texts[start : start + 500] for start in range(0, 16000, 500)]))
        two_cores = 16000 / (time.perf_counter() - began)
    labelled = [e for e in rows if e.ai is not None][:140]
    slow = rivals.one_at_a_time([e.text for e in labelled], np.array([e.ai for e in labelled]))
    found: dict[str, Any] = {
        "load_seconds": round(load, 3),
        "median_seconds": statistics.median(seconds),
        "p99_seconds": float(np.quantile(seconds, 0.99)),
        "scripts_per_second_one_core": round(one_core),
        "scripts_per_second_two_cores": round(two_cores),
        "jobs_a_day_to_share_of_a_core": {
            str(jobs): round(jobs * statistics.mean(seconds) / 86400, 6) for jobs in (1000, 10_000, 100_000)
        },
    }
    if slow is not None:
        found["sentence_transformers"] = slow
        found["times_faster"] = round(slow["median_seconds"] / statistics.median(seconds), 1)
    return found


_SCREENER: list[Screener] = []


def _screened(texts: list[str]) -> int:
    if not _SCREENER:
        _SCREENER.append(builtin())
    return len(_SCREENER[0].screen(texts))


def figures(y: NDArray[np.int64], seen: NDArray[np.bool_]) -> dict[str, Any]:
    tp, tn = int((seen & (y == 1)).sum()), int((~seen & (y == 0)).sum())
    fp, fn = int((seen & (y == 0)).sum()), int((~seen & (y == 1)).sum())
    return {
        "macro_f1": round(macro_f1(y, seen), 4),
        "f1": round(2 * tp / max(2 * tp + fp + fn, 1), 4),
        "tp": tp, "tn": tn, "fp": fp, "fn": fn,
    }  # fmt: skip
