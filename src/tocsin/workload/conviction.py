"""When a script is classified as misuse: for a clear sign, or for two independent traits.

Ordinary options, names and words are traits that innocent scripts have, too: a single one is shown to people but is not
enough.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from tocsin.core.verdict import SEEN_FROM
from tocsin.workload.keywords import MisuseWords, misuse_words, words_beside
from tocsin.workload.normal import Commands
from tocsin.workload.signs.cracking import CRACKER_NAME
from tocsin.workload.signs.digests import DIGEST_PROBABILITY, digest_lines
from tocsin.workload.signs.look import Sign
from tocsin.workload.signs.mining import ALGORITHM, HOST_AND_USER, MINER_NAME, POOL_NAME
from tocsin.workload.signs.network_attacks import SCANNER_NAME
from tocsin.workload.signs.rule import CRYPTOMINING, CYBER

__all__ = ["MISUSE", "SIGN_PROBABILITY", "Conviction", "convict"]

MISUSE = (CRYPTOMINING, CYBER)
SIGN_PROBABILITY = 0.98
"""Probability of an operation with a sign: none of 20,230 innocent scripts of jobspec has one, so 1 in 50 is cautious."""
_WORDS_ALONE = 0.9
"""Upper limit for words without a sign: geologists write of a stratum, economists of coins."""
_EVERYWHERE = frozenset({"md5", "sha1", "pool", "pools", "hashrate"})
"""Words of checksums, databases and economics: they do not support a name that has other meanings."""
_ORDINARY = _EVERYWHERE | {"hive", "rig", "rigs"}
"""Words that occur with misuse as well as with data."""
_ONE_TRAIT = 0.45
"""Upper limit with one trait: below the detection threshold."""
_SEEN_BY_MODEL = frozenset({HOST_AND_USER, MINER_NAME, ALGORITHM, POOL_NAME, CRACKER_NAME, SCANNER_NAME})
"""Signs whose words may be all that the model has seen, so that its opinion is not a second trait."""
_NO_WORDS = MisuseWords(frozenset(), clear=False, repeated=False, beside=frozenset())


class Conviction(NamedTuple):
    """The probability of a misuse, its evidence, and signs that were not sufficient."""

    probability: float
    lines: list[int]
    by_sign: bool
    left_open: list[Sign]


def convict(
    script: Commands,
    p: Mapping[str, float],
    signs: Sequence[Sign],
    *,
    hidden: Collection[int] = (),
    site_trained: frozenset[str] = frozenset(),
) -> dict[str, Conviction]:
    """Combine the signs of each misuse with the models' probabilities `p`.

    `hidden` are the lines whose commands were packed. Operations that a site trained on its own examples need no known
    words.
    """
    asked = any(p.get(name, 0.0) >= SEEN_FROM for name in MISUSE)
    words = misuse_words(script, sure=True) if asked else {}
    in_text = misuse_words(script, sure=False) if asked else {}
    found: dict[str, Conviction] = {}
    for name in MISUSE:
        own = [sign for sign in signs if sign.operation == name]
        value = p.get(name, 0.0)
        own_words = words.get(name, _NO_WORDS)
        if own and (
            any(not sign.weak for sign in own)
            or len({sign.kind for sign in own}) > 1
            or any(_is_supported(script, sign, value) for sign in own)
        ):
            found[name] = Conviction(max(value, SIGN_PROBABILITY), [sign.line for sign in own], True, [])
            continue
        enough = name in site_trained or _is_enough(own_words)
        lines = digest_lines(script, hidden) if name == CYBER else []
        text_words = in_text.get(name, _NO_WORDS)
        if value >= SEEN_FROM and not enough and (text_words.clear or _is_enough(text_words)):
            own = [*own, Sign(script.numbers[0], None, f"words of {name} in text that may be run", "words")]
        value = min(value, _WORDS_ALONE if enough else _ONE_TRAIT)
        found[name] = Conviction(max(value, DIGEST_PROBABILITY if lines else 0.0), lines, False, own)
    return found


def _is_supported(script: Commands, sign: Sign, probability: float) -> bool:
    """Whether a weak sign has a second trait: the model, or in its own command a wallet or two ordinary words."""
    if probability >= SEEN_FROM and sign.kind not in _SEEN_BY_MODEL:
        return True
    command: list[str] = []
    for number, line in zip(script.numbers, script.lines, strict=True):
        if number == sign.line or (command and command[-1].endswith("\\")):
            command.append(line)
    beside = words_beside(sign.operation or "", command)
    return len({word.removesuffix("s") for word in beside}) > 1 or bool(beside - _ORDINARY)


def _is_enough(words: MisuseWords) -> bool:
    """Whether words are a second trait beside the model: `&NMAP` is a Fortran namelist, `time_miner.py` reads clocks."""
    return (
        words.repeated
        or (words.clear and len(words.names) + len(words.beside - _EVERYWHERE) > 1)
        or bool(words.names and words.beside - _EVERYWHERE)
        or (len(words.beside) > 1 and bool(words.beside - _ORDINARY))
    )
