"""What a program gets: arguments, settings and input that the script computes."""

import re
from collections.abc import Sequence

from tocsin.workload.signs.computed_kinds import ENDPOINT, HANDS_FETCHED, HANDS_ON, RUNS, Found
from tocsin.workload.signs.file_kinds import FILE_NAME
from tocsin.workload.signs.foreign import runs_unwritten
from tocsin.workload.signs.host_names import names_host
from tocsin.workload.signs.origins import Origins
from tocsin.workload.signs.server_addresses import (
    NEAR_HOST,
    addresses,
    has_built_address,
    has_template,
)
from tocsin.workload.signs.top_level_domains import SURE
from tocsin.workload.signs.values import (
    COMPUTED,
    FETCHED,
    NUMBER,
    OWN,
    PIECE,
    UNKNOWN,
    WRITTEN,
    Value,
    base,
    is_exact,
)

__all__ = ["JOINED", "handed", "is_built", "is_computed", "is_handed", "is_put_together"]

_MARK = f"[{UNKNOWN}{PIECE}]"
JOINED = re.compile(f"{PIECE}{_MARK}|{UNKNOWN}{PIECE}")
"""Pieces of the script with nothing in between."""
_SPELLED = re.compile(
    r"[A-Za-z0-9](?:''|\"\"|'[A-Za-z0-9]+'|\"[A-Za-z0-9]+\")[A-Za-z0-9]|^(?:\"[A-Za-z]{1,9}\"|'[A-Za-z]{1,9}')(?=[\"'A-Za-z])"
    r"|[A-Za-z]\\[A-Za-z]|\\[A-Za-z]\\|[A-Za-z]\[[A-Za-z]\]|\?"
)
"""A program's name with quotes, backslashes or patterns between its letters."""
_WHOLE = re.compile(r"\"?(?:\$\((?!\().*\)|`[^`]*`)\"?$", re.DOTALL)
_PLACE = re.compile(
    r"\"?(?:\$\(|`)\s*(?:which|command|type|readlink|realpath|dirname|basename|whereis|spack|conda|brew|find|ls|echo|if|pwd|hash)\b"
)
"""The output of another program as a program; the path of a program."""
_DIGITS = rf"[\d{UNKNOWN}{PIECE}{NUMBER}]"
_NUMBERED_ADDRESS = re.compile(
    rf"(?<![\w.])(?:{_DIGITS}{{1,4}}\.){{3}}{_DIGITS}{{1,4}}:{_DIGITS}{{1,5}}(?![\w:.])"
    rf"|(?<![\w/.-])(?:[\w-]+\.)+[A-Za-z]{{2,24}}:\d*{NUMBER}|(?<![\w/.-]){NUMBER}:[1-9]\d{{3,4}}(?![\w/.:])"
)
"""A host and port with a computed number, or with an octet that is not written out."""
_NUMBERS_WITH_DOTS = re.compile(
    rf"(?<![\w.])(?:(?:\d{{1,3}}|{NUMBER})\.){{3}}(?:\d{{1,3}}|{NUMBER})(?![\w.])"
)
"""Four numbers, computed ones among them: an address without a port."""
_HERE = re.compile(r"\"?\$(?:PWD|\{PWD\})/[\w./-]+\"?$")
"""A program in the current folder, however the script got there."""
_HAS_MARK = re.compile(f"[{UNKNOWN}{PIECE}{NUMBER}]")
_INPUT = re.compile(r"(?:^|=)(?:-|/dev/(?:stdin|fd/\d+)|/proc/self/fd/\d+)$")
_ONE_LETTER = re.compile(r"\{(\w)\.\.\1\}")
"""A letter as a range from itself to itself."""
_HOST_OF_PIECES = re.compile(
    rf"(?:-{{0,2}}\w[\w-]*=)?(?=[^{PIECE}]*{PIECE})(?:[\w{PIECE}-]+\.){{1,4}}({PIECE}|[A-Za-z]{{2,14}})$"
)
"""Pieces of the script joined by dots, of which the last may be a domain."""


def is_built(word: str) -> bool:
    """Whether a word is assembled instead of written out."""
    return "$" in word or "`" in word or '"' in word or "'" in word or "\\" in word or word[:1] == "!"


def is_computed(program: Value, word: str) -> bool:
    """Whether a program's name is computed, or obfuscated."""
    if _HERE.match(word):
        return False
    if program.origin == COMPUTED or (word[:1] == "{" and "," in word):
        return True
    if "$" not in word and "{{" not in word and word not in ("[", "[[") and _SPELLED.search(word):
        return True
    substituted = "$(" in word or "`" in word
    if substituted and _WHOLE.match(word) and not _PLACE.match(word):
        return True
    return program.origin == OWN and (substituted or JOINED.search(program.text) is not None)


def handed(
    origins: Origins, line: int, words: Sequence[str], given: Value | None, settings: Sequence[str] = ()
) -> Found:
    """The unknown values that a program gets."""
    for word in (*words, *(setting.partition("=")[2] for setting in settings)):
        if is_built(word) or "{" in word or "<(" in word:
            if is_handed(origins, word):
                yield line, HANDS_ON
                return
            if FETCHED in origins.value(word).text:
                yield line, HANDS_FETCHED
                return
            if " " in word and "(" in word and runs_unwritten(word):
                yield line, RUNS
            elif word[0] == "'" and has_template(word):
                yield line, HANDS_ON
        elif origins.files.get(base(word.rpartition("=")[2])) == COMPUTED:
            yield line, HANDS_ON
        elif ":" in word and NEAR_HOST.search(word):
            yield line, ENDPOINT
    if given is None:
        return
    if FETCHED in given.text:
        yield line, HANDS_FETCHED
    if given.origin == COMPUTED and any(map(_INPUT.search, words)):
        yield line, HANDS_ON
    elif given.origin == WRITTEN and runs_unwritten(given.text):
        yield line, RUNS


def is_put_together(value: Value, word: str) -> bool:
    """Whether the value of a word is a server's address that is not written out."""
    return (
        has_built_address(value.text)
        or _is_numbered_address(value.text)
        or (value.text != word and any(addresses(value.text)))
    )


def _is_host_of_pieces(text: str) -> bool:
    """Whether a value consists of pieces of the script joined by dots, of which the last may be a domain."""
    found = _HOST_OF_PIECES.match(text) if PIECE in text and "." in text else None
    return found is not None and (found[1] == PIECE or found[1].lower() in SURE)


def _is_numbered_address(text: str) -> bool:
    """Whether a value is a host with a computed number."""
    if NUMBER in text and any(NUMBER in found[0] for found in _NUMBERS_WITH_DOTS.finditer(text)):
        return True
    if ":" not in text or not (NUMBER in text or UNKNOWN in text):
        return False
    return any(_HAS_MARK.search(found[0]) for found in _NUMBERED_ADDRESS.finditer(text))


def is_handed(origins: Origins, word: str) -> bool:
    """Whether an argument is computed, or an address that is not written in one place."""
    value = origins.value(word)
    if (
        ("{" in word and _ONE_LETTER.search(word) is not None)
        or (value.origin == COMPUTED and not is_exact(value) and not FILE_NAME.search(value.text))
        or is_put_together(value, word)
        or (value.origin >= OWN and _is_host_of_pieces(value.text))
        or (value.text != word and (names_host(value.text) or NEAR_HOST.search(value.text) is not None))
    ):
        return True
    if not origins.several:
        return False
    origins.vague = True
    value = origins.value(word)
    origins.vague = False
    return value.origin >= OWN and has_built_address(value.text)
