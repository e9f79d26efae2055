"""Text that a command prints: formats, string literals of code, and arguments that may carry one."""

import re
from collections.abc import Iterator, Sequence

from tocsin.workload.signs.parameter_changes import unescaped
from tocsin.workload.signs.values import PIECE, UNKNOWN
from tocsin.workload.signs.word_values import LONGEST

__all__ = ["carries", "format_of", "formatted", "printf_output", "writes_text"]

_PLACE = re.compile(r"%[-+ 0-9]*[sdi]|%%")
_MOST_ROWS = 100
_FORM = re.compile(r"%[-+ #0-9.]*[a-zA-Z%]|\\.|[^\w\3\4-]")
_HEX = re.compile(r"0x[0-9a-fA-F]{1,8}")
_STRING = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'")
_MAKES_TEXT = re.compile(
    r"%c|\bchr\b|\bbytes\b|decode|fromhex|\bpack\b|\bjoin\b|revers|\[::|translate|replace|toupper|tolower|substr"
)
_CARRIES = re.compile(
    r"[\s+,;(){}\[\]|\\]|^[\w=+/]{16,}$|^(?=\w*[a-z])(?=\w*[A-Z])(?=\w*\d)[\w=+]{10,}$"
    r"|^[\"'](?![\w./=%:-]{0,24}[\"']$)[^$\"']{4,}[\"']$"
)
_TAKES_FORMAT = re.compile(r"-(?:printf|c|f|w|e|-format|-printf|-write-out)(?:=|$)|\+")


def format_of(name: str, arguments: Sequence[str]) -> str | None:
    """The output format that a harmless program gets, if it has letters of its own."""
    if name == "git" and "config" in arguments:
        return PIECE
    takes = False
    for word in arguments:
        if name == "date":  # the half of the day is also a domain
            word = word.replace("%P", "am").replace("%p", "am")
        if (
            takes
            or word[:1] == "+"
            or word.startswith(("--format=", "--printf=", "--write-out="))
            or (word[:2] in ("-f", "-w", "-c") and len(word) > 2)
        ):
            form = _FORM.sub(
                UNKNOWN,
                word.partition("=")[2 if word[:2] == "--" else 0]
                .strip("\"'+")
                .replace(".", "\3")
                .replace(":", "\4"),
            )
            if re.search(r"[A-Za-z\3]{3}", form):
                return form.replace("\3", ".").replace("\4", ":")
        takes = _TAKES_FORMAT.match(word) is not None
    return None


def writes_text(arguments: Sequence[str]) -> bool:
    """Whether a program gets text on the command line that it may print."""
    for word in arguments:
        if len(word) > 3 and word[0] in "'\"":
            code = word[1:-1]
            if _MAKES_TEXT.search(code):
                return True
            for found in _STRING.finditer(code):
                if len(re.sub(r"\W", "", _FORM.sub("", found[1] or found[2] or ""))) > 2:
                    return True
    return False


def formatted(form: str, texts: Sequence[str]) -> str:
    """Texts in a format, which is reused while there are more of them."""
    rest = iter(texts)
    count = sum(found[0] != "%%" for found in _PLACE.finditer(form))
    rows = min(_MOST_ROWS, -(-len(texts) // count) if count and texts else 1)
    return "".join(
        _PLACE.sub(lambda found: "%" if found[0] == "%%" else _as_number(next(rest, "")), form)
        for _ in range(rows)
    )[:LONGEST]


def _as_number(text: str) -> str:
    return str(int(text, 16)) if _HEX.fullmatch(text) else text


def carries(word: str) -> bool:
    """Whether an argument may carry text that is printed in another form: quoted, or not a word, number or path."""
    return word[:2] != "--" and _CARRIES.search(word) is not None


def printf_output(words: Sequence[str]) -> str:
    """The output of printf: the format is reused until all words are used up."""
    if not words:
        return ""
    form, *given = words
    form = unescaped(form)
    count = len(re.findall(r"%[sbdq]", form))
    if not count:
        return form
    rows = [given[first : first + count] for first in range(0, max(len(given), 1), count)]
    return "".join(_row(form, row) for row in rows)[:LONGEST]


def _row(form: str, row: Sequence[str]) -> str:
    left: Iterator[str] = iter(row)
    return re.sub(r"%[sbdq]", lambda _: unescaped(next(left, "")), form)
