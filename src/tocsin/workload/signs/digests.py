"""Digests that a program of one's own is handed, by a script that speaks of hashes: it looks for what has this hash."""

import re
from collections.abc import Collection

from tocsin.workload.normal import Commands
from tocsin.workload.words import plain_words

__all__ = ["DIGEST_PROBABILITY", "digest_lines"]

DIGEST_PROBABILITY = 0.6
"""Of cracking. No innocent script of jobspec has both."""
_HASHING = frozenset("md5 sha1 sha256 sha512 ntlm hash hashes crack cracker brute bruteforce".split())  # noqa: SIM905  # a list of words reads best so
_DIGEST = re.compile(r"[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}", re.IGNORECASE)
_MOST_WORDS = 40


def digest_lines(script: Commands, hidden: Collection[int] = ()) -> list[int]:
    """The lines that hand an MD5, SHA-1 or SHA-256 to `./program`, where words of hashing stand beside it or it is hidden.

    Otherwise it is the name of a run or of a commit.
    """
    found = [
        number
        for number, line in zip(script.numbers, script.lines, strict=True)
        if "./" in line and _handed(line)
    ]
    words = plain_words("\n".join((*script.lines, script.name))) if found else set()
    return found if not words.isdisjoint(_HASHING) else [line for line in found if line in hidden]


def _handed(line: str) -> bool:
    words = line.split(maxsplit=_MOST_WORDS)[:_MOST_WORDS]
    program = next((place for place, word in enumerate(words) if word.startswith("./")), None)
    if program is None or "." in words[program][2:]:
        return False
    return any(_DIGEST.fullmatch(word.strip("\"'")) for word in words[program + 1 :])
