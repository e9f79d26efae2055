"""Commands that name a server to anything but people or a network client."""

import re
from collections.abc import Iterator, Sequence

from tocsin.workload.signs.file_kinds import FOR_PEOPLE, SCRIPT_FILE, is_file
from tocsin.workload.signs.host_and_port import names_host_and_port
from tocsin.workload.signs.host_names import names_host, strings_of
from tocsin.workload.signs.printing_programs import CODE
from tocsin.workload.signs.programs import DISPLAYS, NETWORK
from tocsin.workload.signs.reserved_words import DECLARES
from tocsin.workload.signs.server_addresses import addresses
from tocsin.workload.signs.statements import Statement
from tocsin.workload.signs.values import base

__all__ = ["names_server"]

_SED_SEPARATORS = re.compile(r"[/|#,]")
_PROXY_NAME = r"(?i:(?<!\w)(?:(?:https?|ftps?|all|socks\d?|rsync|curl|pip|conda|npm|git|web|site|squid)_?)?prox)\w{0,12}"
"""As clients know it. A program with a variable of its own may be told anything by it."""
_PROXY = re.compile(rf"{_PROXY_NAME}[\"']?[ =:]{{1,3}}[\"']?(?:\w+://)?$")
_PROXY_OR_TUNNEL = re.compile(rf"{_PROXY.pattern}|(?<!\S)-[LRDJ]\s?[\w:$*]{{0,20}}:?$")
"""Before an address: an option or a variable for a proxy; for ssh, a tunnel."""
_PROXY_SETTING = re.compile(rf"{_PROXY_NAME}[\"']?[ =:]{{1,3}}[\"']?(?:https?://)?[^\s\"']{{1,200}}")
_LICENCE = re.compile(r"(?<![\w@])\d{4,5}@[\w.-]+(?::\d{4,5}@[\w.-]+)*(?![\w:])")
"""A licence server."""
_PEOPLE = ("1", "2", "-")
"""Descriptors whose text people see."""
_STORE = frozenset({"config", "remote"})
"""Words of clients that write a server into a file, where another program may read it."""
_SETS = DECLARES | {"", "read", "mapfile", "readarray", "select"}


def names_server(statement: Statement, name: str, *, known: bool, kept: bool) -> bool:
    """Whether a command names a server.

    `known`: the program is the system's of that name. `kept`: printed text may become a file.
    """
    files = [base(target) for operator, target in statement.redirections if is_file(operator, target)]
    whole = " ".join(_texts(statement, files))
    if not (
        "." in whole or ":" in whole or "/" in whole or "0x" in whole or name in _SETS or not whole.isascii()
    ):
        return False
    stores = statement.words[-3:-2] == ["config"] or not _STORE.isdisjoint(statement.words[:3])
    if known and name in NETWORK and not stores:
        return "telnet://" in whole
    if name == ":" and statement.redirections:
        return False
    if known and name in DISPLAYS and not kept and _is_for_people(statement, files):
        return False
    if name == "sed":
        whole = _SED_SEPARATORS.sub(" ", whole)
    ssh = name[:1] == "-" or "ssh" in statement.words
    named = whole
    if "@" in whole:
        named = _LICENCE.sub(lambda found: found[0].replace("@", " ").replace(":", " "), whole)
        whole = _LICENCE.sub(" ", whole)
    if "prox" in whole.lower() and (known or not name):
        named = _PROXY_SETTING.sub(" ", named)
    if stores:
        named = named.replace("ssh://", "https://")
    if not ssh and names_host(named, web=stores or name == "export"):
        return True
    if name in _SETS and names_host_and_port(statement.words):
        return True
    excused = _PROXY_OR_TUNNEL if ssh else _PROXY
    return not all(
        excused.search(whole[max(0, found.start() - 40) : found.start()]) for found in addresses(whole)
    )


def _is_for_people(statement: Statement, files: Sequence[str]) -> bool:
    """Whether the output of a command goes only to people."""
    elsewhere = any(
        operator.endswith(">&") and target not in _PEOPLE for operator, target in statement.redirections
    )
    return not (statement.pipes or elsewhere) and all(map(FOR_PEOPLE.search, files))


def _texts(statement: Statement, files: Sequence[str]) -> Iterator[str]:
    """The words and documents of a command; for code, its string literals."""
    is_code = any(CODE.match(base(word)) for word in statement.words) or any(map(SCRIPT_FILE.search, files))
    for word in statement.words:
        yield strings_of(word[1:-1]) if is_code and "(" in word else word
    for operator, target in statement.redirections:
        yield strings_of(target) if is_code and operator[:2] == "<<" else target
