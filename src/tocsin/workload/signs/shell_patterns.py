"""Patterns of a shell as regular expressions."""

import re

__all__ = ["MOST_STARS", "as_expression"]

MOST_STARS = 2
"""In a pattern that is tried; the time for one with more grows too fast with the text."""

_GLOB = re.compile(r"[*?]|\[[^\]]+\]")


def as_expression(pattern: str) -> str:
    """A pattern of the shell as a regular expression."""
    done: list[str] = []
    place = 0
    for found in _GLOB.finditer(pattern):
        done.append(re.escape(pattern[place : found.start()]))
        inside = found[0]
        if inside in "*?":
            done.append(".*" if inside == "*" else ".")
        else:
            negated = inside[1] in "!^"
            done.append(
                f"[{'^' if negated else ''}{re.escape(inside[1 + negated : -1]).replace(chr(92) + '-', '-')}]"
            )
        place = found.end()
    return "".join(done) + re.escape(pattern[place:])
