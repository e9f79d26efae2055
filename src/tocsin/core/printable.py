"""Makes untrusted text safe: to print on one line of a terminal, a mail or a log, and to be encoded as UTF-8."""

import re

__all__ = ["printable", "without_surrogates"]

_SURROGATE = re.compile("[\ud800-\udfff]")


def printable(text: str) -> str:
    """Line ends, escape sequences, direction marks and lone surrogates become visible.

    >>> printable("a\\x1b[2J\\nb")
    'a\\\\x1b[2J\\\\nb'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def without_surrogates(text: str) -> str:
    """Lone surrogates become U+FFFD. Python keeps bytes of arguments and file names in them that are not UTF-8.

    >>> without_surrogates("a\\udc85b") == "a\\ufffdb"
    True
    """
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)
