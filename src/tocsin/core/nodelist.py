"""Slurm's node lists: parse, count and fold them within bounds.

ClusterShell resolves `@group` through a shell, so a job's own `-w` could run a command; here it is an error.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import product
from math import prod

from tocsin.core.errors import NodeListError

__all__ = ["MOST_NODES", "count_nodes", "expand_nodes", "fold_nodes"]

MOST_NODES = 100_000
MOST_TEXT = 1_000_000

_PLAIN = re.compile(r"[A-Za-z0-9._-]*", re.ASCII)
_SPAN = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)

Span = tuple[int, int, int]  # first, last, width with leading zeros
Piece = str | list[Span]


def count_nodes(text: str) -> int:
    """The number of nodes in a list (repeats included), by arithmetic alone.

    >>> count_nodes("n[0-9999999]")
    10000000
    """
    return sum(prod(_size(p) for p in pieces) for pieces in _entries(text))


def expand_nodes(text: str, *, most: int = MOST_NODES) -> list[str]:
    """The names of the nodes, in the order of the list.

    >>> expand_nodes("cpn-f13-[01-02],gpu7")
    ['cpn-f13-01', 'cpn-f13-02', 'gpu7']
    """
    number = count_nodes(text)
    if number > most:
        raise NodeListError(f'the node list "{_short(text)}" names {number} nodes; the limit is {most}')
    names: list[str] = []
    for pieces in _entries(text):
        names.extend("".join(parts) for parts in product(*(_names(piece) for piece in pieces)))
    return names


def fold_nodes(names: Iterable[str]) -> str:
    """The short form of a set of nodes: the last number of each name becomes a range.

    >>> fold_nodes(["n2", "n1", "n3", "gpu07", "login"])
    'gpu07,login,n[1-3]'
    """
    split = {name: re.fullmatch(r"(.*?)(\d{1,9})(\D*)", name, re.ASCII) for name in names}
    numbered = [(found[1], found[2], found[3]) for found in split.values() if found]
    padded = {
        (head, tail, len(digits)) for head, digits, tail in numbered if digits[0] == "0" and len(digits) > 1
    }
    groups: dict[tuple[str, int, str], set[int]] = {}
    for head, digits, tail in numbered:
        width = len(digits) if (head, tail, len(digits)) in padded else 0
        groups.setdefault((head, width, tail), set()).add(int(digits))
    folded = [name for name, found in split.items() if not found]
    for (head, width, tail), numbers in groups.items():
        spans = [
            f"{first:0{width}d}" if first == last else f"{first:0{width}d}-{last:0{width}d}"
            for first, last in _runs(sorted(numbers), width)
        ]
        inner = spans[0] if len(spans) == 1 and "-" not in spans[0] else f"[{','.join(spans)}]"
        folded.append(f"{head}{inner}{tail}")
    return ",".join(sorted(folded))


def _runs(numbers: list[int], width: int) -> Iterator[tuple[int, int]]:
    """Runs of consecutive numbers; a run never has more digits than its zero-padded width."""
    first = last = numbers[0]
    for number in numbers[1:]:
        if number == last + 1 and not (width and len(str(number)) > width):
            last = number
        else:
            yield first, last
            first = last = number
    yield first, last


def _entries(text: str) -> Iterator[list[Piece]]:
    """Each comma-separated entry as literal pieces and bracketed spans."""
    if len(text) > MOST_TEXT:
        raise NodeListError(f"the node list has {len(text)} characters; the limit is {MOST_TEXT}")
    position, text = 0, text.strip()
    if not text:
        return
    while position <= len(text):
        pieces: list[Piece] = []
        while position < len(text) and text[position] != ",":
            if text[position] == "[":
                end = text.find("]", position)
                if end < 0:
                    raise NodeListError(f'the node list "{_short(text)}" has an unclosed bracket')
                pieces.append(_spans(text[position + 1 : end], text))
                position = end + 1
            else:
                end = _PLAIN.match(text, position).end()  # type: ignore[union-attr]  # it matches the empty text
                if end == position:
                    raise NodeListError(
                        f'"{text[position]}" in the node list "{_short(text)}" is not allowed; '
                        "names have letters, digits, dots, dashes and [ranges]"
                    )
                pieces.append(text[position:end])
                position = end
        if not pieces:
            raise NodeListError(f'an entry of the node list "{_short(text)}" is empty')
        yield pieces
        position += 1


def _spans(inner: str, text: str) -> list[Span]:
    spans = []
    for item in inner.split(","):
        found = _SPAN.fullmatch(item)
        if not found:
            raise NodeListError(
                f'"{_short(item)}" in the node list "{_short(text)}" is not a number or range'
            )
        first, last = int(found[1]), int(found[2] or found[1])
        if last < first:
            raise NodeListError(f'the range "{item}" in the node list "{_short(text)}" is reversed')
        spans.append((first, last, len(found[1]) if found[1].startswith("0") else 0))
    return spans


def _size(piece: Piece) -> int:
    return 1 if isinstance(piece, str) else sum(last - first + 1 for first, last, _ in piece)


def _names(piece: Piece) -> list[str]:
    if isinstance(piece, str):
        return [piece]
    return [f"{number:0{width}d}" for first, last, width in piece for number in range(first, last + 1)]


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
