"""The simple commands of a whole shell script, with their words, redirections and here-documents.

One pass over the text. Nothing is expanded: a word is as written, with its quotes and substitutions. What is invalid in
any shell (a quote without an end) is read as an ordinary character, and reported.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from tocsin.workload.signs.brackets import UnclearError, inner_end
from tocsin.workload.signs.command_reader import CommandReader, Statement

__all__ = ["Statement", "Statements", "statements"]


class Statements(NamedTuple):
    found: list[Statement]
    unclear: int | None
    """The line of a quote or a bracket without an end."""


_BLANKS = re.compile(r"(?:[ \t\r]|\\\n)+")
_OPERATOR = re.compile(r"\|&|&&|\|\||;;&?|;&|[;|()]|&(?!>)")
_REDIRECTION = re.compile(r"(?:\d{1,3}|\{\w{1,40}\})?(?:<<<|<<-?|>>|>\||>&|<&|<>|>(?!\()|<(?!\())|&>>?")
_ARRAY = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=$")
_SYNTAX = frozenset(
    "then do else { } fi done esac case if elif while until ! time for select function".split()  # noqa: SIM905
)
_PLAIN_LINE = re.compile(
    r"[ \t]*((?:[\w./@%+,:^~=-]++|\$(?=\w))+(?:[ \t]++(?:[\w./@%+,:^~=-]++|\$(?=\w))+)*)[ \t\r]*(?:\n|\Z)"
)
"""One command without anything special to a shell, except for variables."""
_SKIPPED = re.compile(r"(?:[ \t\r]*(?:#[^\n]*)?\n)+")
"""Empty lines and comments."""
_WORD = re.compile(
    r"[ \t]*((?>(?:[^\s\\'\"$`;&|<>()#]++|\$\w|\$\{\w+\}|'[^'\n]*'|\"(?:[^\"\\$`\n]++|\$\w|\$\{\w+\})*\")+))(?=[ \t\r\n;]|\Z)"
)
"""Most words: letters, variables and simple quotes."""
_SHORT = 1000


def statements(text: str) -> Statements:
    """Every simple command in order, including those of loops, functions and subshells."""
    return _short(text) if len(text) <= _SHORT else _long(text)


@lru_cache(maxsize=4096)  # most substitutions are a few words that many scripts have
def _short(text: str) -> Statements:
    return _Walk(text).run()


@lru_cache(maxsize=8)  # a file that a script writes may be run by several of its commands
def _long(text: str) -> Statements:
    return _Walk(text).run()


class _Walk(CommandReader):
    def run(self) -> Statements:
        text, place, last = self.text, 0, len(self.text)
        fresh = True
        while place < last and self.left > 0:
            begins = fresh and not (self.words or self.redirections or self.piped)
            if begins and (after := self._plain_line(place)):
                place = after
                continue
            letter = text[place]
            fresh = letter == "\n"
            if fresh:
                self.end()
                place = self._documents(place + 1) if self.waiting else place + 1
            elif found := _WORD.match(text, place):
                self._begin(found.start(1))
                place = self._take(found[1], found.end())
            elif found := _BLANKS.match(text, place):
                place = found.end()
            elif letter == "#":
                place = text.find("\n", place)
                if place < 0:
                    break
            elif found := _REDIRECTION.match(text, place):
                self._begin(place)
                place = self._redirect(found)
            elif found := _OPERATOR.match(text, place):
                place = self._operate(found[0], found.end())
            else:
                self._begin(place)
                place = self._other_word(place)
        self.end()
        return Statements(self.found, self.unclear)

    def _plain_line(self, place: int) -> int:
        """Skip empty lines and comments, or take a line that is one plain command; returns the position after it, or 0."""
        if found := _SKIPPED.match(self.text, place):
            return found.end()
        found = _PLAIN_LINE.match(self.text, place)
        if not found or (self.open and self.open[-1] == "case"):
            return 0
        words = found[1].split()
        if words[0] in _SYNTAX:
            return 0
        plain = "$" not in found[1] and ":" not in found[1]
        self.found.append(Statement(self.line(place), words, [], False, False, plain))
        return found.end()

    def _begin(self, place: int) -> None:
        """Note the line of a command that begins here."""
        if not self.words and not self.redirections:
            self.start = self.line(place)

    def _operate(self, operator: str, place: int) -> int:
        """End a command, or begin or end a group of them; returns the position to continue at."""
        if operator in ("|", "|&"):
            self.end(pipes=True)
        elif operator == "(":
            return self._opened(place)
        elif operator == ")":
            self._closed()
        else:
            self.end()
            self.piped = False
        return place

    def _other_word(self, begin: int) -> int:
        """Take a word with quotes, substitutions or brackets; returns the position after it."""
        text = self.text
        place = self._word(begin)
        word = text[begin:place]
        if text[place : place + 1] == "(" and _ARRAY.search(word):
            try:
                place = inner_end(text, place + 1, ")")
                word = text[begin:place]
            except UnclearError:
                self._is_unclear(place)
        return self._take(word, place)
