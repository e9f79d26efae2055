"""The values of a shell's words, given those of its variables and substitutions."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import lru_cache

from tocsin.workload.signs.arithmetic import calculated
from tocsin.workload.signs.parameter_changes import changed
from tocsin.workload.signs.shell_patterns import MOST_STARS, as_expression
from tocsin.workload.signs.values import (
    A_NUMBER,
    CHANGED,
    COMPUTED,
    FROM_OUTSIDE,
    OUTSIDE,
    OWN,
    OWN_PIECE,
    PERHAPS,
    PIECE,
    UNKNOWN,
    WRITTEN,
    Value,
    is_exact,
)
from tocsin.workload.signs.variables import Variables
from tocsin.workload.signs.word_parts import Kind, Part, word_parts

__all__ = ["ALNUM", "DEEPEST", "LONGEST", "MOST_WORK", "Words"]

_SPECIAL = re.compile(r"[\\'\"$`{<>!]")
_BRACED = re.compile(
    r"(?P<sign>[!#]?)(?P<name>\w+|[@*?$!#-])(?P<key>\[(?:[^\[\]]|\[[^\]]*\])*\])?(?P<rest>.*)$", re.DOTALL
)
ALNUM = re.compile(r"[A-Za-z0-9]")
_NAME = re.compile(r"[A-Za-z_]")
_TILDE = re.compile(r"(?:^|(?<=[=:]))~[+-]?(?=[/:]|$)")
_AT_A_SIGN = re.compile(r"##?\*?[^\w.*?\[]+$|%%?[^\w*?\[]+\*?$|%%?\.[\w.]*\*?$|##?\*[^\w*?\[]+$")
"""What is removed begins or ends with punctuation, so that words are left."""
_LISTED = re.compile(r"(?>(?:[^\s\"'\\]|\\.|\"(?:[^\"\\]|\\.)*\"|'[^']*')+)")
_KNOWN_CHANGE = re.compile(r":\s?-?\d+(?::\d+)?$|//?[^*?\[]*$|[,^]{1,2}$")
_LONGEST_TRIMMED = 300
MOST_WORK = 50_000
"""Words of one script that are expanded, including their parts; jobspec's longest has a tenth of it."""
LONGEST = 4096
_LONGEST_WORD = 16 * 1024
DEEPEST = 6


