"""Digests that a program of one's own is handed: whoever gives it an MD5 looks for what has this hash."""

import re

from tocsin.workload.normal import Commands

__all__ = ["DIGEST_PROBABILITY", "digest_lines"]

DIGEST_PROBABILITY = 0.6
"""Of cracking. No innocent script of jobspec has such a line, but programs do name their runs by a hash."""
_DIGEST = re.compile(r"[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}", re.IGNORECASE)
_MOST_WORDS = 40


def digest_lines(script: Commands) -> list[int]:
    """The lines that hand an MD5, SHA-1 or SHA-256 to `./program`; scripts (`./run.py ID`) name runs by a hash."""
    return [
        number
        for number, line in zip(script.numbers, script.lines, strict=True)
        if "./" in line and _handed(line)
    ]


def _handed(line: str) -> bool:
    words = line.split(maxsplit=_MOST_WORDS)[:_MOST_WORDS]
    program = next((place for place, word in enumerate(words) if word.startswith("./")), None)
    if program is None or "." in words[program][2:]:
        return False
    return any(_DIGEST.fullmatch(word.strip("\"'")) for word in words[program + 1 :])
