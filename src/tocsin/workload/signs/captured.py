"""The lines of a shell script whose output does not go to people, because of the block that they are in.

`{ … } | sh`, `done > run.sh`, `x=$( … )`, `exec > run.sh`: what such lines print may be run. Every function's body is
one, because any call may capture its output.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

__all__ = ["captured_lines"]

_ARITHMETIC = r"\$?\(\((?>(?:[^()`\"']|\((?>(?:[^()`\"']|\([^()`\"']*+\))*)\))*)\)\)"
_TOKEN = re.compile(
    r"(?P<skip>[ \t\r]++|\\\n|(?<![^\s;&|()])(?<!\\\n)\#[^\n]*+)|(?P<line>\n)|\\."
    r"|(?P<quoted>\$'(?:[^'\\]|\\.)*+'|'[^']*+')|(?P<quote>\$?\")|(?P<tick>`)"
    r"|(?P<here>(?<!<)<<(?![<(])-?[ \t]*(?:\\?(?P<a>[\w.!-]{1,60})|\"(?P<b>[^\"\n]{1,60})\"|'(?P<c>[^'\n]{1,60})'))|<<<"
    rf"|{_ARITHMETIC}"
    r"|(?P<function>\([ \t]*\))|(?P<open>\$\(|[<>]\(|\(|\$\{)|(?P<close>\))"
    r"|(?P<flow>\|&|\|(?!\|)|&>>?|\d*>>?[|&]?)|(?P<end>;;&?|;&|;|&&|\|\||&)"
    r"|(?P<word>[^\s\\\"'`$();&|<>]++)|.",
    re.DOTALL,
)
_IN_QUOTES = re.compile(
    rf"(?P<skip>(?:[^\"\\`$]|\\.)++|{_ARITHMETIC})|(?P<quote>\")|(?P<tick>`)|(?P<open>\$\(|\$\{{)|(?P<skipped>.)",
    re.DOTALL,
)
_IN_BRACES = re.compile(
    r"(?P<skip>(?:[^\"'\\`$}<>]|\\.)++)|(?P<quoted>'[^']*+')|(?P<quote>\")|(?P<tick>`)|(?P<open>\$\(|\$\{|[<>]\()"
    r"|(?P<brace>\})|(?P<skipped>[$<>])",
    re.DOTALL,
)
_IN = {'"': _IN_QUOTES, "}$": _IN_BRACES}
_HARMLESS = re.compile(r"(?:\d*|&)>>?\s*(?:&\s*[12]\b|&-|/dev/(?:null|stderr|stdout|tty)(?=[\s;|&)]|$))")
_LOG = re.compile(r"(?:1|&)?>>?\s*[^\s;|&<>`()]{1,200}\.log[\"']?(?=\s|$)")
_OPENS = {
    "{": "}", "if": "fi", "while": "done", "until": "done", "for": "done", "select": "done", "case": "esac"
}  # fmt: skip
_CLOSES = frozenset(_OPENS.values())
_GOES_ON = frozenset({"do", "then", "else", "elif", "!", "time"})
_SYNTAX = re.compile(
    r"(?:^|;)[ \t]*(?:export[ \t]+)?\w{1,99}\+?=(?:[{}](?=[\s;]|$)|\"(?=[^\"\n$`]{0,300}[;&|'()<]|[{}]|(?:if|fi|do|done|case|esac|for|while|until)\b)"
    r"|'(?=[^'\n]{0,300}[;&|\"()<]|[{}]|(?:if|fi|do|done|case|esac|for|while|until)\b)|(?:if|fi|do|done|case|esac|for|while|until)\b)",
    re.MULTILINE,
)
"""A value that would be part of a block if its variable were replaced textually, which a shell does not do."""
_DEEPEST = 100
_EDGES = frozenset(" \t\r\n;&|()<>`")


def captured_lines(lines: Sequence[str]) -> frozenset[int] | None:
    """Their indices; None if it is unclear where the script's blocks end, so that any line may be captured."""
    try:
        spans = _Reader(lines).spans()
    except _UnclearError:
        return None
    steps = [0] * (len(lines) + 1)
    for first, last in spans:
        steps[first] += 1
        steps[last + 1] -= 1
    return frozenset(place for place, depth in enumerate(accumulate(steps)) if depth)


class _UnclearError(Exception):
    """A block, a quoted text or a here-document has no end, or an ambiguous one."""


@dataclass(slots=True)
class _Block:
    closes: str
    line: int
    function: bool = False
    substituted: bool = False
    array: bool = False
    arithmetic: bool = False
    """It may be arithmetic; otherwise it begins with a block."""
    several: bool = False
    """It has more than one command."""
    patterns: bool = False
    """Patterns of a `case` come next, no commands."""


