"""Actions, tokens, hooks and the service on newer releases of Slurm: their live tests, run in a Debian that has it."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["run"]

SUITES = ("trixie", "forky")
"""Debian with Slurm 24.11 and with 26.05."""
FILES = (
    "tests/slurm/test_live_actions.py",
    "tests/slurm/test_live_hooks.py",
    "tests/serve/identity/test_live_slurm_token.py",
    "tests/serve/test_live_service.py",
)
SCRIPT = Path(__file__).parents[1] / "tests" / "services" / "debian.sh"
COMMAND = (
    "{ make .venv/.installed-dev && bash tests/services/install.sh .venv/bin/python; } >&2 && slurmd -V && "
    f".venv/bin/python -m pytest {' '.join(FILES)} -q -p no:cacheprovider --tb=short -rfEs"
)


def run() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {"missing": "a Debian with a newer Slurm is made by root only"}
    releases = [_release(suite) for suite in SUITES]
    return {"files": FILES, "releases": releases, "failed": sum(row["failed"] for row in releases)}


def _release(suite: str) -> dict[str, Any]:
    done = subprocess.run([SCRIPT, suite, "root", COMMAND], stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, file=sys.stderr)
    version = re.search(r"^slurm(?:-wlm)? (\S+)", done.stdout, re.MULTILINE)
    counts = {
        word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|error|skipped)", done.stdout)
    }
    troubles = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return {
        "slurm": version[1] if version else None,
        "passed": counts.get("passed", 0),
        "skipped": counts.get("skipped", 0),
        "failed": len(troubles) or int(not counts.get("passed")),
        "troubles": troubles,
    }
