"""Finds where quoted text, substitutions and brackets of a shell end."""

import re

__all__ = ["UnclearError", "inner_end", "part_end"]

_SINGLE = re.compile(r"'[^']*'")
_ANSI = re.compile(r"\$'(?:[^'\\]|\\.)*'", re.DOTALL)
_DOUBLE = re.compile(r"\$?\"(?:[^\"\\$`]|\\.|\$(?![({]))*\"", re.DOTALL)
_NAME = re.compile(r"\$(?:\w+|[@*#?$!_-])|\$\{[^{}'\"`$\\]*\}|\$")
_TICK = re.compile(r"`(?:[^`\\]|\\.)*`", re.DOTALL)
_IN_TEXT = re.compile(r"[^\"\\$`]+|\\.|\$(?![({])", re.DOTALL)
_IN_BRACES = re.compile(r"[^}\"'\\$`]+|\\.|\$(?![({'\"])", re.DOTALL)
_IN_BRACKETS = re.compile(r"[^()\"'\\$`#]+|\\.|\$(?![({'\"])|(?<![\s;&|(])#|(?<=[\s;&|(])#[^\n]*", re.DOTALL)
_DEEPEST = 20


class UnclearError(Exception):
    """A quote or a bracket has no end."""


def inner_end(text: str, place: int, closes: str, depth: int = 0) -> int:
    """The position after the bracket, brace or quote that closes what begins before `place`."""
    if depth > _DEEPEST:
        raise UnclearError
    plain = _IN_TEXT if closes == '"' else _IN_BRACES if closes == "}" else _IN_BRACKETS
    last = len(text)
    while place < last:
        if found := plain.match(text, place):
            place = found.end()
            continue
        letter = text[place]
        if letter == closes:
            return place + 1
        place = part_end(text, place, depth + 1, quoted=closes == '"')
    raise UnclearError


def part_end(text: str, place: int, depth: int, *, quoted: bool = False) -> int:
    """The position after the quoted text, substitution or bracket that begins here."""
    letter = text[place]
    if letter == "'" and not quoted:
        if found := _SINGLE.match(text, place):
            return found.end()
        raise UnclearError
    if letter == '"' and not quoted:
        if found := _DOUBLE.match(text, place):
            return found.end()
        return inner_end(text, place + 1, '"', depth)
    if letter == "`":
        if found := _TICK.match(text, place):
            return found.end()
        raise UnclearError
    if letter == "$":
        after = text[place + 1 : place + 2]
        if after == "(":
            return inner_end(text, place + 2, ")", depth)
        if after == "{":
            if (found := _NAME.match(text, place)) and found.end() - place > 1:
                return found.end()
            return inner_end(text, place + 2, "}", depth)
        if after == "'" and not quoted:
            if found := _ANSI.match(text, place):
                return found.end()
            raise UnclearError
        if after == '"' and not quoted:
            return inner_end(text, place + 2, '"', depth)
        return place + 1
    if letter == "(":
        return inner_end(text, place + 1, ")", depth)
    return place + 1
