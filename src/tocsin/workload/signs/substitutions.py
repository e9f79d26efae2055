"""The commands that a shell runs while it expands a word: substitutions, also in quotes, defaults and arithmetic."""

from collections.abc import Iterator

from tocsin.workload.signs.statements import Statement
from tocsin.workload.signs.values import Value
from tocsin.workload.signs.word_parts import Kind, word_parts

__all__ = ["substituted_commands"]

_DEEPEST = 8


def substituted_commands(statement: Statement) -> Iterator[str]:
    """The text of each command in a statement's words, targets and here-documents."""
    for word in statement.words:
        if "(" in word or "`" in word:
            yield from _commands(word, 0, quoted=False)
    for operator, target in statement.redirections:
        if operator != "<<'" and ("(" in target or "`" in target):
            yield from _commands(target, 0, quoted=operator == "<<")


def _commands(word: str, depth: int, *, quoted: bool) -> Iterator[str]:
    if not ("$(" in word or "`" in word or "<(" in word or ">(" in word):
        return
    for part in word_parts(word, quoted=quoted):
        if isinstance(part, Value):
            continue
        if (
            part.kind in (Kind.COMMAND, Kind.SINK) or depth > _DEEPEST
        ):  # deeper ones are left to the bounds of the walk
            yield part.text
        elif part.kind is not Kind.VARIABLE:
            yield from _commands(part.text, depth + 1, quoted=part.kind is Kind.QUOTED)
