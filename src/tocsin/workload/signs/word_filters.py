"""Filters that only select words of their input: each word of the output is in the text as written."""

import re
from collections.abc import Sequence

__all__ = ["keeps_words"]

_LINES = frozenset("head tail sort uniq tac comm column shuf expand fmt".split())  # noqa: SIM905
"""Programs that select whole lines, or reorder them."""
_CUTS = {
    "head": ("-c", "--b"),
    "tail": ("-c", "--b"),
    "column": ("-o", "--output-s"),
    "tac": ("-s", "--s"),
    "comm": ("--o",),
}
"""Options with which they cut lines, or join their words by any text."""
_PUTS_BETWEEN = ("--output-d", "OFS", "ORS")
"""What sets the text between two words of the output."""
_SEPARATOR = re.compile(
    r"(?:-d|-F|--delimiter=|--field-separator=)?[\"']?(?:\\?[^\w.]|_|\\_|\\t|\[:\]|\[[ \t,;:/_=-]+\]\+?|[^\w.]\|[^\w.])[\"']?$"
)
"""A character that is not a letter, digit or dot: what is between two of them is a word."""
_CONDITION = r"(?:!?/[^/]*/|(?:NR|NF|\$\w+)\s*[=!<>~]+\s*[\w.$\"'{}/+-]+)"
_FIELDS = r"print(?:\s*\\?\$(?:\w+|\(NF(?:-\d+)?\))(?:\s*,\s*\\?\$\w+)*)?\s*;?\s*(?:exit)?;?"
_PRINTS_FIELDS = re.compile(
    rf"[\"'{{]{{0,2}}\s*(?:{_CONDITION}(?:\s*(?:&&|\|\|)\s*{_CONDITION}){{0,3}})?\s*(?:\{{?[\"']?\s*{_FIELDS}\s*[\"']?\}})?\s*[\"']?$"
)
_CHOOSES_LINES = re.compile(
    r"[\"']?(?:\$?[\w{}\0-\2\"']+|\$)(?:,(?:[\w$+{}\0-\2\"']+|\$))?(?:[pdq]|q;d)[\"']?$|[\"']?/[^/]*/[pd][\"']?$"
)
_CASE = re.compile(r"(?:[\"']?(?:\[:(?:upper|lower):\]|[aA]-[zZ])[\"']?)$")
_BLANKS = re.compile(r"[\"']?(?:\\n|\\t| |\\012|,|;|:|\||\[:(?:space|blank):\])+[\"']?$")
_TO_BLANK = re.compile(r"[\"']?s([/|,#])(?:[^\w.\\\[*]|_|\\t|\\s\+?|\[[,;: ]+\])+\1 +\1g?[\"']?$")


def keeps_words(name: str, arguments: Sequence[str]) -> bool:
    """Whether each word that a program prints is one that it read."""
    if name in _LINES:
        return not any(word.startswith(_CUTS.get(name, ())) for word in arguments)
    if any(mark in word for word in arguments for mark in _PUTS_BETWEEN):
        return False
    options = [word for word in arguments if word[:1] == "-"]
    if name == "cut":
        return any(word[:2] == "-f" or "fields" in word for word in options) and _separates(arguments, "-d")
    if name.endswith("awk"):
        program = next((word for word in arguments if word[:1] in "\"'{/$"), "")
        return bool(program) and _PRINTS_FIELDS.match(program) is not None and _separates(arguments, "-F")
    words = [word for word in arguments if word[:1] != "-"]
    if name == "sed":
        return bool(words) and (_CHOOSES_LINES.match(words[0]) or _TO_BLANK.match(words[0])) is not None
    if name == "tr":
        if options in (["-s"], []) and len(words) == 2:
            return all(map(_CASE.match, words)) or all(map(_BLANKS.match, words))
        return options == ["-s"] and all(map(_BLANKS.match, words))
    return False


def _separates(arguments: Sequence[str], option: str) -> bool:
    """Whether words are separated by a character that cannot be part of one."""
    for place, word in enumerate(arguments):
        if word == option:
            return place + 1 < len(arguments) and _SEPARATOR.match(arguments[place + 1]) is not None
        if word.startswith((option, "--delimiter", "--field-separator")):
            return _SEPARATOR.match(word) is not None
    return True
