"""Removes the quotes of CSV from lines of text, so that a rare character separates their values."""

import re

import numpy as np

from tocsin.sources.lines import line_ends

__all__ = ["is_quoted", "without_quotes"]

_QUOTE, _NEWLINE = ord('"'), ord("\n")


def is_quoted(head: bytes, separator: str) -> bool:
    """Whether the values in these first lines are quoted as in CSV."""
    mark = re.escape(separator.encode())
    return re.search(rb'(?m)(?:^|%b)"[^"\n]*(?:""[^"\n]*)*"(?:%b|\r?$)' % (mark, mark), head) is not None


def without_quotes(data: bytes, separator: str, instead: bytes) -> bytes:
    """Separators become `instead`, except those inside quotes; lines with irregular quotes count as having none.

    `data` are whole lines, and `instead` is one byte that no line has.
    """
    text = np.frombuffer(data, np.uint8).copy()
    edge = (text == ord(separator)) | (text == _NEWLINE) | (text == ord("\r"))
    quotes = text == _QUOTE
    before = np.concatenate(([True], (edge | quotes)[:-1]))
    after = np.concatenate(((edge | quotes)[1:], [True]))
    ends = line_ends(data)
    # Within a line, odd quotes open (or repeat) and even ones close.
    places = np.flatnonzero(quotes)
    line = np.searchsorted(ends, places)
    first = np.searchsorted(places, np.concatenate(([0], ends[:-1] + 1)))
    number = np.arange(len(places)) - first[line] if len(places) else places
    opens = number % 2 == 0
    wrong = np.where(opens, ~before[places], ~after[places])
    irregular = np.zeros(len(ends), bool)
    irregular[line[wrong]] = True
    irregular |= np.bincount(line, minlength=len(ends)) % 2 == 1
    regular = ~irregular[line]
    inside = np.zeros(len(text) + 1, np.int8)
    inside[places[regular & opens]] += 1
    inside[places[regular & ~opens]] -= 1
    quoted = np.cumsum(inside[:-1], dtype=np.int8) > 0
    text[(text == ord(separator)) & ~quoted] = instead[0]
    drop = np.zeros(len(text), bool)
    drop[places[regular]] = True
    repeated = opens & regular & (number > 0)
    repeated[1:] &= places[1:] == places[:-1] + 1
    drop[places[repeated]] = False  # of two quotes in a row, one is part of the value
    return text[~drop].tobytes()
