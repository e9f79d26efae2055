"""The commands of a script in one plain spelling: what encoders read, with the line that each came from."""

import re
from typing import NamedTuple

__all__ = ["MOST_CHARACTERS", "Commands", "commands", "stretches"]

MOST_CHARACTERS = 1 << 18
"""Of one end of a script: of a longer one its beginning and its end are read, so that padding on one side hides nothing."""

_DIRECTIVE = re.compile(r"#\s?(?:SBATCH|PBS|BSUB|PJM|MSUB|COBALT|OAR|FLUX|\$)[\s:]", re.IGNORECASE)
_GPU = re.compile(r"gpu|cuda|\b[avhp]100|\brtx|\bmi[23]\d0|\btesla", re.IGNORECASE)
_BLANKS = "\ufeff \t\r\0\v\f"


class Commands(NamedTuple):
    """The lines that are commands, each once, and where each stands first; lines count from 1."""

    numbers: tuple[int, ...]
    lines: tuple[str, ...]
    gpus: bool | None = None
    """Whether a directive speaks of GPUs; not known without directives."""

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def commands(text: str) -> Commands:
    """The commands of a raw script.

    The published preprocessor (RoWD, section 3): no blank lines and none that begin with `#`, so no shebang, no
    comments and no directives in any scheduler's words; a missing header tells nothing. Beyond the paper, a line
    counts once however often it stands there, so that padding with copies changes nothing, and of the directives one
    thing is kept: whether they ask for GPUs.
    """
    found: dict[str, int] = {}
    gpus: bool | None = None
    for offset, part in stretches(text):
        for number, line in enumerate(part.split("\n"), 1 + offset):
            bare = line.strip(_BLANKS)
            if not bare:
                continue
            if bare[0] == "#":
                if not gpus and _DIRECTIVE.match(bare):
                    gpus = _GPU.search(bare) is not None
            elif bare not in found:
                found[bare] = number
    return Commands(tuple(found.values()), tuple(found), gpus)


def stretches(text: str) -> list[tuple[int, str]]:
    """What is read of a script, each with the number of lines before it: all of it, or both its ends."""
    if len(text) <= 2 * MOST_CHARACTERS:
        return [(0, text)]
    before = text.count("\n", 0, len(text) - MOST_CHARACTERS)
    return [(0, text[:MOST_CHARACTERS]), (before, text[-MOST_CHARACTERS:])]
