"""Addresses of servers in text: a host and its port, written out, in two settings, or partly computed."""

import re
from collections.abc import Iterator
from itertools import chain, islice

from tocsin.workload.signs.top_level_domains import SURE
from tocsin.workload.signs.values import NUMBER, PIECE, UNKNOWN

__all__ = [
    "FAR_HOST",
    "NEAR_HOST",
    "addresses",
    "has_address",
    "has_built_address",
    "has_host_and_port",
    "has_template",
]

_FILES = r"txt|py|sh|log|out|err|csv|json|nc|in|dat|gz|tar|sif|img|pdb|gro|xml|yaml|yml|fa|fq|bam|vcf|cpp|java|md|cfg|ini|conf|nii|nf|smk"
_HOST = (
    rf"(?:(?:\w[\w-]{{0,62}}\.){{1,6}}(?!(?:{_FILES})\b)[A-Za-z]{{2,24}}\.?|\d{{1,4}}(?:\.\d{{1,4}}){{3}}|0x[0-9a-fA-F]{{1,2}}(?:\.0x[0-9a-fA-F]{{1,2}}){{3}}"
    r"|\d{1,3}\.(?:\d{1,3}\.)?\d{4,8}|\[[0-9a-fA-F:.]{3,45}\]|\d{8,10}|0x[0-9a-fA-F]{8})"
)
_SURE_HOST = r"(?:(?:\w[\w-]{0,62}\.){1,6}[a-z]{2,24}|\d{1,3}(?:\.\d{1,3}){3})"
_SERVER = re.compile(
    r"(?:(?<![\w@.-])|(?<=[^\w]\.))(?<!//)(?!127\.|0\.0\.0\.0|localhost)"
    r"(?:(?!https?:|ftps?:|s3:|git:|ssh:|file:|docker:|root:|socks)[A-Za-z][\w+]{0,15}://(?!127\.))?(?:[^\s/@:]{1,120}@)?"
    rf"(?:{_HOST}:|{_SURE_HOST}[\"']\s{{0,3}},\s{{0,3}}[\"']?)\d{{2,7}}(?![\w.:-]|/\w)|/dev/(?:tcp|udp)/"
    rf"|(?<![\w@-])(?:ssl|tls|tcp|udp|wss?|quic)\w{{0,6}}://(?!127\.|0\.0|localhost){_HOST}:\d{{2,5}}"
)
"""A host with its port, without a web protocol; or a connection by the shell itself."""
_PORT = re.compile(r":\d\d")
_PORT_AS_WORD = re.compile(r",(?<=[\"'\s],)\s{0,3}[\"']?\d\d")
"""A text with neither these nor a connection by the shell has no such address; searching for a plain letter is fast."""
_MAY_SERVE = (
    re.compile(
        r":(?:(?<=[A-Za-z\]]:)|(?<=[A-Za-z]\.:)|(?<=\d{4}:)|(?<=\.\d:)|(?<=\.\d\d:)|(?<=\.\d\d\d:)|(?<=0x[0-9a-fA-F]{8}:))\d\d"
    ),
    re.compile(r",(?<=[\"'],)\s{0,3}[\"']?\d\d"),
    re.compile(r"/dev/(?:tcp|udp)/"),
)
"""A script without any of these has no such address. Each begins with a literal character, which makes the search fast."""
_HOST_AND_PORT = re.compile(
    rf"\b(?:host|server|address|url|pool)\w{{0,12}}\W{{1,6}}(?!127\.|0\.0|localhost){_HOST}\b[^\n]{{0,60}}\n?[^\n]{{0,60}}\bport\w{{0,3}}\W{{1,6}}\d{{2,5}}\b",
    re.IGNORECASE,
)
"""Settings of a host and a port."""
_FILLED = r"(?:\$+(?:\{[\w.]+\}|\([\w.]+\)|[\w.]++)|\{\{[^{}\n]{1,40}\}\}|`\w{1,40}'|%s|@\w{1,40}@)"
_TEMPLATE = re.compile(
    rf"(?<![\w/])(?:[\w-]+\.)?{_FILLED}{{1,5}}[\w.-]{{0,60}}:(?:{_FILLED}|\d{{4,5}})(?![\w/.:])"
    r"|(?<![\w/.%-])(?:[\w-]{2,62}\.%[A-Za-z]|%[A-Za-z]\.[\w-]{2,62}):\d{4,5}(?![\w/.:])"
)
"""A template for a host and a port that another program fills in."""
_DOTTED_TEMPLATE = re.compile(r"(?:^|[=\s\"'])\$\{[\w.]+\}(?:\.\$\{[\w.]+\})+(?=[\"'\s,;]|$)", re.MULTILINE)
"""A whole value of placeholders with nothing but dots in between, which may become a host."""
_TEMPLATE_PORT = re.compile(r":(?:[$`]|\{\{|%s|\d{4})")
"""A text without this has no such template."""
_MARK = f"[{UNKNOWN}{PIECE}]"
_BUILT_ADDRESS = re.compile(
    rf"(?<![\w/])[\w.{UNKNOWN}{PIECE}-]*{PIECE}[\w.{UNKNOWN}{PIECE}-]*:(?:\d{{2,5}}|{_MARK}+)(?![\w/.])"
    rf"|[\w.-]+\.[\w.-]+:(?:\d*{PIECE})|(?<![\w/.-])(?:[\w-]+\.)+[a-z]{{2,6}}:{UNKNOWN}(?![\w/.])"
)
"""A host and its port, part of which is a piece of the script."""
_JOINED_FROM_OUTSIDE = re.compile(
    rf"(?<![\w/.-])[A-Za-z][\w-]{{1,62}}{UNKNOWN}([a-z]{{2,10}}):\d{{2,5}}(?![\w/.:])"
)
"""Two words and a port, with something from outside in between that may be a dot."""
_NUMBERS_ADDRESS = re.compile(
    rf"(?:^|[^\w.:{_MARK[1:-1]}]){NUMBER}:(?:\d{{2,5}}|[{NUMBER}{UNKNOWN}{PIECE}])(?![\w/.:])"
)
"""Numbers that the script computes, as a host and its port."""
NEAR_HOST = re.compile(
    r"(?:^|=)(?!localhost|127|rsa:|(?i:chr)\w)[A-Za-z](?:[A-Za-z0-9]|-){0,62}:[1-9]\d{3,4}$"
)
"""A host without a domain, and a port."""
FAR_HOST = re.compile(r"(?:[A-Za-z0-9][\w-]{0,62}\.){1,6}[A-Za-z]{2,24}\b")
_LONGEST_ADDRESS = 300
_MOST_PORTS = 1000


