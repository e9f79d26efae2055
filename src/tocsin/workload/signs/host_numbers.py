"""Numeric addresses of hosts: dotted, as one number, or IPv6."""

import re

__all__ = ["has_number_of_host", "is_local", "is_number_of_host", "may_have_number_of_host"]

_DOTTED = re.compile(r"\.(?<=\d\.)\d{1,3}\.\d{1,3}\.\d{1,3}(?![\w.]|-\d)")
"""The last three numbers. It begins with a literal character, which makes the search fast."""
_FIRST = re.compile(r"(?:(?<![\w.@:/+-])|(?<==))\d{1,3}$")
_LOCAL = re.compile(
    r"(?:0|10|127|192\.168|169\.254|172\.(?:1[6-9]|2\d|3[01])|2(?:2[4-9]|[345]\d))\.|\d+\.\d+\.\d+\.255$"
)
_LARGEST_OF_A_VERSION = 99
"""With no larger number, four of them are a version, or the sizes of a lattice."""
_MAY_BE_SIXTH = re.compile(r":(?::(?=[0-9a-fA-F])|(?<=[0-9a-fA-F]:):|[0-9a-fA-F]{3,4}:)")
_SIXTH = re.compile(
    r"(?<![\w:.])(?=[0-9a-f:]{0,40}[0-9a-f]{3})(?:(?:[0-9a-f]{1,4}:){1,6}(?::[0-9a-f]{1,4}){1,6}|(?:[0-9a-f]{1,4}:){1,7}:"
    r"|::(?:[0-9a-f]{1,4}:){1,6}[0-9a-f]{1,4}|(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4})(?![\w:])",
    re.IGNORECASE,
)
_OTHER_FORMS = re.compile(
    r"(?:\d{1,3}(?:\.\d{1,3}){3}|[1-9]\d{0,2}\.\d{1,3}\.\d{4,5}|(?:0x[0-9a-f]{1,2}|0[0-7]{1,3})(?:\.(?:0x[0-9a-f]{1,2}|0[0-7]{1,3}|\d{1,3})){3})$",
    re.IGNORECASE,
)
_ONE_NUMBER = re.compile(r"0[0-7]{9,11}$|[1-9]\d{7,9}$|0x[0-9a-f]{8}$", re.IGNORECASE)
_DATE = re.compile(r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])(?:\d\d)?$")
_FEW_DIGITS = 4
"""With fewer different ones, it is a round number or a mask."""
_LONG_WORD = re.compile(r"\d[\w.]{6,60}")


def has_number_of_host(text: str) -> bool:
    """Whether a text has an address that can be nothing else."""
    for found in _DOTTED.finditer(text):
        first = _FIRST.search(text, max(0, found.start() - 4), found.start())
        if first and _is_far(first[0] + found[0]):
            return True
    return _MAY_BE_SIXTH.search(text) is not None and _SIXTH.search(text) is not None


def is_local(host: str) -> bool | None:
    """Whether four numbers are the address of a machine at the site; None if they are not numbers."""
    return _LOCAL.match(host) is not None if host[:1].isdigit() and host.replace(".", "").isdigit() else None


def _is_far(address: str) -> bool:
    """Whether four numbers are an Internet address, and not a version."""
    return _LARGEST_OF_A_VERSION < max(map(int, address.split("."))) < 256 and not _LOCAL.match(address)


def _is_size(address: str) -> bool:
    """Whether numbers are the sizes of a lattice or of a process grid: even, or very small."""
    return all(
        number.isdigit() and (int(number) < 5 or int(number) % 2 == 0) for number in address.split(".")
    )


def is_number_of_host(word: str) -> bool:
    """Whether a word may be an address next to a port: alone, it would be a version, a size or a number."""
    if _OTHER_FORMS.match(word):
        return not _is_size(word) and word[:4] != "127."
    if not _ONE_NUMBER.match(word) or _DATE.match(word) or len(set(word.lower())) <= _FEW_DIGITS:
        return False
    number = int(word, 16 if word[:2].lower() == "0x" else 8 if word[0] == "0" else 10)
    return 1 << 24 <= number < 1 << 32 and number % 1000 != 0 and number & 0xFFFF != 0


def may_have_number_of_host(text: str) -> bool:
    """Whether a text may have such a word."""
    return any(
        is_number_of_host(found[0].rstrip(".")) and not _is_inside(text, found.start())
        for found in _LONG_WORD.finditer(text)
    )


def _is_inside(text: str, place: int) -> bool:
    """Whether a letter or a dot precedes this position."""
    return place > 0 and (text[place - 1].isalnum() or text[place - 1] in "._")
