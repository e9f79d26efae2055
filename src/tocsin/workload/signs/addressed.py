"""Pool addresses that are put together: a miner must be told its pool, whatever it is called and however that is split.

In any language, the option, the port and the user are close together. Quotes, commas, operators that join text, and
expansions between them are removed first.
"""

import re
from collections.abc import Iterator, Sequence

from tocsin.workload.commands import Line

__all__ = ["ADDRESSED", "addressed"]

ADDRESSED = "an address assembled by the script, as for a mining pool"
_WRITTEN_OUT = re.compile(
    r"(?<!\S)-(?:o|-url|-pool)[ =]{0,3}[\"']?[\w.+:/-]{4,120}:\d{2,5}(?![\w/])", re.IGNORECASE
)
"""Other rules find these, unless they are only printed."""
_BLANKS = re.compile(r"\\[nrt]")
_LISTED = re.compile(r"[\"'`]\s{0,3},\s{0,3}(?:\w{0,9}[\"'`]|(?=[\w$@(]))")
_GLUED = re.compile(
    r"[\"'`]\s{0,3}(?:\+|\.{1,2}|\*|&|\^|~|<>|\|\||%)\s{0,3}[\"'`]|(?<=[\w.])[\"'`]\s{0,3}[\"'`](?=\w)"
    r"|[\"'`]\s{0,3}(?:\+|\.{1,2}|\*)\s{0,3}(?=[\w$])|(?<=\w)\s{0,3}(?:\+|\.\.|\*)\s{0,3}[\"'`]"
)
_QUOTES = re.compile(r"[\"'`\\]")
_OPTION = r"(?<![\w-])-(?:(?-i:o)|-url|-pool)(?:[ =,]{1,4}|(?=[$%{]))"
_PIECE = (
    r"(?:\$\{[^{}\s]{1,60}\}|\$\([^()]{1,60}\)|\$\w{1,40}|%s|#\{[^{}]{1,40}\}|@\(\w{1,40}\)"
    r"|\{[\w.:,-]{1,60},[\w.:,-]{0,60}\}|\{\w{0,20}\})"
)
_JOINED = r"\$\{(?:\(j|\w{1,40}\[[*@])[^{}\s]{0,40}\}"
_PORT = re.compile(
    rf"{_OPTION}(?:\w{{2,12}}\()?[^\s;|&]{{1,120}}?:(?:(?:\w{{2,4}}\()?\d{{3,5}}(?![\w/])|%d|{_PIECE})",
    re.IGNORECASE,
)
_PIECES = re.compile(
    rf"{_OPTION}(?:[a-z][\w.:+-]{{0,40}}(?://)?)?(?:{_PIECE}(?:[.:]{{0,3}}{_PIECE}){{1,9}}(?::\d{{2,5}})?|{_JOINED})(?=[\s;|&)\]]|$)",
    re.IGNORECASE,
)
_BETWEEN_TEXTS = re.compile(
    r"(?<![\w-])-(?:o|-url|-pool)[ =]?[\"']\s{0,3}[.+,&]{0,2}\s{0,3}\w{1,40}(?:\[\w{1,20}\])?\s{0,3}[.+,&]{0,2}\s{0,3}[\"']"
)
"""A variable of awk and similar tools."""
_USER = re.compile(r"(?<![\w-])-(?:(?-i:u)|-user|-wallet)[\s=,]{1,4}(?!-)\S", re.IGNORECASE)
_FAR = re.compile(
    r"(?<![\w-])-(?-i:o)[\s,](?:[^\n]{0,80}?[\s.$])?[a-z0-9][\w-]{1,40}\.[a-z]{2,6}:\d{4,5}(?![\w/])",
    re.IGNORECASE,
)
"""The option and a host with its port, without a user."""
_WIDE = re.compile(
    r"(?<![\w-])-o\b(?:\W{1,9}(?!\W?-)(?:\w{1,8}\W{1,9}){0,2}?)(?:[\w-]{1,40}\.){1,4}[a-z]{2,6}:\d{3,5}(?![\w/])[^/]{1,60}?(?<![\w-])-u\b"
)
"""All three, in separate lines or commands."""
_CHOSEN = re.compile(r"(?<!\S)-\$\{?\w{1,20}\}?\s{1,3}\S{0,80}:\S|\s\$\{?\d\}?:\d{4,5}(?=[\s;|&]|$)")
"""An option given by a variable, or a port given by an argument."""
_ORDINARY = re.compile(
    r"://|@|\b(?:ssh|scp|sftp|rsync|curl|wget|docker|podman|http|gcc|mpicc)\b|-[LR]\s", re.IGNORECASE
)
_SETTINGS = (
    (
        "%s",
        re.compile(
            r"\"[a-z]{1,8}%s[a-z]{0,8}\"\s{0,3}:.{0,200}:\d{3,5}|\"%s\"\s{0,3}:\W{0,5}\"%s\"\s{0,3}:\s{0,3}\"[\w.-]{3,80}:\d{3,5}"
        ),
    ),
    ('":', re.compile(r"\"[a-z]{1,8}\$\{?\w{1,20}\}?[a-z]{0,8}\"\s{0,3}:.{0,200}:\d{3,5}")),
    (
        "pools",
        re.compile(
            r"pools(?<=\bpools)[\"']?\]?\s{0,3}[:=](?:>\s?)?\W{0,9}(?:url\b|(?:\w{1,12}\W{1,5}\w{0,12}\W{1,5}){1,3}?url\W{1,5}[\w.-]{3,80}:\d{3,5})"
        ),
    ),
    ("-o", re.compile(r"-o[_/+,|;]{1,3}[\w.-]{3,80}:\d{3,5}(?!\d)")),
    ('"o"', re.compile(r"\"o\"\s{0,3}:\s{0,3}\"[\w.-]{3,80}:\d{3,5}\".{0,60}\"u\"\s{0,3}:")),
    (
        "config.json",
        re.compile(
            r"url(?<=\burl)[\"']?\W{1,4}(?:[\w-]{1,40}\.){1,4}[a-z]{2,6}:\d{3,5}[\"']?\s{0,3},\s{0,3}[\"']?user\b"
        ),
    ),
    (
        "[pool",
        re.compile(
            r"\[pools?\]\]?\s{1,3}(?:[^\n]{0,80}\n){0,4}?(?:url|address|host|server)\W{1,6}[\w.+:/-]{3,80}:\d{3,5}\b"
        ),
    ),
)
"""The settings of a miner with the keys of other tools, or with split names; each with a substring that it has."""
_MARKS = ("-o", "--url", "--pool", '-"$', " -$")


