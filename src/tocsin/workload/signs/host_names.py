"""Internet hosts that are written out in a text, whatever surrounds them.

A program must be told whom it works for. Therefore a host name is a sign wherever it occurs, and how it reaches a program
need not be followed: public job scripts have next to none, except for network clients.
"""

import re
from collections.abc import Container

from tocsin.workload.signs.host_numbers import has_number_of_host, is_local
from tocsin.workload.signs.top_level_domains import SURE

__all__ = ["has_name_with_end", "names_host", "strings_of"]

_END = re.compile(r"\.([A-Za-z][A-Za-z0-9-]{1,40})(?![\w(@-])")
"""Where a name may end."""
_NAME = re.compile(r"(?:[^\W_](?:(?:[^\W_]|-){0,61}[^\W_])?\.){0,6}[^\W_](?:[^\W_]|-){1,62}$")
"""The rest of it. The last part must be registered, so it has no underscore."""
_NOT_BEFORE = frozenset("_@/$}*\\-.")
_NOT_BEHIND = re.compile(r"\.?(?:[\w(@*{$-]|\.\w|\s{0,2}=(?!\d{2,5}\b)|::|:\$|/[\w.*${}-]{0,80}[.*]\w)")
_CAPITALS = frozenset(map(str.upper, SURE)) - frozenset("EQ NE LT LE GT GE OR".split())  # noqa: SIM905
"""The rest are operators of Fortran."""
_LONGEST = 255
_MOST_ENDS = 2000
"""With more, it is not an ordinary text."""
_INSTITUTION = re.compile(
    r"(?:^|\.)(?:edu|gov|mil|(?:edu|gov|ac|gob|mil)\.[a-z]{2}|cern\.ch)$", re.IGNORECASE
)
"""Domains reserved for institutions."""
_PUBLIC = re.compile(
    r"(?:^|\.)(?:(?:docker|ghcr|gcr|quay|nvcr|k8s|nextflow|conda)\.io|docker\.com|pkg\.dev|github(?:usercontent)?\.com|gitlab\.com"
    r"|bitbucket\.org|pypi\.org|pythonhosted\.org|anaconda\.(?:org|com)|npmjs\.org|r-project\.org|bioconductor\.org|sylabs\.io"
    r"|singularity-hub\.org|huggingface\.co|hf\.co|wandb\.ai|pytorch\.org|zenodo\.org|ensembl\.org|sourceforge\.net|apache\.org"
    r"|gnu\.org|kernel\.org|googleapis\.com|microsoft\.com|nvidia\.com|ubuntu\.com|debian\.org|python\.org|julialang\.org"
    r"|openstreetmap\.org|slack\.com)$",
    re.IGNORECASE,
)
"""Servers of code, packages, containers and data that nobody mines for."""
_WEB = re.compile(r"https?://(?:[^\s/@\"'<>]{1,200}@)?([^\s/:\"'<>()\\]{1,255})(?::\d{1,5})?", re.IGNORECASE)
_WEB_ADDRESS = re.compile(
    r"(?:git\+)?(?:https?|ftps?|s3|gs|git|ssh|docker|oras|library|shub)://[^\s\"'<>()]*", re.IGNORECASE
)
_OTHER_SCHEME = re.compile(r"\b[A-Za-z][\w+.-]{0,20}://+(?:[^\s/@:\"']{1,120}(?::[^\s/@:\"']{0,120})?@)?")
_ESCAPE = re.compile(
    r"\\u00([0-9a-fA-F]{2})|\\x([0-9a-fA-F]{2})|%x?(2[eE])|&#x([0-9a-fA-F]{2});|&#(\d{2,3});|\\0?(56|1[0-7]{2})(?!\d)"
)
"""A letter or a dot as escaped in JSON, YAML, the web and most languages."""
_ESCAPE_MARKS = ("\\x", "\\u00", "%2", "%x2", "&#")
_OCTAL = re.compile(r"\\(?=0?(?:56|1[0-7]{2})(?!\d))")
_OTHER_DOTS = str.maketrans("\u3002\uff0e\uff61", "...")
_SPELLED_DOT = re.compile(
    r"(?<=\w)(?:\[(?:\.|dot)\]|\((?:\.|dot)\)|\\\.|,\s?dc=|\sdot\s)(?=[A-Za-z]{2,}(?!\w*[\\*+?\[(]))",
    re.IGNORECASE,
)
"""A dot as people write it in an address that nobody shall click, in a pattern, or between parts of a directory's name."""
_REPLACEMENT = re.compile(
    r"[/|#,!@%](?:(?<=\b[sy]/)[^/\n]{0,200}/([^/\n]{1,200})/|(?<=\b[sy]\|)[^|\n]{0,200}\|([^|\n]{1,200})\|"
    r"|(?<=\bs[#,!@%])[^#,!@%\n]{0,200}[#,!@%]([^#,!@%\n]{1,200})[#,!@%])"
)
"""What sed, Perl and similar tools insert as a replacement. It begins with the separator, which makes the search fast."""
_REPLACEMENT_MARKS = ("s/", "s|", "s#", "s,", "s!", "s@", "s%", "y/")
_FILLED_IN = re.compile(r"[$`{\0\1\2]")
_STRING = re.compile(
    r"\"([^\"\n]{1,400})\"|'([^'\n]{1,400})'|`([^`\n]{1,400})`|\bqw?\s?[(\[{/]([^)\]}/\n]{1,400})"
)


