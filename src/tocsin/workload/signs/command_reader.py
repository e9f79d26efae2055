"""What a shell script's commands are made of: words, tests, brackets, redirections and here-documents."""

import re
from typing import NamedTuple

from tocsin.workload.signs.brackets import UnclearError, inner_end, part_end

__all__ = ["CommandReader", "Statement"]


class Statement(NamedTuple):
    """One simple command."""

    line: int
    words: list[str]
    redirections: list[tuple[str, str]]
    """Operator and target; for a here-document, `<<` and its text."""
    piped: bool
    """It reads the output of the previous one."""
    pipes: bool
    """The next one reads its output."""
    plain: bool = False
    """Its words contain nothing special to a shell."""


_PLAIN = re.compile(r"[^\s\\'\"$`;&|<>()#]+|#")
_BEFORE = frozenset("for if elif while until ! time do then else {".split())  # noqa: SIM905
_EMPTY = re.compile(r"[ \t]*\)")
_IN_TEST = re.compile(r"[ \t\n]\]\](?=[\s;&|)]|\Z)|[^\s\\'\"$`]+|\s|\\.", re.DOTALL)
_DESCRIPTOR = re.compile(r"[\"']?(?:\d|-|\$)")
_SUBSTITUTES = re.compile(r"[$<>]\(|`|\$\{\w+:?=|=~")
_SPECIAL_WORDS = frozenset("[[ in esac then do else {".split())  # noqa: SIM905
_MOST_UNCLEAR = 20
"""With more, it is not a shell script; each costs a scan of everything that follows."""
_LONGEST_TEST = 4096


