"""Accuracy and speed of the script parser: the recognized scheduler of every public script against its label."""

import gzip
import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tocsin.scripts.script import parse

__all__ = ["run"]

_LABELS = {"pjsub": "pjm"}  # the data set names PJM by its submit command


def run(folder: Path | None = None) -> dict[str, Any]:
    """Parse every script of scripts/jobspec.jsonl.gz and compare with its field `scheduler`."""
    folder = folder or Path(os.environ.get("TOCSIN_DATA", "../shared/data"))
    with gzip.open(folder / "scripts" / "jobspec.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    confusion: Counter[tuple[str, str]] = Counter()
    wrong: list[str] = []
    directives = problems = headers = right = 0
    start = time.perf_counter()
    scripts = [parse(row["text"]) for row in rows]
    seconds = time.perf_counter() - start
    for row, script in zip(rows, scripts, strict=True):
        label, found = _LABELS.get(row["scheduler"], row["scheduler"]), str(script.scheduler or "none")
        confusion[label, found] += 1
        headers += bool(script.directives)
        right += bool(script.directives) and label == found
        directives += len(script.directives)
        problems += len(script.problems)
        if label != found:
            wrong.append(f"{row['repo']} {row['path']}: {label} taken for {found}")
    return {
        "scripts": len(rows),
        "with_header": headers,
        "scheduler_right": sum(n for (label, found), n in confusion.items() if label == found),
        "scheduler_right_with_header": right,
        "accuracy": sum(n for (label, found), n in confusion.items() if label == found) / len(rows),
        "accuracy_with_header": right / headers,
        "confusion": {f"{label}>{found}": n for (label, found), n in sorted(confusion.items())},
        "wrong": wrong,
        "directives": directives,
        "problems": problems,
        "seconds": round(seconds, 3),
        "scripts_per_second": round(len(rows) / seconds),
    }


def _print(result: dict[str, Any]) -> None:
    cells = {tuple(key.split(">")): n for key, n in result["confusion"].items()}
    columns = sorted({found for _, found in cells})
    print(f"{'label':>8} " + " ".join(f"{name:>7}" for name in columns))
    for label in sorted({label for label, _ in cells}):
        print(f"{label:>8} " + " ".join(f"{cells.get((label, name), 0):>7}" for name in columns))
    for line in result["wrong"]:
        print(line)
    print(
        f"{result['scripts']} scripts, {result['with_header']} with a header, scheduler right in"
        f" {result['accuracy_with_header']:.3%} of those ({result['accuracy']:.3%} of all);"
        f" {result['scripts_per_second']} scripts/s"
    )


if __name__ == "__main__":
    _print(run())
