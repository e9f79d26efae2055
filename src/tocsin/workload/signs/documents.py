"""Here-documents and files that a script writes for people: where they end, and whether the script uses them again."""

import re
from bisect import bisect_right
from collections.abc import Container, Sequence

from tocsin.workload.signs.inert_commands import PRINTS, READS
from tocsin.workload.signs.simple_commands import CLOSES, open_after, simple_commands

__all__ = [
    "HERE",
    "TARGET",
    "as_redirection",
    "document_ends",
    "file_name",
    "runs_any_of",
    "text_ends",
    "used_documents",
]

_TEE = re.compile(r"(?<![\w-])tee\s+(?:(-a|--append)\s+)?(?=[\w./~-]+\s*(?:$|[|;&<>]))")
TARGET = re.compile(
    r"\d?>>?\s*(?:&\s*[12]\b|/dev/(?:null|stderr|stdout|tty)|/etc/hosts"
    r"|(?P<document>(?!\S{0,200}CMakeLists)[^\s;|&<>$`*?\"']{1,200}\.(?:md|rst|html?|tex|log|txt|csv|tsv|bib|adoc|rules)|README|NOTES))(?=\s|$|[;|&])"
)
_RUNS_ANY_FILE = re.compile(
    r"(?:^|[;&|(]\s*|\b(?:do|then|else|exec|sudo|srun|nohup|time|-exec)\s+)(?:(?:ba|da|z|k)?sh|source|\.|python[\d.]*|perl|ruby)"
    r"\s+(?:-\w{1,9}\s+){0,4}(?P<name>[\"']?[^\s;|&]{0,200}[$*?\[{][^\s;|&/]{0,99})(?![^\s;|&])"
)
"""Runs a file whose name is unknown here, so it may be any file, unless its suffix excludes that."""
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|([A-Za-z_]\w*))$")
_KNOWN_END = re.compile(r"(?:\$\w+|\$\{\w+\})[\w./-]{0,200}$|^[\w./-]{1,200}$")
_QUOTED_OR_HERE = re.compile(
    r"\\.|(?<![^\s;&|()])#.*|\$'(?:[^'\\]|\\.)*'|'[^']*'|\"(?:[^\"\\]|\\.)*\"|(?P<here>(?<!<)<<(?!<))|(?P<open>['\"])"
)
HERE = re.compile(r"(?<!<)<<(?!<)-?\s*(?:\\?([\w.!-]{1,60})|\"([^\"]{1,60})\"|'([^']{1,60})')")
_MOST_RUN = 20
_MOST_QUOTED = 500
"""Lines that are searched for quoted texts, in addition to a multiple of all lines."""


def runs_any_of(documents: set[str], lines: Sequence[str]) -> bool:
    """Whether a file whose name is not fully known is run, and may be one of the documents."""
    names = {run["name"].strip("\"'") for line in lines for run in _RUNS_ANY_FILE.finditer(line)}
    ends = {name[at:] for name in documents for at in range(len(name))}
    text = "\n".join(lines) if names else ""
    for name in sorted(names)[:_MOST_RUN]:
        values = [name]
        if variable := _VARIABLE.search(name):
            word = variable[1] or variable[2]
            values = [value.strip("\"'") for value in re.findall(rf"^{word}=(\S+)$", text, re.MULTILINE)]
            if len(values) + len(re.findall(rf"\$(?:{word}\b|{{{word}}})", text)) < len(
                re.findall(rf"\b{word}\b", text)
            ):
                return True  # it gets its value in another way
        for value in values:
            end = re.split(r"\$\{?\w+\}?", value)[-1]
            if not end or not _KNOWN_END.search(value) or end in ends or end.endswith(tuple(documents)):
                return True
    return len(names) > _MOST_RUN


def file_name(path: str) -> str:
    return path.rpartition("/")[2]


def used_documents(lines: Sequence[str], documents: set[str], captured: frozenset[int]) -> set[str]:
    """The documents that some command uses other than to write or show them."""
    mentioned = re.compile("|".join(map(re.escape, sorted(documents))))
    found: set[str] = set()
    for place, line in enumerate(lines):
        if not mentioned.search(line):
            continue
        for command in simple_commands(as_redirection(line)):
            rest = TARGET.sub(" ", command.text)
            goes_on = place in captured or ">" in rest or command.text.endswith("|") or "shell" in rest
            shown = command.head in READS and not goes_on
            found.update(() if shown else mentioned.findall(rest))
    return found


def document_ends(lines: Sequence[str]) -> dict[int, int]:
    """Where the here-document ends that begins in a line. `<<` in quoted text, including multi-line text, begins none."""
    if not any("<<" in line for line in lines):
        return {}
    last, places = dict.fromkeys(CLOSES, -1), dict[str, list[int]]()
    for place, line in enumerate(lines):
        places.setdefault(line, []).append(place)
        last.update({mark: place for mark in CLOSES if mark in line})
    ends: dict[int, int] = {}
    mark, place = None, -1
    while (place := place + 1) < len(lines):
        line, word, at = lines[place], "", 0
        if mark and (closed := CLOSES[mark].match(line)):
            mark, at = None, closed.end()
        while not mark and (token := _QUOTED_OR_HERE.search(line, at)):
            at = token.end()
            if token["open"] and last[token["open"]] > place:  # without an end, it is an ordinary character
                mark = token["open"]
            elif not word and token["here"] and (here := HERE.match(line, token.start())):
                word = here[1] or here[2] or here[3]
        where = places.get(word, []) if word else []
        if (after := bisect_right(where, place)) < len(where):
            ends[place] = place = where[after]
    return ends


def text_ends(lines: Sequence[str], heads: Container[str] | None = PRINTS) -> dict[int, int]:
    """The line after a quoted text that begins in a line of one of these commands, or of any, and ends in a later one."""
    found: dict[int, int] = {}
    place, work = 0, _MOST_QUOTED + 8 * len(lines)
    while place < len(lines):
        after = place + 1
        if "'" in lines[place] or '"' in lines[place]:
            command = simple_commands(lines[place])[-1]
            mark = command.open if heads is None or command.head in heads else None
            while mark and after < len(lines) and work > 0:
                mark = open_after(lines[after], mark)
                after, work = after + 1, work - 1
            if mark:  # it never ends
                after = place + 1
            elif after > place + 1:
                found[place] = after
        place = after
    return found


def as_redirection(command: str) -> str:
    """`tee` writes its input as `cat` with a redirection does."""
    return (
        _TEE.sub(lambda found: f"cat {'>>' if found[1] else '>'} ", command) if "tee" in command else command
    )