class _Reader:
    """One pass over a script, token by token, with the open blocks."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.text = "\n".join(lines)
        self.blocks: list[_Block] = []
        self.found: list[tuple[int, int]] = []
        self.line = 0
        self.first = 0
        """Where the current command or block begins."""
        self.block = False
        """The current command is a block."""
        self.start = True
        """A command begins here, so that a reserved word counts as one."""
        self.named = self.function = False
        """A function's name comes next, or its body."""
        self.exec = -1
        """The end of an `exec` without a command so far."""
        self.ends: list[str] = []
        self.ended: Counter[str] = Counter()

    @property
    def top(self) -> _Block | None:
        return self.blocks[-1] if self.blocks else None

    def spans(self) -> list[tuple[int, int]]:
        """First and last line of each captured stretch."""
        text, place = self.text, 0
        if text.count("\n") >= len(self.lines) or _SYNTAX.search(text):
            raise _UnclearError
        while place < len(text):
            token = (_IN.get(self.blocks[-1].closes, _TOKEN) if self.blocks else _TOKEN).match(text, place)
            if token is None:
                raise _UnclearError
            place = token.end()
            if token.lastgroup == "line":
                place = self._next_line(place)
                continue
            line = self.line
            self.line += token[0].count("\n")
            if token.lastgroup not in ("skip", "skipped"):
                self._take(token, line)
        counts = Counter(self.lines)
        if self.blocks or self.ends or any(counts[word] > times for word, times in self.ended.items()):
            raise _UnclearError
        return self.found

    def _take(self, token: re.Match[str], line: int) -> None:
        top = self.top
        match token.lastgroup:
            case "quote" if top and top.closes == '"':
                self.blocks.pop()
            case "quote":
                self.blocks.append(_Block('"', line))
                self.start = False
            case "tick" if top and top.closes == "`":
                self._close("`")
            case "tick":
                self._open("`", line, substituted=True)
            case "quoted":
                if top and top.closes == "}$" and ("}" in token[0] or '"' in token[0]) and self._in_quotes():
                    raise _UnclearError  # there, single quotes are ordinary characters
                self.start = False
            case "brace":
                self._close("}$")
            case "here":
                if any(block.arithmetic for block in self.blocks):
                    raise _UnclearError
                self.ends.append(token["a"] or token["b"] or token["c"])
            case "function":
                if not self._after_equals(token):
                    self.function = self.start = True
            case "open":
                self._opened(token, line)
            case "close" if top and top.patterns:
                top.patterns, self.start = False, True
            case "close":
                self._close(")")
            case "flow" if not (top and top.patterns):
                self._flow(token)
            case "end":
                self._next_command()
                if top and top.closes == "esac" and len(token[0]) > 1 and ";" in token[0]:
                    top.patterns = True
            case "word":
                self._word(token, line)
            case _:
                if token[0] == "'":
                    raise _UnclearError
                self.start = False

    def _in_quotes(self) -> bool:
        return any(block.closes == '"' for block in self.blocks)

    def _after_equals(self, token: re.Match[str]) -> bool:
        return self.text[token.start() - 1 : token.start()] == "="

    def _next_line(self, place: int) -> int:
        """Continue after the here-documents that begin here, if any."""
        self.line += 1
        for word in self.ends:
            while self.line < len(self.lines) and self.lines[self.line] != word:
                place += len(self.lines[self.line]) + 1
                self.line += 1
            if self.line == len(self.lines):
                raise _UnclearError
            place += len(word) + 1
            self.line += 1
            self.ended[word] += 1
        self.ends = []
        if not (self.top and self.top.array):
            self._next_command()
        return place

    def _next_command(self) -> None:
        if self.blocks:
            self.blocks[-1].several = True
        self.start, self.block, self.exec, self.first = True, False, -1, self.line

    def _opened(self, token: re.Match[str], line: int) -> None:
        if token[0] == "${":
            self._open("}$", line)
        elif token[0] != "(":
            self._open(")", line, substituted=True)
        elif not (self.top and self.top.patterns):
            self._open(")", line, array=self._after_equals(token))
        if self.blocks and self.text[token.end() : token.end() + 1] == "(":
            self.blocks[-1].arithmetic = True

    def _open(self, closes: str, line: int, *, substituted: bool = False, array: bool = False) -> None:
        if len(self.blocks) >= _DEEPEST:
            raise _UnclearError
        function = self.function and not substituted and closes != "}$"
        self.blocks.append(_Block(closes, min(line, self.first), function, substituted, array))
        self.function = self.function and not function
        self.start = not array and closes != "}$"
        self.first, self.block = line, False

    def _close(self, closes: str) -> None:
        if not self.blocks or self.blocks[-1].closes != closes:
            raise _UnclearError
        block = self.blocks.pop()
        if block.function or (block.substituted and block.several):
            self.found.append((block.line, self.line))
        if self.blocks and block.several:
            self.blocks[-1].several = True
        self.first = block.line
        self.block = self.block or not (block.substituted or block.array or closes == "}$")
        self.start = closes in _CLOSES

    def _flow(self, token: re.Match[str]) -> None:
        """Handle output into a pipe or a file."""
        harmless = _HARMLESS.match(self.text, token.start())
        if not harmless and self.exec >= 0 and not self.text[self.exec : token.start()].strip():
            if _LOG.match(self.text, token.start()) and self.text.count(".log") == 1:
                return  # the script never names it again
            if any(block.function for block in self.blocks):
                raise _UnclearError
            first = self.blocks[0].line if self.blocks else self.line
            self.found.append((first, len(self.lines) - 1))
        elif not harmless and (self.block or self.first < self.line):
            self.found.append((self.first, self.line))
        if harmless and self.exec >= 0:
            self.exec = harmless.end()
        self.start = token[0][0] == "|"

    def _word(self, token: re.Match[str], line: int) -> None:
        word, top = token[0], self.top
        started, self.start = self.start and self._is_whole(token), self.named
        self.named = False
        if not started or (top and (top.array or (top.patterns and word != "esac"))):
            return
        if word == "coproc":
            raise _UnclearError
        if word == "function":
            self.named = self.function = True
        elif word in _OPENS:
            self._open(_OPENS[word], line)
            self.blocks[-1].patterns = word == "case"
            self.start = word not in ("for", "select", "case")
        elif word in _CLOSES:
            self._close(word)
        elif word in _GOES_ON:
            self.start = True
        elif word == "exec":
            self.exec = token.end()

    def _is_whole(self, token: re.Match[str]) -> bool:
        """Whether no quoted text or variable is part of the word."""
        first, after = token.span()
        return (not first or self.text[first - 1] in _EDGES) and (
            after == len(self.text) or self.text[after] in _EDGES
        )
