"""Program names that a script computes: from letters, pieces or the output of a filter, and not from the place of a program."""

import re
from collections.abc import Iterator, Sequence

from tocsin.workload.commands import Line

__all__ = ["computed_names"]

_BEGINS = (
    r"(?:^\s{0,20}|[;&|]\s{0,9}|\b(?:do|then|else|exec|nohup|srun|sudo|setsid|timeout\s+\w{1,9})\s+)[\"']?"
)
_ENDS = r"[\"']?(?=\s|$|;)"
_PIECES = re.compile(
    rf"{_BEGINS}(?:\$\{{\w{{1,40}}(?:\[[^\]]{{1,20}}\]|:[^}}]{{1,20}})?\}}|\$\w{{1,40}}|\$\([^()]{{1,100}}\)){{2,20}}{_ENDS}"
)
"""A command of several expansions and nothing between them."""
_FILTERED = re.compile(
    r"\b(\w{1,40})\+?=[\"']?(?:\$\(|`)\s{0,9}(?:(?:echo|printf|cat)\s[^|)`]{0,300}\|\s{0,9}|(?=\w{1,9}\s[^|)`]{0,200}<<<))"
    r"(?:cut\s+-c|(?:tr|sed|[gm]?awk|rev|fold|paste|head\s+-c|tail\s+-c)\s)"
)
"""A variable set to letters or words that a filter picks from the script's own text."""
_GROWN = re.compile(
    r"\b(\w{1,40})(?:\+=[\"']?|=[\"']?\$\{?\1\}?)\$(?:\{\w{1,40}(?:\[[^\]]{1,20}\]|:[^}]{1,20})\}|\([^()]{1,60}\))"
)
"""A variable that a loop makes longer, piece by piece."""
_RUN = re.compile(rf"(?:{_BEGINS}|\beval\s+[\"']?)\$\{{?(\w{{1,40}})\}}?{_ENDS}")


def computed_names(lines: Sequence[Line], text: str) -> Iterator[int]:
    """The lines that run a program whose name is computed; `text` is the lines joined."""
    if "$" not in text:
        return
    computed: set[str] = set()
    if "+=" in text or "=$" in text or '="$' in text or "=`" in text:
        computed = {*_FILTERED.findall(text), *_GROWN.findall(text)}
    for number, line in lines:
        if "$" in line and (
            ((line.count("$") > 1) and _PIECES.search(line))
            or (computed and not computed.isdisjoint(_RUN.findall(line)))
        ):
            yield number
