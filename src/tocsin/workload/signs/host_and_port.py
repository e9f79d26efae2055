"""Words that are a host with its port or user, where the host alone would be something else: a file, or a number."""

import re
from collections.abc import Iterable

from tocsin.workload.signs.host_names import has_name_with_end
from tocsin.workload.signs.host_numbers import is_number_of_host, may_have_number_of_host
from tocsin.workload.signs.top_level_domains import OF_FILES, OF_SCRIPTS, SURE

__all__ = ["may_name_host_and_port", "names_host_and_port"]

_PORT = re.compile(r"(?:[1-9]\d{2,4}|80|0x[0-9a-f]{2,4})$")
_USERS = r"(?:-[uUwW]|--?(?:user|wallet|worker|login|account|rig|pass|ident|label))"
_USER = re.compile(rf"{_USERS}$")
_NO_USER = re.compile(r"-|\d+$|.*\.(?:py|sh|R|pl|jl|m)$|.*/")
_SOME_USER = re.compile(
    r"-(?<=\s-)(?:[uUwW]|-?(?:user|wallet|worker|login|account|rig|pass|ident|label))[ =]\s?(?![\w./$-]*\.(?:py|sh|R|pl|jl|m)\b)[A-Za-z]"
)
_SOME_PORT = re.compile(r"(?<![\w.])(?:\d{3,5}|80|0x[0-9a-f]{2,4})(?![\w.])")
_NEAR = 300
_SOME_PROGRAM = re.compile(rf"\.(?:{'|'.join(sorted(OF_SCRIPTS))})(?=[\s\"':/,]|$)", re.MULTILINE)
_NAME = re.compile(r"((?:[^\W_](?:[^\W_]|-){0,62}\.)+)([A-Za-z]{2,14})(?:[:/,;#|]\d{2,5})?$")
_ADDRESS_OF_MAIL = re.compile(r"[\w+-]{1,120}@")
_HERE = re.compile(r"localhost$|127(?:\.\d{1,3}){1,3}$|\[?::1\]?$")
_FILES = frozenset("txt csv tsv json yaml yml log out err gz nc h5 sif img dat".split())  # noqa: SIM905


def names_host_and_port(words: Iterable[str]) -> bool:
    """Whether words are such a host and what belongs to it."""
    name = maybe = number = port = user = False
    before = ""
    for word in words:
        option, before = before, word
        if option == "-m":  # a module of Python
            continue
        setting, sign, value = word.rpartition("=")
        value = value.strip("\"'")
        if _USER.match(setting if sign else option) and not _NO_USER.match(value):
            user = True
        if value[:1] == "-" and len(value) > 3:  # an option with its value attached
            value = value[2:]
        if _PORT.match(value):
            port = True
        elif value[:1].isdigit() and is_number_of_host(value):
            number = True
        elif "." in value or value == "localhost":
            kind = _kind(value)
            name = name or kind == _LIKELY
            maybe = maybe or kind is not None
    return (number and port) or (name and (port or user)) or (maybe and port and user)


_DOMAINS = SURE | OF_FILES
_LIKELY, _PERHAPS = "likely", "perhaps"


def _kind(value: str) -> str | None:
    """How likely a word is the name of a host."""
    if _HERE.match(value):
        return _PERHAPS
    found = _NAME.match(_ADDRESS_OF_MAIL.sub("", value, count=1))
    if not found:
        return None
    end, dots = found[2].lower(), found[1].count(".")
    if end in _DOMAINS:
        return _LIKELY if len(found[1]) > 2 and "@" not in value else _PERHAPS
    return _PERHAPS if end in OF_SCRIPTS or (dots > 1 and end not in _FILES) else None


def may_name_host_and_port(text: str) -> bool:
    """Whether a text may have such words; most have none."""
    if may_have_number_of_host(text) or has_name_with_end(text, _DOMAINS):
        return True
    return any(_may_be_both(text, found.start()) for found in _SOME_USER.finditer(text))


def _may_be_both(text: str, place: int) -> bool:
    """Whether a port and a possible host are close to a user."""
    near = text[max(0, place - _NEAR) : place + _NEAR]
    return _SOME_PORT.search(near) is not None and (
        "localhost" in near or _SOME_PROGRAM.search(near) is not None or "127." in near
    )
