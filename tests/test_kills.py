"""Some writing commands, killed at a few points and run again; `make bench` kills each of them 20 times."""

import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY, unavailable
from tests.services import missing


@pytest.mark.parametrize("commands", [["models promote", "screen"], ["import", "backup", "allow add"]])
def test_a_killed_command_loses_doubles_and_leaves_nothing(commands: list[str]) -> None:
    if sentence := missing("lightgbm"):
        unavailable(sentence)
    # in a process of its own, from which commands are forked before any library has started a thread
    survey = f"from bench.kills import survey; print([r['wrong'] for r in survey({commands!r}, 3).values()])"
    done = subprocess.run(
        [sys.executable, "-c", survey], capture_output=True, text=True, cwd=REPOSITORY, check=False
    )
    assert done.stdout == f"{[[] for _ in commands]}\n", done.stderr
