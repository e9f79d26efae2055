"""Commands that tell the address of a server to somebody else than people or a program of the network."""

import re

from tocsin.workload.signs.file_kinds import PAPER, is_file
from tocsin.workload.signs.programs import KNOWN, NETWORK, SPEAKS
from tocsin.workload.signs.reserved_words import DECLARES
from tocsin.workload.signs.server_addresses import addresses, names_host
from tocsin.workload.signs.statements import Statement
from tocsin.workload.signs.told_hosts import tell_host
from tocsin.workload.signs.values import base

__all__ = ["tells_address"]

_SED_SEPARATORS = re.compile(r"[/|#,]")
_PROXY = re.compile(r"(?i:prox)\w{0,12}[\"']?[ =:]{1,3}[\"']?(?:\w+://)?$")
_PROXY_OR_TUNNEL = re.compile(rf"{_PROXY.pattern}|(?<!\S)-[LRDJ]\s?[\w:$*]{{0,20}}:?$")
"""Before an address: an option or a variable of a proxy; among the words of ssh, a tunnel."""
_SETS = DECLARES | {"", "read", "mapfile", "readarray", "select"}
_MAY_NAME_HOST = KNOWN - _SETS - {"sed"}


def tells_address(statement: Statement, name: str, *, known: bool, heard: bool) -> bool:
    """Whether a command tells the address of a server.

    `known`: the program is the one of the system with that name. `heard`: what is only said may become a file.
    """
    whole = " ".join([*statement.words, *(target for _, target in statement.redirections)])
    if known and name in NETWORK:
        return "telnet://" in whole
    if name == ":" and statement.redirections:
        return False
    if name == "sed":
        whole = _SED_SEPARATORS.sub(" ", whole)
    if name not in _MAY_NAME_HOST and names_host(whole):
        return True
    if name in _SETS and tell_host(statement.words):
        return True
    excused = _PROXY_OR_TUNNEL if name[:1] == "-" or "ssh" in statement.words else _PROXY
    if all(excused.search(whole[max(0, found.start() - 40) : found.start()]) for found in addresses(whole)):
        return False
    files = [base(target) for operator, target in statement.redirections if is_file(operator, target)]
    quiet = not statement.pipes and not heard and all(map(PAPER.search, files))
    return not (known and name in SPEAKS and quiet)
