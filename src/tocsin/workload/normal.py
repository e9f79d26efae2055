"""The commands of a script in a normal form: what encoders read, with the line that each came from."""

import re
from dataclasses import dataclass
from functools import cached_property

from tocsin.workload.words import joined_words

__all__ = ["MOST_CHARACTERS", "Commands", "commands", "stretches"]

MOST_CHARACTERS = 1 << 16
"""At each end of a script: of a longer one, only the beginning and the end are read, and that is an open sign. The longest
of jobspec has 60,000; twice as many take a hostile script over a second."""

_DIRECTIVE = re.compile(r"#\s?(?:SBATCH|PBS|BSUB|PJM|MSUB|COBALT|OAR|FLUX|\$)[\s:]", re.IGNORECASE)
_GPU = re.compile(r"gpu|cuda|\b[avhp]100|\brtx|\bmi[23]\d0|\btesla", re.IGNORECASE)
_GPU_MARKS = ("gpu", "cuda", "100", "rtx", "mi2", "mi3", "tesla")
"""The pattern matches only if one of these occurs; few directives have one, and looking for it is fast."""
_NAME = re.compile(r"(?:--(?:job-?)?name|-J|-N)[=\s]\s*[\"']?([^\s\"']{1,200})")
_BLANKS = "\ufeff \t\r\0\v\f"


@dataclass(frozen=True)
class Commands:
    """The lines that are commands, without repeats, and where each occurs first; lines count from 1."""

    numbers: tuple[int, ...]
    lines: tuple[str, ...]
    gpus: bool | None = None
    """Whether a directive requests GPUs; None without directives."""
    name: str = ""
    """The job name in a directive. Not used in training: few scripts of misuse have one."""
    sources: tuple[tuple[str, ...], ...] = ()
    """All lines of each text that the commands come from, in order: quotes and here-documents need them."""

    @cached_property
    def text(self) -> str:
        return "\n".join(self.lines)

    @cached_property
    def words(self) -> set[str]:
        """The joined words of all lines; several steps need them."""
        return joined_words(self.text)


def commands(text: str) -> Commands:
    """The commands of a raw script.

    The published preprocessor (RoWD, section 3): no blank lines and none that begin with `#`, so no shebang, no
    comments and no directives of any scheduler; a missing header tells nothing. Beyond the paper, a line counts once
    however often it occurs, so that padding with copies changes nothing, and two things are kept of the directives:
    whether they request GPUs, and the job's name.
    """
    found: dict[str, int] = {}
    gpus: bool | None = None
    name = ""
    sources = []
    for offset, part in stretches(text):
        source = tuple([line.strip(_BLANKS) for line in part.split("\n")])
        sources.append(source)
        for number, bare in enumerate(source, 1 + offset):
            if not bare:
                continue
            if bare[0] == "#":
                if _DIRECTIVE.match(bare):
                    gpus = gpus or _names_gpus(bare)
                    name = name or _name_in(bare)
            elif bare not in found:
                found[bare] = number
    return Commands(tuple(found.values()), tuple(found), gpus, name, tuple(sources))


def _names_gpus(directive: str) -> bool:
    low = directive.lower()
    may = not low.isascii() or any(mark in low for mark in _GPU_MARKS)
    return may and _GPU.search(directive) is not None


def _name_in(directive: str) -> str:
    """A name has a letter: Slurm's `-N 4` requests nodes."""
    found = _NAME.search(directive)
    return found[1] if found and any(map(str.isalpha, found[1])) else ""


def stretches(text: str) -> list[tuple[int, str]]:
    """The parts of a script that are read, each with the number of lines before it: all of it, or both ends."""
    if len(text) <= 2 * MOST_CHARACTERS:
        return [(0, text)]
    before = text.count("\n", 0, len(text) - MOST_CHARACTERS)
    return [(0, text[:MOST_CHARACTERS]), (before, text[-MOST_CHARACTERS:])]