class CommandReader:
    """The command that is being read, and those before it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: list[Statement] = []
        self.words: list[str] = []
        self.redirections: list[tuple[str, str]] = []
        self.waiting: list[tuple[int, str, bool]] = []
        """Here-documents that begin after this line: index of the redirection, end word, and whether by <<-."""
        self.piped = False
        self.unclear: int | None = None
        self.left = _MOST_UNCLEAR
        self.open: list[str] = []
        """The open brackets and `case`s."""
        self.counted, self.number = 0, 1
        self.start = 1
        """The line where the current command begins."""

    def line(self, place: int) -> int:
        self.number += self.text.count("\n", self.counted, place)
        self.counted = place
        return self.number

    def end(self, *, pipes: bool = False) -> None:
        if self.words or self.redirections:
            self.found.append(Statement(self.start, self.words, self.redirections, self.piped, pipes))
            self.words, self.redirections = [], []
            self.piped = pipes
        elif pipes:
            self.piped = True

    def _take(self, word: str, place: int) -> int:
        """Add a word to the current command; returns the position to continue at."""
        self.words.append(word)
        if word not in _SPECIAL_WORDS:
            return place
        if word == "in":
            if len(self.words) > 2 and self.words[-3] == "case" and self._begins(self.words[:-3]):
                self.open.append("case")
                self.end()
        elif not self._begins(self.words[:-1]):
            pass
        elif word == "[[":
            return self._test(place)
        elif word == "esac":
            if self.open and self.open[-1] == "case":
                self.open.pop()
        elif len(self.words) == 1:  # a command begins after it
            self.words = []
        return place

    @staticmethod
    def _begins(words: list[str]) -> bool:
        """Whether a command begins after these words."""
        return all(word in _BEFORE for word in words)

    def _test(self, place: int) -> int:
        """The position after a test in double brackets; its substitutions are kept as one word."""
        text, begin = self.text, place
        try:
            while place < min(len(text), begin + _LONGEST_TEST):
                if not (found := _IN_TEST.match(text, place)):
                    place = part_end(text, place, 0)
                elif found[0].endswith("]]") and found[0][0].isspace():
                    inside = text[begin:place]
                    if _SUBSTITUTES.search(inside):
                        self.words.append(inside)
                    return found.end()
                else:
                    place = found.end()
        except UnclearError:
            pass
        self._is_unclear(begin)
        return begin

    def _opened(self, place: int) -> int:
        text = self.text
        if text[place : place + 1] == "(" and self._begins(self.words):
            try:
                ends = inner_end(text, place + 1, ")")
            except UnclearError:
                self._is_unclear(place)
                ends = place
            if text[ends : ends + 1] == ")":  # arithmetic; otherwise a subshell in a subshell
                self.words = [word for word in self.words if word != "for"]
                self.words += ["let", text[place + 1 : ends - 1]]
                return ends + 1
        if self.words and (empty := _EMPTY.match(text, place)):
            self.words.append("()")
            self.end()
            return empty.end()
        self.end(pipes=self.piped)
        self.open.append("(")
        return place

    def _closed(self) -> None:
        """The end of a subshell, or of the patterns of a `case`, which are not commands."""
        if self.open and self.open[-1] == "case":
            piped = self.piped
            if any("$(" in word or "`" in word for word in self.words):  # a pattern may run something
                self.found.append(Statement(self.start, ["case", *self.words], [], False, False))
                self.words, self.redirections, self.piped = [], [], False
                return
            self.words, self.redirections = [], []
            while piped and self.found and self.found[-1].pipes:
                piped = self.found.pop().piped
            self.piped = False
            return
        if self.open:
            self.open.pop()
        self.end()

    def _is_unclear(self, place: int) -> None:
        self.left -= 1
        if self.unclear is None:
            self.unclear = self.line(place)

    def _word(self, place: int) -> int:
        text, last = self.text, len(self.text)
        while place < last and self.left > 0:
            if found := _PLAIN.match(text, place):
                place = found.end()
                continue
            letter = text[place]
            if letter in " \t\r\n;&|)":
                break
            if letter in "<>":
                if text[place + 1 : place + 2] != "(":
                    break
                try:
                    place = inner_end(text, place + 2, ")")
                except UnclearError:
                    self._is_unclear(place)
                    place += 1
                continue
            if letter == "(":
                break
            if letter == "\\":
                place += 2
                continue
            try:
                place = part_end(text, place, 0)
            except UnclearError:
                self._is_unclear(place)
                place += 1
        return min(place, last)

    def _redirect(self, found: re.Match[str]) -> int:
        operator = found[0].lstrip("0123456789")
        text = self.text
        place = found.end()
        while text[place : place + 1] in (" ", "\t"):
            place += 1
        begin = place
        place = self._word(place)
        target = text[begin:place]
        if operator in ("<<", "<<-"):
            end = re.sub(r"[\"'\\]", "", target)
            if "$" in end or "`" in end:
                self._is_unclear(begin)
            self.redirections.append(("<<" if end == target else "<<'", ""))
            if text[place : place + 2] == "\r\n":
                end += "\r"
            self.waiting.append((len(self.found), end, operator == "<<-"))
        else:
            operator = operator if operator[0] != "{" else operator.partition("}")[2]
            if operator == ">&" and not _DESCRIPTOR.match(target):
                operator = "&>"
            self.redirections.append((operator, target))
            if operator == "<>" and not target.strip("\"'").startswith("/dev/"):
                self.redirections.append((">", target))
        return place

    def _documents(self, place: int) -> int:
        """Take the here-documents that begin here; returns the position after them."""
        text = self.text
        done: dict[int, int] = {}
        for at, word, dashed in self.waiting:
            pattern = re.compile(
                rf"^\t*{re.escape(word)}$" if dashed else rf"^{re.escape(word)}$",
                re.MULTILINE,
            )
            ends = pattern.search(text, place) if word else None
            if ends is None:
                self._is_unclear(place)
                continue
            body = text[place : ends.start()]
            place = min(ends.end() + 1, len(text))
            if at < len(self.found):
                statement = self.found[at]
                nth = done.get(at, 0)
                done[at] = nth + 1
                places = [
                    i
                    for i, (operator, _) in enumerate(statement.redirections)
                    if operator[:2] == "<<" and operator != "<<<"
                ]
                if nth < len(places):
                    i = places[nth]
                    statement.redirections[i] = (statement.redirections[i][0], body)
        self.waiting = []
        return place
