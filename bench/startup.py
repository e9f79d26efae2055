"""How long `tocsin --help` takes, beside an empty Python on the same machine."""

import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

__all__ = ["run"]

TIMES = 15


def run() -> dict[str, Any]:
    program = str(Path(sys.executable).with_name("tocsin"))
    return {
        "help_seconds": _median([program, "--help"]),
        "python_seconds": _median([sys.executable, "-c", "pass"]),
        "import_help_seconds": _median([program, "import", "swf", "--help"]),
    }


def _median(command: list[str]) -> float:
    times = []
    for _ in range(TIMES):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return round(statistics.median(times), 4)
