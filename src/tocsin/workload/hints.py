"""What is known of software by its name, as columns beside the n-grams: few examples could never teach it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tocsin.workload.applications import ai_words
from tocsin.workload.words import plain_words

__all__ = ["ODD_SHARES", "by_line", "columns", "hints", "line_values", "traces"]

# Names that little else has, from the tools' own pages; signs.py tells what no new name can hide.
_MINING = frozenset(
    """xmrig xmr monero hashrate stratum nicehash ethminer cpuminer minerd ccminer cgminer bfgminer sgminer phoenixminer
    nbminer lolminer teamredminer srbminer nanominer wildrig cryptodredge nheqminer bzminer gminer bminer miniz minergate miner
    miners wallet wallets cryptonight randomx ethash etchash kawpow autolykos equihash ghostrider yespower verushash progpow
    bitcoin litecoin dogecoin ethereum ravencoin raptoreum zcash btc ltc  ethermine nanopool flypool dwarfpool
    f2pool minexmr supportxmr moneroocean c3pool unmineable zergpool hashvault herominers cryptocurrency cryptomining
    coin coins poolpass cuckatoo cuckaroo lyra2 x16r x11 scryptn beamhash""".split()  # noqa: SIM905  # a list of words reads best so
)
_CYBER = frozenset(
    """hashcat jtr ncrack masscan nmap zmap rustscan aircrack airodump aireplay airmon reaver rockyou bruteforce hping3 hping
    slowloris sqlmap metasploit msfconsole msfvenom nikto gobuster hccapx potfile rainbowcrack rcrack ophcrack synflood ddos dos
    loic hashlist hashlists hashtype hashfile cracker crackers cracked md5crack deauth bssid wpscan bruteforcer wordlist wordlists
    crackmapexec patator thc pwned pwn exploit shodan nuclei ffuf keyspace passwords ntlm botnet""".split()  # noqa: SIM905  # a list of words reads best so
)
_SETUP = frozenset(
    "install clone wget curl spack create cmake make avail tar unzip build version available path".split()  # noqa: SIM905  # a list of words reads best so
)
"""A line with one of these sets software up or looks whether it is there; that is not yet to run it."""
_TALES = (_MINING, _CYBER)
_NEAR = 3
"""Lines that speak of it: one may be chance, three are not."""

_FIRST_ODD = 2 + 2 * len(_TALES)
ODD_SHARES = (0.05, 0.2, 0.4, 0.6, 0.8)
"""Steps of the share of lines that are no text: a script of random strings says less, but still something."""


def columns() -> int:
    return _FIRST_ODD + len(ODD_SHARES)


def by_line(lines: Sequence[str]) -> NDArray[np.bool_]:
    """Which lines name software of AI, set such software up, and speak of each misuse."""
    found = np.zeros((len(lines), 2 + len(_TALES)), dtype=bool)
    words = plain_words("\n".join(lines))
    ai = ai_words(words)
    tales = [(place, words & tale) for place, tale in enumerate(_TALES, 2) if not words.isdisjoint(tale)]
    if not ai and not tales:
        return found
    for number, line in enumerate(lines):
        here = plain_words(line)
        if not ai.isdisjoint(here):
            found[number, 0 if _SETUP.isdisjoint(here) else 1] = True
        for place, known in tales:
            found[number, place] = not known.isdisjoint(here)
    return found


def hints(lines: Sequence[str], odd: NDArray[np.bool_]) -> NDArray[np.float32]:
    """One row for a script; `odd` tells which of its lines hold hardly a known n-gram."""
    told = np.count_nonzero(by_line(lines), axis=0)
    found = np.zeros(columns(), dtype=np.float32)
    found[:2] = told[:2] > 0
    found[2:_FIRST_ODD:2] = told[2:] > 0
    found[3:_FIRST_ODD:2] = told[2:] >= _NEAR
    found[_FIRST_ODD:] = (np.count_nonzero(odd) / max(len(odd), 1)) > np.array(ODD_SHARES)
    return found


def line_values(lines: Sequence[str], weights: NDArray[np.float32]) -> NDArray[np.float64]:
    """What the hints of each line weigh, by the weights of the columns of `hints`."""
    own = weights[[0, 1, *range(2, _FIRST_ODD, 2)]].astype(np.float64)
    return np.asarray(by_line(lines) @ own, dtype=np.float64)


def traces(told: NDArray[np.float32]) -> bool:
    """Whether the hints of a script speak of misuse at all."""
    return bool(told[2:_FIRST_ODD].any())
