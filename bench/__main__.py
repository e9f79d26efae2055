"""Run the benchmarks, write bench/results/*.json and docs/benchmarks.md: `python -m bench [NAME...]`.

`python -m bench page` only writes the page and its charts again, from the stored results.
"""

import importlib
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

from bench.goals import rows
from bench.pictures import draw
from bench.tables import sections

NAMES = (
    *(
        "startup",
        "intake",
        "store",
        "scripts",
        "history",
        "watch",
        "service",
        "refusals",
        "live",
        "outcomes",
        "hooks",
        "beside_slurm",
        "releases",
        "agent",
        "series",
        "traces",
        "traces_speed",
    ),
    *("mutations", "kills", "streams", "faults"),
    *("verdict", "failure", "dayone", "walk", "imbalance", "workload", "misuse", "execution", "causes"),
)
RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"


def main(names: list[str]) -> int:
    unknown = set(names) - {*NAMES, "page"}
    if unknown:
        print(
            f"unknown benchmark: {', '.join(sorted(unknown))}; known: {', '.join(NAMES)}",
            file=sys.stderr,
        )
        return 2
    RESULTS.mkdir(exist_ok=True)
    for name in [name for name in names or NAMES if name != "page"]:
        print(f"bench {name} ...", file=sys.stderr, flush=True)
        start = time.perf_counter()
        result: dict[str, Any] = importlib.import_module(f"bench.{name}").run()
        result["bench_seconds"] = round(time.perf_counter() - start, 1)
        (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n")
    results = {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}
    table = rows(results)
    PAGE.write_text(_page(table, sections(results)))
    draw(results)
    for row in table:
        print(row)
    return 0


def _page(table: list[str], more: list[str]) -> str:
    cores = len(os.sched_getaffinity(0))
    return "\n".join(
        [
            "# Benchmarks",
            "",
            f"Written by `make bench` on {cores} cores with Python {platform.python_version()}, from public data in `TOCSIN_DATA`.",
            "",
            "| figure | goal | measured | |",
            "|---|---|---|---|",
            *table,
            "",
            *more,
        ]
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