def addressed(lines: Sequence[Line], text: str) -> Iterator[int]:
    """The lines that have such an address; `text` is the lines joined."""
    for mark, setting in _SETTINGS:
        if mark in text and (found := setting.search(text)):
            yield lines[text.count("\n", 0, found.start())][0]
    if "-u" in text and _WIDE.search(text):
        rest = _without_written_out(text)
        if found := _WIDE.search(rest):
            yield lines[rest.count("\n", 0, found.start())][0]
    marks = [mark for mark in _MARKS if mark in text]
    if marks:
        for number, line in lines:
            if (
                (":" in line or "-u" in line or "wallet" in line)
                and any(mark in line for mark in marks)
                and _is_addressed(line)
            ):
                yield number


def _without_written_out(text: str) -> str:
    return _WRITTEN_OUT.sub(" ", text)


def _is_addressed(line: str) -> bool:
    line = _BLANKS.sub(" ", _without_written_out(line))
    flat = _QUOTES.sub("", _GLUED.sub("", _LISTED.sub(" ", line)))
    if _USER.search(flat) and (
        any(pattern.search(flat) for pattern in (_PORT, _PIECES, _CHOSEN)) or _BETWEEN_TEXTS.search(line)
    ):
        return True
    return _FAR.search(flat) is not None and _ORDINARY.search(line) is None