def names_host(text: str, *, web: bool = True, institutions: bool = False) -> bool:
    """Whether a host is written out in a text, other than one that nobody mines for.

    `web`: pages on the web count, too. `institutions`: so do hosts of universities and agencies.
    """
    escaped = any(mark in text for mark in _ESCAPE_MARKS) or _OCTAL.search(text) is not None
    ascii_only = text.isascii()
    if ".]" in text or "\\." in text or "dot" in text or "dc=" in text or "(.)" in text:
        text = _SPELLED_DOT.sub(".", text)
    if not escaped and ascii_only and "." not in text and ":" not in text:  # most words
        return False
    if escaped:
        text = _ESCAPE.sub(_unescaped, text)
    if not ascii_only:
        text = text.translate(_OTHER_DOTS)
    if "://" in text:
        if web and any(_is_foreign_page(found[1]) for found in _WEB.finditer(text)):
            return True
        text = _OTHER_SCHEME.sub(" ", _WEB_ADDRESS.sub(" ", text))
    if any(mark in text for mark in _REPLACEMENT_MARKS):
        text = "\n".join(
            [text, *(first or second or third for first, second, third in _REPLACEMENT.findall(text))]
        )
    named = (found for found in _END.finditer(text) if _is_domain(found[1]))
    for count, found in enumerate(named):
        if count > _MOST_ENDS or _is_host(text, found, institutions=institutions):
            return True
    return has_number_of_host(text)


def _is_domain(end: str) -> bool:
    if end in SURE or end in _CAPITALS:
        return True
    name, dash, port = end.partition("-")
    return bool(dash) and (end[:4] == "xn--" or (port.isdigit() and name in SURE))


def _is_host(text: str, end: re.Match[str], *, institutions: bool) -> bool:
    """Whether a host name, and not a file, path or word of code, ends here."""
    if _NOT_BEHIND.match(text, end.end()):
        return False
    name = _before(text, end)
    if institutions:
        return name is not None and _PUBLIC.search(f"{name}{end[0]}") is None
    return name is not None and (not _is_trusted(f"{name}{end[0]}"))


def _is_trusted(host: str) -> bool:
    return (_INSTITUTION.search(host) or _PUBLIC.search(host)) is not None


def _before(text: str, end: re.Match[str]) -> str | None:
    """The rest of a name, if it is not part of a path or an email address."""
    start = end.start()
    while (
        start > 0
        and end.start() - start < _LONGEST
        and (text[start - 1].isalnum() or text[start - 1] in "-.")
    ):
        start -= 1
    if start > 0 and text[start - 1] in _NOT_BEFORE:
        return None
    name = text[start : end.start()]
    return name if _NAME.match(name) else None


def has_name_with_end(text: str, ends: Container[str]) -> bool:
    """Whether a possible host name ends in one of these."""
    named = (found for found in _END.finditer(text) if found[1].lower() in ends)
    return any(count > _MOST_ENDS or _before(text, found) for count, found in enumerate(named))


def _unescaped(found: re.Match[str]) -> str:
    if found[6]:
        return chr(int(found[6], 8))
    return chr(int(found[5])) if found[5] else chr(int(next(filter(None, found.groups())), 16))


def _is_foreign_page(host: str) -> bool:
    if _FILLED_IN.search(host):
        return False
    local = is_local(host)
    return not local if local is not None else "." in host and not _is_trusted(host)


def strings_of(code: str) -> str:
    """The string literals of code, one per line."""
    return "\n".join(next(filter(None, found.groups())) for found in _STRING.finditer(code))
