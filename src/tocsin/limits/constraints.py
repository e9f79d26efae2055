"""Constraints on nodes: which nodes the features of `--constraint` allow."""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["ANY_NODE", "Constraint", "Suits", "constraint", "misplaced_count"]

Suits = Callable[[Collection[str] | None], bool]
"""Whether a node with these features is allowed; None if its features are unknown."""

_TOKEN = re.compile(r"[&|()\[\]]|[^&|()\[\]\s]+|\s+")
_NAME = re.compile(r"\w[\w.:/+-]*", re.ASCII)
_COUNTED = re.compile(r"(\w[\w.:/+-]*)\*(\d{1,9})", re.ASCII)
_LONGEST = 10_000
_DEEPEST = 100


@dataclass(frozen=True, slots=True)
class Constraint:
    alternatives: tuple[Suits, ...]
    """All nodes of a job satisfy the same one of these; with `[a|b]` there are several."""
    counts: tuple[tuple[Suits, int], ...] = ()
    """At least this many nodes satisfy each of these: `a*2`."""
    names: frozenset[str] = frozenset()
    text: str = ""

    @property
    def counted_apart(self) -> bool:
        """Whether a node counts for one of the numbers only: `[a*2&b*1]` takes three nodes."""
        return len(self.counts) > 1


def _any(_: Collection[str] | None) -> bool:
    return True


ANY_NODE = Constraint((_any,))


@lru_cache(maxsize=256)
def constraint(text: str) -> Constraint:
    """A form unknown here allows every node; what Slurm refuses is reported as a refused option."""
    if not text or len(text) > _LONGEST or text.count("(") > _DEEPEST:
        return ANY_NODE
    names = frozenset(_NAME.findall(re.sub(r"\*\d+", "", text)))
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if set("[],!\"'") & set(inner):
        return Constraint((_any,), names=names, text=text)
    if "*" in inner:
        terms = [_COUNTED.fullmatch(term) for term in inner.split("&")]
        known = [term for term in terms if term]
        if len(known) < len(terms) or (len(known) > 1 and inner == text):
            return Constraint((_any,), names=names, text=text)
        counts = tuple((_expression(term[1]), int(term[2])) for term in known)
        return Constraint((_any,), counts, names, text)
    choices = _choices(inner) if inner != text else [inner]
    return Constraint(tuple(_expression(choice) for choice in choices), names=names, text=text)


_OPERATOR = r"[&|](?![^(]*\))"
"""One that is not in parentheses."""


def misplaced_count(text: str) -> str | None:
    """What is wrong with the numbers of nodes in a constraint; compared with Slurm 22.05 and 26.05."""
    if re.search(r"\([^()]*\*", text):
        return "a number of nodes within parentheses; write it after them"
    brackets = re.findall(r"\[([^\[\]]*)\]", text)
    if len(brackets) > 1:
        return "more than one pair of brackets"
    for inner in brackets:
        operators = set(re.findall(_OPERATOR, inner))
        counted = [bool(re.search(r"\*\d+$", term)) for term in re.split(_OPERATOR, inner)]
        if "|" in operators and any(counted):
            return "a number of nodes next to | in brackets"
        if "&" in operators and not all(counted):
            return "& in brackets, which needs a number of nodes for each feature"
    return None


def _choices(text: str) -> list[str]:
    """The parts between bars outside parentheses."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _expression(text: str) -> Suits:
    """Slurm 22.05 reads `a|b&c` from left to right, in the manual & binds tighter; a node that either allows is allowed."""
    words = tuple(word for word in _TOKEN.findall(text) if not word.isspace())

    def suits(features: Collection[str] | None) -> bool:
        return features is None or any(_holds(words, features, closer=closer) for closer in (False, True))

    return suits


def _holds(words: tuple[str, ...], features: Collection[str], *, closer: bool) -> bool:
    return _sum(iter([*words, ")"]), features, closer)


def _sum(words: Iterator[str], features: Collection[str], closer: bool) -> bool:
    """Up to the closing parenthesis. `closer`: & binds tighter than |."""
    done, current, operator = False, True, "&"
    for word in words:
        if word == ")":
            break
        if word in "&|":
            operator = word
            if closer and word == "|":
                done, current, operator = done or current, True, "&"
            continue
        value = _sum(words, features, closer) if word == "(" else word in features
        current = current and value if operator == "&" else current or value
    return done or current
