"""Wallet addresses in text: by their shape, and by their checksum if the address has one."""

import hashlib
import re

__all__ = ["cut_wallet", "wallets"]

_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_DIGITS = {letter: place for place, letter in enumerate(_ALPHABET)}
_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_BECH32_DIGITS = {letter: place for place, letter in enumerate(_BECH32)}
_GENERATORS = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_BECH32_CHECKS = (1, 0x2BC830A3)  # bech32 (BIP 173) and bech32m (BIP 350)

_SHAPES = re.compile(
    r"(?<![A-Za-z0-9])(?=[A-Za-z0-9:]{26})(?:"  # no address is shorter
    # Monero and related coins: 95 characters, 106 with a payment id
    r"(?P<monero>[48][0-9AB][1-9A-HJ-NP-Za-km-z]{93}(?:[1-9A-HJ-NP-Za-km-z]{11})?)(?![A-Za-z0-9])"
    r"|(?P<kin>(?:Wo|Zx|iZ|ZEPHs?|SaLv|hv[xsti])[1-9A-HJ-NP-Za-km-z]{93,102})(?![A-Za-z0-9])"
    # coins whose addresses begin with their name
    r"|(?P<named>(?:kaspa|karlsen|spectre|nexa|pyrin|hoosat|nautilus|bugna|cryptix|bitcoincash|xel|cfx):[a-z0-9]{36,80}"
    r"|(?:dero1|aleo1|xch1|prl1)[02-9ac-hj-np-z]{50,70})(?![A-Za-z0-9])"
    r"|(?P<bech32>(?:bc|ltc|tb)1[02-9ac-hj-np-z]{25,71})(?![A-Za-z0-9])"
    r"|(?P<base58>[1-9A-HJ-NP-Za-km-z]{26,36})(?![A-Za-z0-9])"
    r"|(?P<ether>0x[0-9a-fA-F]{40})(?![A-Za-z0-9]))"
)


_PART = re.compile(r"(?<![A-Za-z0-9])[1-9A-HJ-NP-Za-km-z]{12,94}(?![A-Za-z0-9])")
_FIRST_PART = re.compile(r"[48](?<![A-Za-z0-9].)[0-9AB][1-9A-HJ-NP-Za-km-z]{10,92}(?![A-Za-z0-9])")
_LENGTHS = (95, 106)
_MOST_PARTS = 8


def cut_wallet(text: str) -> int | None:
    """Where a Monero address begins that is split into consecutive parts."""
    if not _FIRST_PART.search(text):
        return None
    parts = [part for part in _PART.finditer(text) if _is_mixed(part[0])]
    for place, first in enumerate(parts):
        if first[0][0] in "48" and first[0][1] in "0123456789AB":
            length = 0
            for part in parts[place : place + _MOST_PARTS]:
                length += len(part[0])
                if length in _LENGTHS:
                    return first.start()
    return None


def _is_mixed(part: str) -> bool:
    """Whether a part of an address may be random letters: lower and upper case."""
    return not (part.islower() or part.isupper() or part.isdigit() or part.istitle())


def wallets(line: str) -> list[tuple[str, bool]]:
    """The addresses in a line, each with whether people other than miners also write such ones: Bitcoin and its descendants,
    Monero, Ethereum, and coins whose addresses begin with their names.

    An Ethereum address cannot be distinguished by a checksum from a plain number of 160 bits; it counts if the line
    mentions a wallet, a pool or a user.
    """
    found = []
    for shape in _SHAPES.finditer(line):
        kind, text = shape.lastgroup, shape[0]
        if (
            kind in ("monero", "kin", "named")
            or (kind == "bech32" and _is_bech32(text))
            or (kind == "base58" and _is_base58check(text))
            or (kind == "ether" and _CONTEXT.search(line))
        ):
            found.append((text, kind in ("bech32", "base58", "ether")))
    return found


_CONTEXT = re.compile(
    r"wallet|pool|worker|(?:^|\s)-(?:u|-user|wal|ewal)\b|farm|\bminer?\b|ethash", re.IGNORECASE
)


def _is_base58check(text: str) -> bool:
    """Whether the last four bytes are the checksum of the others (a version of 1 or 2 bytes and 20 of a hash)."""
    if text.isdigit() or (text.isalpha() and (text.islower() or text.isupper())):
        return False
    number = 0
    for letter in text:
        number = number * 58 + _DIGITS[letter]
    content = number.to_bytes(28, "big")
    zeros = len(text) - len(text.lstrip("1"))
    body = b"\0" * zeros + content.lstrip(b"\0")
    if len(body) not in (25, 26):
        return False
    return hashlib.sha256(hashlib.sha256(body[:-4]).digest()).digest()[:4] == body[-4:]


def _is_bech32(text: str) -> bool:
    prefix, _, data = text.rpartition("1")
    values = [ord(c) >> 5 for c in prefix] + [0] + [ord(c) & 31 for c in prefix]
    values += [_BECH32_DIGITS.get(c, 0) for c in data]
    check = 1
    for value in values:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ value
        for bit, generator in enumerate(_GENERATORS):
            check ^= generator if (top >> bit) & 1 else 0
    return check in _BECH32_CHECKS