class Words(Variables, ABC):
    """The values of a script's words, as far as known."""

    def value(self, word: str) -> Value:
        known = self._known.get(word)
        if known is not None and not self.vague:
            return known
        if not _SPECIAL.search(word):
            return self._plain(word)
        if len(word) > _LONGEST_WORD:
            return Value(word[:_LONGEST_WORD], OWN)
        known = self._joined(word, quoted=False)
        if not self.vague:
            self._known[word] = known
        return known

    def _plain(self, word: str) -> Value:
        """The value of a word in which only a tilde may be special."""
        if "~" in word and "HOME" in self.values and _TILDE.search(word):
            home = self.values["HOME"]
            return Value(_TILDE.sub(lambda _: home.text, word), max(home.origin, OWN))
        value = Value(word, WRITTEN)
        if "*" in word or "?" in word:  # which files there are may change at any time
            return Value(file, OWN) if (file := self.matching(word)) else value
        self._known[word] = value
        return value

    def document(self, body: str) -> Value:
        """A here-document that the shell expands."""
        return self._joined(body, quoted=True) if "$" in body or "`" in body else Value(body, WRITTEN)

    def _joined(self, word: str, *, quoted: bool) -> Value:
        """The values of a word's parts, joined."""
        last = len(word)
        self.work += 1 + last // 100
        if self.work > MOST_WORK:
            return CHANGED
        longest = max(LONGEST, last)
        parts = word_parts(word, quoted=quoted)
        if len(parts) == 1:  # most words
            value = parts[0] if isinstance(parts[0], Value) else self._part(parts[0])
            return value if len(value.text) <= longest else Value(value.text[:longest], value.origin)
        texts: list[str] = []
        origin = WRITTEN
        for part in parts:
            value = part if isinstance(part, Value) else self._part(part)
            texts.append(value.text)
            origin = max(origin, value.origin)
        return Value("".join(texts)[:longest], origin)

    def _part(self, part: Part) -> Value:
        if part.kind is Kind.VARIABLE:
            return self.variable(part.text)
        if part.kind is Kind.QUOTED:
            return self._joined(part.text, quoted=True)
        if part.kind is Kind.BRACED:
            return self._braced(part.text)
        if part.kind is Kind.ARITHMETIC:
            number = calculated(part.text)
            if number is not None:
                return Value(str(number), OWN)
            # without names, it is a number written in another form
            return A_NUMBER if _NAME.search(part.text) else PERHAPS
        if part.kind is Kind.SINK:
            return FROM_OUTSIDE
        if part.kind is Kind.HISTORY:
            return CHANGED if self.history or not part.text[1].isalnum() else Value(part.text, WRITTEN)
        return self.substituted(part.text)

    def _braced(self, inside: str) -> Value:
        self.depth += 1
        try:
            return CHANGED if self.depth > DEEPEST else self._expanded(inside)
        finally:
            self.depth -= 1

    def _expanded(self, inside: str) -> Value:
        found = _BRACED.match(inside)
        if not found:
            return CHANGED if _NAME.search(inside) else FROM_OUTSIDE
        if found["sign"] == "#":
            return A_NUMBER
        name, rest = found["name"], found["rest"]
        value = self._element(name, found["key"]) or self.variable(name)
        if found["sign"] == "!":
            if rest[:1] in ("@", "*") or found["key"]:
                return CHANGED if name in self.keyed else OWN_PIECE if rest else FROM_OUTSIDE
            return self._named(value)
        if found["key"] == "[*]" and "IFS" in self.values and value.origin == OWN:
            return CHANGED
        if not rest or value.origin == COMPUTED:
            return value
        kind = rest.lstrip(":")[:1]
        if rest[:2] in (":-", ":=", ":?", ":+") or rest[0] in "-=?+":
            if kind == "?" or (kind != "+" and name in self.values and value.text.strip(UNKNOWN)):
                return value
            other = self.value(rest.lstrip(":")[1:])
            if kind != "+" and name in self.values and value.origin == OUTSIDE:  # either of them
                other = Value(other.text or value.text, max(other.origin, OUTSIDE))
            if kind == "=":
                self.put(name, other)
            return other
        if name == "PWD" and rest[0] == "#" and self.files:
            return OWN_PIECE
        if value.origin == OUTSIDE and not ALNUM.search(value.text):
            return value
        if rest[0] in "#%":
            return self._trimmed(value, rest)
        if (name in "@*" or found["key"] in ("[@]", "[*]")) and rest[0] == ":":
            return value  # some of them
        if name in self.several or found["key"] or not is_exact(value) or not _KNOWN_CHANGE.match(rest):
            return CHANGED
        return Value(changed(value.text, rest, self._exactly), COMPUTED)

    def _named(self, value: Value) -> Value:
        """The value of the variable whose name is the value of another."""
        if value.origin == OUTSIDE:
            return value
        if value.text in self.several or not is_exact(value):
            return CHANGED
        named = self.variable(value.text)
        return Value(named.text, COMPUTED) if is_exact(named) else CHANGED

    def _exactly(self, text: str) -> str:
        value = self.value(text)
        return value.text if is_exact(value) else PIECE

    def _element(self, name: str, key: str | None) -> Value | None:
        """An element, by its number, of a list that is written out."""
        if key is None or name not in self.arrays or not key[1:-1].isdecimal():
            return None
        words = _listed(self.arrays[name])
        place = int(key[1:-1])
        return self.value(words[place]) if place < len(words) and "=" not in words[place] else None

    def _trimmed(self, value: Value, rest: str) -> Value:
        """A value without what a pattern removes at its beginning or end."""
        text = value.text
        if text == PIECE:
            return value
        pattern = self.value(rest.lstrip(rest[0])).text
        if (
            len(text) * max(1, pattern.count("*")) > _LONGEST_TRIMMED
            or pattern.count("*") > MOST_STARS
            or UNKNOWN in pattern
            or PIECE in pattern
        ):
            if not ALNUM.search(text):
                return Value(text, max(value.origin, OUTSIDE))
            return OWN_PIECE if value.origin != COMPUTED and _AT_A_SIGN.match(rest) else CHANGED
        matches = re.compile(as_expression(pattern), re.DOTALL).fullmatch
        places: Iterable[int] = range(len(text) + 1)
        if rest[0] == "#":
            places = places if rest[1:2] != "#" else reversed(range(len(text) + 1))
            return Value(next((text[at:] for at in places if matches(text, 0, at)), text), value.origin)
        places = places if rest[1:2] == "%" else reversed(range(len(text) + 1))
        return Value(next((text[:at] for at in places if matches(text, at)), text), value.origin)

    @abstractmethod
    def substituted(self, inside: str) -> Value:
        """The output of the commands in a substitution."""


@lru_cache(maxsize=64)  # each element of a long list is read separately
def _listed(words: str) -> tuple[str, ...]:
    return tuple(_LISTED.findall(words))
