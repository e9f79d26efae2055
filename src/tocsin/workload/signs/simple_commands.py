"""The simple commands of one line of a shell script, with quoted text as one word."""

import re
from typing import NamedTuple

__all__ = ["CLOSES", "PREFIXES", "Command", "open_after", "simple_commands", "unquoted"]

PREFIXES = frozenset("if then else elif do while until ! { ( time sudo command exec builtin && ||".split())  # noqa: SIM905
_TOKEN = re.compile(
    r"(?P<quoted>\$'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\"|'[^']*+')|(?P<end>\|\|?|&&|;;?|(?<![<>])&(?!>))"
    r"|(?P<comment>(?<!\S)\#.*)|(?P<open>[\"'])|(?P<rest>\\.|[^\"'\\|&;#\s$]++|.)",
    re.DOTALL,
)
CLOSES = {'"': re.compile(r"(?:[^\"\\]|\\.)*+\""), "'": re.compile(r"[^']*+'")}


def open_after(line: str, mark: str) -> str | None:
    """The quote that is open at the end of a line that begins inside a quoted text."""
    end = CLOSES[mark].match(line)
    return mark if end is None else simple_commands(line[end.end() :])[-1].open


class Command(NamedTuple):
    """One command of a line, with the operator that ends it."""

    text: str
    head: str
    open: str | None = None
    """The quote that is left open in it."""


def simple_commands(line: str) -> list[Command]:
    """The commands of a line without its comment; quoted text is one word, so a `;` in it ends nothing."""
    found: list[Command] = []
    first, last = 0, len(line)
    unclosed = None
    for token in _TOKEN.finditer(line):
        if token.lastgroup == "open":
            unclosed = token[0]
            break
        if token.lastgroup == "comment":
            last = token.start()
            break
        if token.lastgroup == "end":
            found.append(_command(line[first : token.end()]))
            first = token.end()
    found.append(_command(line[first:last])._replace(open=unclosed))
    return found


def _command(text: str) -> Command:
    head = next((word for word in text.split(maxsplit=6)[:6] if word not in PREFIXES), "")
    return Command(text, head.removeprefix("/usr").removeprefix("/bin/"))


def unquoted(text: str) -> str:
    return "".join(token[0] for token in _TOKEN.finditer(text) if token.lastgroup != "quoted")
