"""Signs of misuse in a script that remain under any name: pool addresses, wallets, algorithms, targets, wordlists."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from tocsin.scripts.text import readable
from tocsin.workload.commands import LONGEST, Line, command_lines
from tocsin.workload.signs.addressed import ADDRESSED, addressed
from tocsin.workload.signs.attempts import attempts, may_try
from tocsin.workload.signs.client_commands import redefined, without_clients
from tocsin.workload.signs.computed import computed_commands
from tocsin.workload.signs.computed_kinds import BUILT, ENDPOINT
from tocsin.workload.signs.cracking import CRACKING_SIGNS
from tocsin.workload.signs.effort import Effort
from tocsin.workload.signs.executed import executed
from tocsin.workload.signs.expansion import expanded_lines
from tocsin.workload.signs.facts import reads_itself
from tocsin.workload.signs.mining import MINING_SIGNS
from tocsin.workload.signs.named import NAMED, has_command, named
from tocsin.workload.signs.network_attacks import NETWORK_ATTACK_SIGNS
from tocsin.workload.signs.open_signs import MAY_MINE, OPEN_SIGNS
from tocsin.workload.signs.rule import CRYPTOMINING, CYBER, Rule, compiled
from tocsin.workload.signs.spelled import SPELLED, may_spell, spelled
from tocsin.workload.signs.surely_run import surely_run
from tocsin.workload.signs.unpack import Hidden, unpack
from tocsin.workload.signs.unread import unread_commands
from tocsin.workload.signs.wallets import cut_wallet, wallets
from tocsin.workload.words import words_and_options

__all__ = ["OTHER_WORDS", "Sign", "look", "signs"]


class Sign(NamedTuple):
    """A line that indicates an operation; without an operation, a line that people should see but that proves nothing."""

    line: int
    operation: str | None
    why: str
    kind: str = ""
    """What was found, without its text."""
    weak: bool = False
    """It counts only together with a second trait."""


_CUT_WALLET = "a wallet in parts"
_REQUESTED_WALLET = "a wallet in the job's request"
_DIRECTIVE = re.compile(r"\n#(?:SBATCH|PBS|BSUB|\$|COBALT|OAR|PJM|FLUX)\s[^\n]{26,}")
OTHER_WORDS = MAY_MINE | {ADDRESSED, BUILT, ENDPOINT, NAMED, SPELLED, _CUT_WALLET, _REQUESTED_WALLET}
"""Kinds of open signs that only show that a script may mine."""
MOST_SIGNS = 50
_RULES = (*MINING_SIGNS, *CRACKING_SIGNS, *NETWORK_ATTACK_SIGNS, *OPEN_SIGNS)
_BY_HOOK = {
    word: [rule for rule in _RULES if word in rule.hooks[0]] for rule in _RULES for word in rule.hooks[0]
}
_LONGEST_SHOWN = 80
_LEAST_ADDRESS = 26
_LEAST_PART = 12

_COMMENT = re.compile(r"^[ \t]*#+!?[ \t]?", re.MULTILINE)
_GLUED = ("-o", "-u")
"""Options that a miner takes with their value attached."""
_NEAR = 8
"""Lines before and after: a loop and its body are close together."""


def signs(text: str, effort: Effort | None = None) -> list[Sign]:
    """Every sign in a script, by line; the script may have been unpacked from another."""
    effort = effort or Effort()
    lines = command_lines(text)
    bare = [line for _, line in lines]
    joined = "\n".join(bare)
    if reads_itself(bare, joined):  # then its comments may be commands, too
        lines = command_lines(_COMMENT.sub("", text))
        joined = "\n".join(line for _, line in lines)
    built = expanded_lines(lines, joined)
    whole = "\n".join([joined, *(line for _, line in built)]) if built else joined
    words, options = words_and_options(whole)
    found: list[Sign] = []
    if max(map(len, words), default=0) >= _LEAST_ADDRESS:
        found += _addresses(lines)
    words |= options | {word[:2] for word in options if word[:2] in _GLUED}
    rules = asked = _asked(words)
    if len(joined) <= LONGEST:
        rules = [rule for rule in rules if rule.patterns[0].search(joined)]
    tries = may_try(words)
    renamed = redefined(joined) if any(rule.but_clients for rule in asked) else frozenset()
    found += _rule_signs(rules, lines, effort, tries=tries, renamed=renamed)
    if found:  # most scripts have none, and finding what is only printed takes longer
        may = _signs_in(_reduced(lines, executed), rules, effort, tries=tries, renamed=renamed)
        sure = (
            _signs_in(_reduced(lines, surely_run), rules, effort, tries=tries, renamed=renamed)
            if may and not effort.over()
            else []
        )
        kinds = {sign.kind for sign in sure}
        found = sure + [_in_text(sign) for sign in may if sign.kind not in kinds]
    if built and asked:
        found += _built_signs(
            lines, built, asked, effort, known={sign.kind for sign in found}, renamed=renamed
        )
    found += [Sign(number, None, why, why) for number, why in unread_commands(lines, joined, words, effort)]
    found += [Sign(number, None, why, why) for number, why in _first(computed_commands(text, effort))]
    if not any(sign.operation == CRYPTOMINING for sign in found):
        found += _in_other_words(text, lines, joined, words, effort)
    found += _unread(lines, joined, effort)
    return sorted(set(found), key=lambda sign: (sign.line, sign.why))[:MOST_SIGNS]


def _first(found: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    """The first line for each reason."""
    first: dict[str, int] = {}
    for number, why in found:
        first.setdefault(why, number)
    return [(number, why) for why, number in first.items()]


def _in_other_words(
    text: str, lines: Sequence[Line], joined: str, words: set[str], effort: Effort
) -> Iterator[Sign]:
    """Words and addresses of mining that no rule has found."""
    if (number := next(addressed(lines, joined), None)) is not None:
        yield Sign(number, None, ADDRESSED, ADDRESSED)
    if max(map(len, words), default=0) >= _LEAST_PART and (place := cut_wallet(joined)) is not None:
        yield Sign(lines[joined.count("\n", 0, place)][0], None, _CUT_WALLET, _CUT_WALLET)
    if (number := _wallet_in_request(text)) is not None:
        yield Sign(number, None, _REQUESTED_WALLET, _REQUESTED_WALLET)
    may = may_spell(text)
    if (may or has_command(text)) and (number := named(text, _reduced(lines, executed))) is not None:
        yield Sign(number, None, NAMED, NAMED)
    if (number := spelled(text, words, effort, may=may)) is not None:
        yield Sign(number, None, SPELLED, SPELLED)


def _wallet_in_request(text: str) -> int | None:
    """The line of a directive that holds a wallet."""
    text = f"\n{text}"
    return next(
        (text.count("\n", 0, found.start()) + 1 for found in _DIRECTIVE.finditer(text) if wallets(found[0])),
        None,
    )


def _unread(lines: Sequence[Line], joined: str, effort: Effort) -> Iterator[Sign]:
    """What could not be read completely."""
    if len(joined) > LONGEST and (long := next((n for n, line in lines if len(line) > LONGEST), None)):
        yield Sign(long, None, f"not read whole: a line of more than {LONGEST:,} characters")
    if effort.over():
        yield Sign(lines[0][0] if lines else 1, None, "not read whole: it takes too long")


def look(text: str, effort: Effort | None = None) -> tuple[list[Hidden], list[Sign]]:
    """What a script hides, and its signs including hidden ones, at the line that hides them."""
    effort = effort or Effort()
    packed = unpack(text, effort)
    found = [Sign(line, None, "packed too deep or too large to be read") for line in packed.beyond]
    own = signs(text, effort)
    for piece in packed.found:
        if effort.over():
            break
        hidden = signs(piece.text, effort)
        # hiding it is the second trait
        found += [sign._replace(line=piece.line, why=f"hidden: {sign.why}", weak=False) for sign in hidden]
    return packed.found, [*found, *own]


def _asked(words: set[str]) -> list[Rule]:
    """The rules that may find something."""
    touched = {rule.why + rule.line[0]: rule for word in words & _BY_HOOK.keys() for rule in _BY_HOOK[word]}
    return [rule for rule in touched.values() if not any(words.isdisjoint(group) for group in rule.hooks[1:])]


def _reduced(lines: Sequence[Line], reading: Callable[[tuple[str, ...]], tuple[str, ...]]) -> list[Line]:
    """The part of each line that counts: text that is only printed or searched for is not a sign."""
    done = reading(tuple(line for _, line in lines))
    return [(number, line) for (number, _), line in zip(lines, done, strict=True) if line]


def _signs_in(
    lines: Sequence[Line], rules: Sequence[Rule], effort: Effort, *, tries: bool, renamed: frozenset[str]
) -> list[Sign]:
    return [*_addresses(lines), *_rule_signs(rules, lines, effort, tries=tries, renamed=renamed)]


def _built_signs(
    lines: Sequence[Line],
    built: Sequence[Line],
    rules: Sequence[Rule],
    effort: Effort,
    *,
    known: set[str],
    renamed: frozenset[str],
) -> Iterator[Sign]:
    """Signs that appear only when a line is expanded; hiding them this way is a second trait."""
    if new := [
        sign
        for sign in _signs_in(built, rules, effort, tries=False, renamed=renamed)
        if sign.kind not in known
    ]:
        sure = {number for number, _ in _reduced(lines, surely_run)}
        may = {number for number, _ in _reduced(lines, executed)}
        for sign in new:
            if sign.line in may:
                yield sign._replace(weak=False) if sign.line in sure else _in_text(sign)


def _in_text(sign: Sign) -> Sign:
    """A sign in text that may be run but may also be data proves nothing."""
    return sign._replace(operation=None, why=f"in text that may be run: {sign.why}")


def _rule_signs(
    rules: Sequence[Rule], lines: Sequence[Line], effort: Effort, *, tries: bool, renamed: frozenset[str]
) -> list[Sign]:
    found = [sign for rule in rules for sign in _by_rule(rule, lines, effort, renamed)]
    if tries:
        for number, why, line in attempts(lines, effort):
            found.append(Sign(number, CYBER, f"{why}: {_shown(line)}", why))
            if len(found) >= MOST_SIGNS:
                break
    return found


def _by_rule(rule: Rule, lines: Sequence[Line], effort: Effort, renamed: frozenset[str]) -> list[Sign]:
    found = []
    first, *others = rule.patterns
    for place, (number, line) in enumerate(lines):
        if effort.over():
            break
        match = first.search(line)
        if match and rule.but_clients:
            line = without_clients(line, renamed)
            match = first.search(line)
        if match and all(pattern.search(line) for pattern in others) and _around(rule, lines, place):
            shown = _shown(_from(line, match))
            found.append(Sign(number, rule.operation, f"{rule.why}: {shown}", rule.why, rule.weak))
            if len(found) >= MOST_SIGNS:
                break
    return found


def _around(rule: Rule, lines: Sequence[Line], place: int) -> bool:
    if not (rule.near or rule.unless):
        return True
    text = "\n".join(line for _, line in lines[max(0, place - _NEAR) : place + _NEAR + 1])
    return all(pattern.search(text) for pattern in compiled(rule.near)) and not any(
        pattern.search(text) for pattern in compiled(rule.unless)
    )


def _from(line: str, match: re.Match[str]) -> str:
    """The line from the word on in which a pattern was found."""
    before = line.rfind(" ", max(0, match.start() - 40), match.start() + 1) + 1
    return line[max(before, match.start() - 40) : match.end() + _LONGEST_SHOWN]


def _addresses(lines: Sequence[Line]) -> list[Sign]:
    found = (
        Sign(number, CRYPTOMINING, f"a wallet: {_shown(address)}", "a wallet", weak)
        for number, line in lines
        if len(line) >= _LEAST_ADDRESS
        for address, weak in wallets(line)
    )
    return list(islice(found, MOST_SIGNS))


def _shown(text: str) -> str:
    text = " ".join(readable(text).split())
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
