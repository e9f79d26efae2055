"""Start-up time of commands: `tocsin --help`, a cold `tocsin check --local`, a whole `tocsin classify`."""

import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

__all__ = ["run"]

TIMES = 15
SCRIPTS = 16_000
PROGRAM = str(Path(sys.executable).with_name("tocsin"))
SCRIPT = """#!/bin/bash
#SBATCH --partition=batch
#SBATCH --ntasks=4
#SBATCH --time=02:00:00
#SBATCH --mem=8G
module load gcc openmpi
srun ./solver --input case.dat --steps 1000
"""


def run(folder: Path | None = None) -> dict[str, Any]:
    folder = folder or Path(os.environ.get("TOCSIN_DATA", "../shared/data"))
    return {
        "help_seconds": _median([PROGRAM, "--help"]),
        "python_seconds": _median([sys.executable, "-c", "pass"]),
        "import_help_seconds": _median([PROGRAM, "import", "files", "--help"]),
        **_checks(),
        "classify_scripts_per_second": _classified(folder),
    }


def _checks() -> dict[str, float]:
    """In a new home, and in one with the demo's jobs and a failure model; Python's bytecode cache is warm."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "job.sh"
        script.write_text(SCRIPT)
        found = {}
        for name, home in (("check_seconds", "new"), ("check_with_failure_model_seconds", "demo")):
            line = [PROGRAM, "--home", f"{folder}/{home}", "check", "--local", str(script)]
            if home == "demo":
                demo = os.environ | {"TOCSIN_HOME": f"{folder}/demo"}
                subprocess.run([PROGRAM, "demo"], check=True, capture_output=True, env=demo)
                train = [PROGRAM, "train", "failure", "--trials", "1"]
                subprocess.run(train, check=True, capture_output=True, env=demo)
                line += ["-M", "demo"]
            found[name] = _median(
                line, fine=(0, 1, 2, 3)
            )  # without a model, and on no cluster, it is unknown
        return found


def _classified(folder: Path) -> int:
    """Scripts per second of one `tocsin classify`, including start-up, on all cores."""
    with (
        tempfile.TemporaryDirectory() as made,
        gzip.open(folder / "scripts" / "jobspec.jsonl.gz", "rt", encoding="utf-8") as rows,
    ):
        scripts = Path(made) / "scripts"
        scripts.mkdir()
        for number, row in enumerate(islice(rows, SCRIPTS)):
            text = json.loads(row)["text"].encode("utf-8", "surrogateescape")
            (scripts / f"{number}.sh").write_bytes(text)
        line = [PROGRAM, "--home", f"{made}/home", "classify", str(scripts), "--jsonl"]
        start = time.perf_counter()
        subprocess.run(line, check=True, capture_output=True)
        return round(SCRIPTS / (time.perf_counter() - start))


def _median(command: list[str], fine: tuple[int, ...] = (0,)) -> float:
    """As installed: compiling the package's modules anew at each start would add 0.4 s."""
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    times = []
    for _ in range(TIMES):
        start = time.perf_counter()
        ended = subprocess.run(command, check=False, capture_output=True, env=compiled)
        times.append(time.perf_counter() - start)
        if ended.returncode not in fine:
            raise RuntimeError(f"{' '.join(command)} ended with {ended.returncode}: {ended.stderr.decode()}")
    return round(statistics.median(times), 4)