def addresses(text: str) -> Iterator[re.Match[str]]:
    """The addresses of servers in a text."""
    if (
        (":" in text and _PORT.search(text))
        or ("," in text and _PORT_AS_WORD.search(text))
        or "/dev/" in text
    ):
        yield from _SERVER.finditer(text)


def has_built_address(text: str) -> bool:
    """Whether a value has a host and its port, part of which is a piece of the script."""
    if ":" not in text:
        return False
    if NUMBER in text and _NUMBERS_ADDRESS.search(text):
        return True
    if not (PIECE in text or UNKNOWN in text):
        return False
    return any(  # an address is within a line, and few lines of a document have all that one needs
        _BUILT_ADDRESS.search(line) or any(found[1] in SURE for found in _JOINED_FROM_OUTSIDE.finditer(line))
        for line in text.split("\n")
        if ":" in line and (PIECE in line or UNKNOWN in line)
    )


def has_host_and_port(text: str) -> bool:
    """Whether a text has a host and a port as two settings."""
    return "port" in text.lower() and _HOST_AND_PORT.search(text) is not None


def has_template(text: str) -> bool:
    """Whether a text has a template for a host, or for one and its port, that another program fills in."""
    if "}.$" in text and _DOTTED_TEMPLATE.search(text):
        return True
    return ":" in text and _TEMPLATE_PORT.search(text) is not None and _TEMPLATE.search(text) is not None


def has_address(text: str) -> bool:
    """Whether a text has the address of a server anywhere; only what precedes a port is examined.

    A text with very many ports counts as having an address, because each check takes a tenth of a millisecond.
    """
    ports = islice(chain.from_iterable(may.finditer(text) for may in _MAY_SERVE), _MOST_PORTS)
    for number, found in enumerate(ports, 1):
        if number == _MOST_PORTS or _SERVER.search(
            text, max(0, found.start() - _LONGEST_ADDRESS), found.end() + 8
        ):
            return True
    return False
