"""Makes untrusted text safe to print on one line: job names and scripts may reach a terminal, a mail or a log."""

__all__ = ["printable"]


def printable(text: str) -> str:
    """Line ends, escape sequences, direction marks and lone surrogates become visible.

    >>> printable("a\\x1b[2J\\nb")
    'a\\\\x1b[2J\\\\nb'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
