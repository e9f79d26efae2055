"""Digests passed to a user's own program by a script that mentions hashes: it searches for a matching input."""

import re
from collections.abc import Collection

from tocsin.workload.normal import Commands
from tocsin.workload.words import plain_words

__all__ = ["DIGEST_PROBABILITY", "digest_lines"]

DIGEST_PROBABILITY = 0.6
"""Probability of cracking. No innocent script of jobspec has both."""
_HASHING = frozenset("md5 sha1 sha256 sha512 ntlm hash hashes crack cracker brute bruteforce".split())  # noqa: SIM905  # a list of words reads best so
_DIGEST = re.compile(r"[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}", re.IGNORECASE)
_BUILDS = re.compile(r"(?:make|cmake|cargo|go|cc|gcc|g\+\+|clang|nvcc|hipcc|icc|mpicc|mpicxx|mpic\+\+)\s")
_MOST_WORDS = 40


def digest_lines(script: Commands, hidden: Collection[int] = ()) -> list[int]:
    """The lines that pass an MD5, SHA-1 or SHA-256 to `./program`, if the job or program is named for hashes, or hidden.

    Otherwise, it is the name of a run or of a commit, and hashes elsewhere are checksums.
    """
    found = [
        (number, line)
        for number, line in zip(script.numbers, script.lines, strict=True)
        if "./" in line and _handed(line)
    ]
    if not found:
        return []
    naming = [script.name, *(line for _, line in found), *filter(_BUILDS.match, script.lines)]
    # the job's name has no line
    naming += [line for number, line in zip(script.numbers, script.lines, strict=True) if not number]
    named = not plain_words("\n".join(naming)).isdisjoint(_HASHING)
    return [number for number, _ in found if named or number in hidden]


def _handed(line: str) -> bool:
    words = line.split(maxsplit=_MOST_WORDS)[:_MOST_WORDS]
    program = next((place for place, word in enumerate(words) if word.startswith("./")), None)
    if program is None or "." in words[program][2:]:
        return False
    return any(_DIGEST.fullmatch(word.strip("\"'")) for word in words[program + 1 :])
