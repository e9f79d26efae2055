"""The names of mining that nothing else has: pools, miners, algorithms and protocols, in one list for all rules that look for names."""

import re

__all__ = ["NAMES", "OTHER_FORMS", "WORDS"]

WORDS = (
    "xmrig", "stratum", "monero", "supportxmr", "minexmr", "hashvault", "moneroocean", "nanopool", "2miners", "ethermine", "herominers",
    "unmineable", "zergpool", "woolypooly", "cryptonight", "kawpow", "autolykos", "equihash", "ghostrider",
    "verushash", "cpuminer", "ethminer", "ccminer", "cgminer", "bfgminer", "lolminer", "nbminer", "phoenixminer",
    "miningpoolhub", "prohashing", "monerohash", "dwarfpool", "sushipool", "slushpool", "flexpool", "flypool", "luckpool", "braiins",
    "kryptex", "wildrig", "nanominer", "cryptodredge", "coinhive", "progpow", "cuckatoo", "poolbinance", "ravenminer",
    "srbminer", "c3pool", "f2pool", "antpool", "viabtc", "xmrpool", "monerominer", "teamredminer", "nicehash", "minergate",
)  # fmt: skip
"""Whole words of letters and digits: no script of jobspec spells one of them, in whatever way."""
_AMBIGUOUS = frozenset(
    {"stratum", "monero", "2miners", "ccminer", "braiins", "equihash", "autolykos", "kryptex"}
)
"""Those that science, geology or a course may write out, too."""
OTHER_FORMS = ("donate-level", "xmr-stak", "monero-miner", "mining.subscribe")
_SCHEME = r"stratum\d?\+(?:tcp|ssl|tls)"
NAMES = re.compile(
    "|".join([_SCHEME, *(word for word in WORDS if word not in _AMBIGUOUS), *map(re.escape, OTHER_FORMS)]),
    re.IGNORECASE,
)
"""What is no accident where it is written out."""
