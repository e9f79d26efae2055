"""Miners that a script hides in its own text, written by somebody who had the rules at hand, in four sets.

Each set was written when the rules had been mended for the one before, and measured before anything was changed for it. In
each script the command, the pool's address or their pieces stand in the text. Innocent scripts do the same things.
"""

import re
from pathlib import Path

__all__ = ["FIRST", "FOURTH", "INNOCENT", "SECOND", "THIRD", "script"]

_HEADER = (
    "#!/bin/bash\n#SBATCH --job-name=relax\n#SBATCH --ntasks=32\n#SBATCH --time=12:00:00\nmodule load gcc\n"
)


def _bodies(name: str) -> dict[str, str]:
    """The scripts of a file by the headings before them."""
    text = (Path(__file__).parent / "informed" / f"{name}.txt").read_text("utf-8")
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


FIRST = _bodies("first")
SECOND = _bodies("second")
THIRD = _bodies("third")
FOURTH = _bodies("fourth")
INNOCENT = _bodies("innocent")


def script(body: str) -> str:
    """The whole job script of one body."""
    return f"{_HEADER}{body}"
