"""Signs of misuse in a script that no new name can hide: pool addresses, wallets, algorithms, targets, wordlists."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from tocsin.scripts.text import readable
from tocsin.workload.commands import Line, command_lines
from tocsin.workload.cyber_signs import CYBER_SIGNS, OPEN_SIGNS
from tocsin.workload.mining_signs import MINING_SIGNS
from tocsin.workload.sign_rules import CRYPTOMINING, Rule
from tocsin.workload.wallets import wallets

__all__ = ["Sign", "signs"]


class Sign(NamedTuple):
    """A line that speaks for an operation; without one, a line that people should see and that proves nothing."""

    line: int
    operation: str | None
    why: str


MOST_SIGNS = 50
_RULES = (*MINING_SIGNS, *CYBER_SIGNS, *OPEN_SIGNS)
_LONGEST_SHOWN = 80
_LEAST_ADDRESS = 26

_SAID = re.compile(r"(?:echo|printf|logger|wall)\s[^|>;&`$]{0,4096}")
_LOOKED_FOR = re.compile(r"\b[efzp]?grep\s+(?:-[\w-]{1,20}\s+){0,6}(?:\"[^\"]{0,400}\"|'[^']{0,400}')")

# Words are runs of letters and digits; options keep their dashes.
_WORDS = str.maketrans({chr(c): " " for c in range(128) if not chr(c).isalnum()})
_OPTIONS = str.maketrans({chr(c): " " for c in range(128) if not (chr(c).isalnum() or chr(c) == "-")})


def signs(text: str) -> list[Sign]:
    """Every sign in a script, by line; the script may be one that was unpacked from another."""
    lines = command_lines(text)
    lowered = "\n".join(line for _, line in lines).lower()
    words = set(lowered.translate(_WORDS).split())
    found: list[Sign] = []
    if any(len(word) >= _LEAST_ADDRESS for word in words):
        found += _addresses(lines)
    words.update(word for word in lowered.translate(_OPTIONS).split() if word[0] == "-")
    rules = [rule for rule in _RULES if not any(words.isdisjoint(group) for group in rule.hooks)]
    doing = _doing(lines) if rules else []
    for rule in rules:
        found += _told(rule, doing)
    return sorted(set(found), key=lambda sign: (sign.line, sign.why))[:MOST_SIGNS]


def _doing(lines: Sequence[Line]) -> list[Line]:
    """The lines without what is only said or looked for: a warning to users, an administrator's `ps | grep miner`."""
    return [
        (number, _LOOKED_FOR.sub("grep ", line) if "grep" in line else line)
        for number, line in lines
        if not _SAID.fullmatch(line)
    ]


def _told(rule: Rule, lines: Sequence[Line]) -> list[Sign]:
    found = []
    first, *others = rule.patterns
    for number, line in lines:
        match = first.search(line)
        if match and all(pattern.search(line) for pattern in others):
            found.append(Sign(number, rule.operation, f"{rule.why}: {_shown(_from(line, match))}"))
            if len(found) >= MOST_SIGNS:
                break
    return found


def _from(line: str, match: re.Match[str]) -> str:
    """The line from the word on that a pattern was found in."""
    before = line.rfind(" ", max(0, match.start() - 40), match.start() + 1) + 1
    return line[max(before, match.start() - 40) : match.end() + _LONGEST_SHOWN]


def _addresses(lines: Sequence[Line]) -> list[Sign]:
    return [
        Sign(number, CRYPTOMINING, f"a wallet: {_shown(address)}")
        for number, line in lines
        if len(line) >= _LEAST_ADDRESS
        for address in wallets(line)[:3]
    ][:MOST_SIGNS]


def _shown(text: str) -> str:
    text = " ".join(readable(text).split())
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
