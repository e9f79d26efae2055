"""The parts of a shell's word: text, variables, expansions and substitutions."""

import re
from collections.abc import Sequence
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple

from tocsin.workload.signs.brackets import UnclearError, inner_end
from tocsin.workload.signs.values import COMPUTED, OWN, PIECE, WRITTEN, Value

__all__ = ["ESCAPES", "Kind", "Part", "word_parts"]


class Kind(Enum):
    VARIABLE = auto()
    BRACED = auto()
    COMMAND = auto()
    QUOTED = auto()
    ARITHMETIC = auto()
    HISTORY = auto()
    SINK = auto()
    """Commands that read what is written there."""


class Part(NamedTuple):
    """A part whose value depends on the script's variables and files."""

    kind: Kind
    text: str
    """The variable's name, or what is inside the braces, brackets or quotes."""


_PART = re.compile(
    r"(?P<plain>[^\\'\"$`{<>!]+)|(?P<history>!(?:[$!^*:#?-]|\w))|\\(?P<escaped>.?)|'(?P<single>[^']*)'|\$'(?P<ansi>(?:[^'\\]|\\.)*)'"
    r"|\$\((?P<arithmetic>\()|(?P<opens>\$\(|[<>]\(|\$\{|\$?\")|`(?P<tick>(?:[^`\\]|\\.)*)`|\$(?P<name>\w+|[@*#?$!-])"
    r"|\{(?P<braces>[^{}\s]*(?:,|\.\.)[^{}\s]*)\}|(?P<other>.)",
    re.DOTALL,
)
_IN_DOUBLE = re.compile(
    r"(?P<plain>[^\\$`]+)|\\(?P<escaped>.?)|\$\((?P<arithmetic>\()|(?P<opens>\$\(|\$\{)|`(?P<tick>(?:[^`\\]|\\.)*)`"
    r"|\$(?P<name>\w+|[@*#?$!-])|(?P<other>.)",
    re.DOTALL,
)
ESCAPES = re.compile("\\\\(?:x[0-9a-fA-F]|[0-7]{2}|[uU][0-9a-fA-F]|\0|\1)")
_SHORT = 200
_CLOSES = {"(": (")", Kind.COMMAND), "{": ("}", Kind.BRACED)}


def word_parts(word: str, *, quoted: bool) -> Sequence[Value | Part]:
    """The parts of a word, or of text in double quotes; what does not depend on the script is a value."""
    return _of_short(word, quoted) if len(word) <= _SHORT else _of_long(word, quoted)


@lru_cache(maxsize=8192)  # most words are expanded several times, and occur in many scripts
def _of_short(word: str, quoted: bool) -> Sequence[Value | Part]:
    return _parts(word, quoted=quoted)


@lru_cache(maxsize=8)  # so are documents
def _of_long(word: str, quoted: bool) -> Sequence[Value | Part]:
    return _parts(word, quoted=quoted)


def _parts(word: str, *, quoted: bool) -> Sequence[Value | Part]:
    pattern = _IN_DOUBLE if quoted else _PART
    parts: list[Value | Part] = []
    place, last = 0, len(word)
    while place < last and (found := pattern.match(word, place)):
        place = found.end()
        match found.lastgroup:
            case "plain" | "other":
                parts.append(Value(found[0], WRITTEN))
            case "escaped":
                letter = found["escaped"]
                text = found[0] if quoted and letter not in '\\"$`\n' else letter
                parts.append(Value(text if letter != "\n" else "", WRITTEN))
            case "single":
                parts.append(Value(found["single"], WRITTEN))
            case "ansi":
                text = found["ansi"]
                parts.append(Value(PIECE, COMPUTED) if ESCAPES.search(text) else Value(text, WRITTEN))
            case "name":
                parts.append(Part(Kind.VARIABLE, found["name"]))
            case "tick":
                parts.append(Part(Kind.COMMAND, found["tick"].replace("\\`", "`")))
            case "braces":
                inside = found["braces"]
                parts.append(Value(inside.replace(",", PIECE) if "," in inside else PIECE, OWN))
            case "history":
                parts.append(Part(Kind.HISTORY, found[0]))
            case "arithmetic":
                ends = _inner(word, found.end(), ")")
                if ends > last or word[ends : ends + 1] == ")":
                    place = ends + 1
                    parts.append(Part(Kind.ARITHMETIC, word[found.end() : ends - 1]))
                else:  # a subshell in a substitution
                    place = _inner(word, found.end() - 1, ")")
                    parts.append(Part(Kind.COMMAND, word[found.end() - 1 : place - 1]))
            case _:
                part, place = _opened(word, found)
                parts.append(part)
    return parts


def _opened(word: str, found: re.Match[str]) -> tuple[Value | Part, int]:
    """The part that begins with a bracket, a brace or a quote, and the position after it."""
    opens = found["opens"]
    closes, kind = _CLOSES.get(opens[-1], ('"', Kind.QUOTED))
    place = _inner(word, found.end(), closes)
    return Part(kind if opens != ">(" else Kind.SINK, word[found.end() : place - 1]), place


def _inner(word: str, place: int, closes: str) -> int:
    try:
        return inner_end(word, place, closes)
    except UnclearError:
        return len(word) + 1
