"""Loops that try: each word of a list as a password, each word's hash against a known one, each port or address in a range.

Home-made attacks need no tool with a name. But a loop's own variable must be used as a password, a hashed word or a port;
therefore variables are followed from the loop on, in shell, Python and Perl.
"""

import re
from collections.abc import Iterator, Sequence

from tocsin.workload.commands import Line
from tocsin.workload.signs.effort import Effort

__all__ = ["attempts", "may_try"]

_LOOPS = frozenset("for foreach while xargs parallel".split())  # noqa: SIM905  # a list of words reads best so
_MEANS = frozenset(
    """login password passwd auth sshpass passphrase unzip 7z 7za unrar crypt checkpw hashlib md5sum sha1sum sha256sum
    sha512sum openssl connect telnetlib pexpect smbclient curl""".split()  # noqa: SIM905  # a list of words reads best so
)
_DOORS = frozenset("nc ncat netcat dev".split())  # noqa: SIM905  # a list of words reads best so
_KNOCKS = frozenset("-z -zv -vz -zn -nz -nzv -nvz -znv -zvn -vnz -zw1 -zvw1 -zu -uz tcp udp".split())  # noqa: SIM905  # a list of words reads best so
PASSWORDS = "password guessing"
HASHES = "guesses compared with a hash"
SCAN = "a scan of a range"
_MOST_NAMES = 200
_FEW_NAMES = 2
"""A loop over more at once goes through a table of its owner's machines."""
_LEAST_PORTS = 256
"""A service that looks for a free port tries a hundred."""
_LEAST_HOSTS = 200
"""Of the 254 in a network; the nodes of a job are fewer and have names."""

_LOOP = re.compile(
    r"\bfor(?:each)?\s{1,9}(?:my\s)?\(?\s{0,9}\$?(?P<each>\w{1,40}(?:\s{0,9},\s{0,9}\(?\w{1,40}){0,3})\)?\s{1,9}(?:in\b|\()(?P<over>[^;]{0,200})"
    r"|\bfor\s{0,9}\(\(\s{0,9}(?P<counter>\w{1,40})\s{0,9}=\s{0,9}(?P<low>\d{1,9});\s{0,9}\w{1,40}\s{0,9}<=?\s{0,9}(?P<high>\d{1,9})"
    r"|\bread\s{1,9}(?:-\w{1,9}\s{1,9}){0,3}(?P<read>[A-Za-z_]\w{0,40}(?:\s{1,9}[A-Za-z_]\w{0,40}){0,3})"
    r"|\bwhile\s{0,9}\(\s{0,9}(?:(?:my\s{1,9})?\$(?P<perl>\w{1,40})\s{0,9}=\s{0,9})?(?P<angle><)"
    r"|\b(?P<line>\w{1,40})\s{0,9}=\s{0,9}\w{1,40}\.readline\("
)
_SPAN = re.compile(
    r"range\(\s{0,9}(?:(\d{1,9})\s{0,9},\s{0,9})?(\d{1,9})|\{(\d{1,9})\.\.(\d{1,9})\}|\bseq\s{1,9}(?:(\d{1,9})\s{1,9})?(\d{1,9})|(\d{1,9})\.\.(\d{1,9})"
)
_TAKEN = re.compile(
    r"^\s{0,99}(?:my\s{1,9})?\$?(\w{1,40}(?:\s{0,9},\s{0,9}\w{1,40})?)\s{0,9}=\s{0,9}[\"']?\$?\{?(\w{1,40})\b(?!\()"
)

_MAY = re.compile(
    r"login|[Pp]ass|PASS|pwd|auth|BasicAuth|curl |crypt|checkpw|hashlib|5sum|1sum|6sum|2sum|/dev/|nc -|ncat -|netcat -|connect|unzip"
    r"|7z|unrar|smbclient|mysql|write\(|send\(|sendline\("
)
"""A line without any of these tries nothing; one search is faster than all patterns."""
_V = r"[\"'{$(]{0,4}(\w{1,40})"
_FIRST = r"[^,()]{1,100},\s{0,9}"
_ASKS = re.compile(
    r"connect|login|post|\.get\(|request|urlopen|curl|wget|ssh|telnet|ftp|smtp|imap", re.IGNORECASE
)
_PASSWORD = (
    re.compile(rf"\.login\(\s{{0,9}}{_FIRST}(\w{{1,40}})|->login\(\s{{0,9}}{_FIRST}\$(\w{{1,40}})"),
    re.compile(rf"(?:auth\s{{0,9}}=\s{{0,9}}|BasicAuth)\(\s{{0,9}}{_FIRST}(\w{{1,40}})"),
    re.compile(
        rf"\.connect\(\s{{0,9}}[^,()]{{1,100}},\s{{0,9}}\d{{1,5}}\s{{0,9}},\s{{0,9}}{_FIRST}(\w{{1,40}})"
    ),
    re.compile(rf"assword.{{0,99}}\.(?:write|send|sendline)\(\s{{0,9}}[bf]?{_V}"),
    re.compile(r"\bsshpass\s{1,9}-p\s{0,9}[\"']?\$\{?(\w{1,40})"),
    re.compile(r"\bcurl\s.{0,200}\s(?:-u|--user)[ =][\"']?[\w.@${}-]{1,60}:\$\{?(\w{1,40})"),
    re.compile(r"--passphrase[ =][\"']?\$\{?(\w{1,40})|\bpass:[\"']?\$\{?(\w{1,40})"),
    re.compile(
        r"\bunzip\s(?:.{0,99}\s)?-P\s{0,9}[\"']?\$\{?(\w{1,40})|\b(?:7z\w?|unrar)\s{1,9}[xtel]\s(?:.{0,99}\s)?-p[\"']?\$\{?(\w{1,40})"
    ),
    re.compile(r"\bsmbclient\s.{0,200}%[\"']?\$\{?(\w{1,40})|\bmysql\s(?:.{0,99}\s)?-p[\"']?\$\{?(\w{1,40})"),
)
_NAMED = re.compile(rf"(?:pass(?:word|wd)?|pwd|pw)[\"']?\s{{0,9}}(?:=>?|:)\s{{0,9}}[bf]?{_V}", re.IGNORECASE)
_HASHED = (
    re.compile(r"\bcrypt(?:\.crypt)?\(\s{0,9}\$?(\w{1,40})\b(?!\()"),
    re.compile(r"\bcheckpw\(\s{0,9}(\w{1,40})\b(?!\()"),
    re.compile(r"\bopenssl\s{1,9}passwd\s.{0,99}?\$\{?(\w{1,40})"),
    re.compile(
        r"\becho\s{1,9}-n\s{1,9}[\"']?\$\{?(\w{1,40})\}?[\"']?\s{0,9}\|\s{0,9}(?:md5|sha\d{1,3})sum\b.{0,200}=="
    ),
    re.compile(r"\bhashlib\.\w{2,10}\(\s{0,9}(\w{1,40})\b(?!\().{0,99}?digest\(\)\s{0,9}=="),
)
_DIGEST = re.compile(r"^\s{0,99}(\w{1,40})\s{0,9}=\s{0,9}hashlib\.\w{2,10}\(\s{0,9}(\w{1,40})\b(?!\()")
_EQUAL = re.compile(r"\b(\w{1,40})\s{0,9}==\s{0,9}(\w{1,40})")
_OWN = re.compile(
    r"localhost|127\.0\.0\.1|0\.0\.0\.0|::1|\bhostname\b|\$\{?HOSTNAME|gethostname|[\"']{2}\s{0,9},",
    re.IGNORECASE,
)
_KNOCK = r"\bn(?:c|cat|etcat)\s{1,9}(?:-\w{1,9}\s{1,9}(?:\d{1,5}\s{1,9})?){0,4}-\w{0,4}z\w{0,4}\s[^|;&]{0,80}"
_PORT = (
    re.compile(r"/dev/(?:tcp|udp)/[^/\s]{1,80}/[\"']?\$\{?(\w{1,40})"),
    re.compile(_KNOCK + r"\s[\"']?\$\{?(\w{1,40})"),
    re.compile(r"\.connect(?:_ex)?\(\s{0,9}\(\s{0,9}[^,()]{1,80},\s{0,9}(\w{1,40})"),
)
_HOST = (
    re.compile(_KNOCK + r"\d\.\$\{?(\w{1,40})"),
    re.compile(
        r"\.connect(?:_ex)?\(\(?\s{0,9}f?[\"'](?:\d{1,3}\.){1,3}(?:\{(\w{1,40})|%[ds][\"']\s{0,9}%\s{0,9}\(?(\w{1,40}))"
    ),
)
_FILLED = re.compile(_KNOCK + r"[\s.]\{\}|/dev/(?:tcp|udp)/[^\s{}]{0,80}\{\}")
"""Where xargs and parallel insert a number."""
_PORTS = re.compile(_KNOCK + r"\s(\d{1,5})-(\d{1,5})\b")


def may_try(words: set[str]) -> bool:
    """Whether a script with these words can try anything at all."""
    return not words.isdisjoint(_LOOPS) and (
        not words.isdisjoint(_MEANS) or not (words.isdisjoint(_DOORS) or words.isdisjoint(_KNOCKS))
    )


def attempts(lines: Sequence[Line], effort: Effort) -> Iterator[tuple[int, str, str]]:
    """Line, reason and text of each attempt."""
    each: dict[str, int] = {}
    """The loops' variables, with the size of the range that they iterate over; 0 if it is not a range."""
    digests: set[str] = set()
    before = ""
    for number, line in lines:
        if effort.over():
            return
        if len(each) < _MOST_NAMES:
            _follow(line, each)
        if (_MAY.search(line) or (digests and "==" in line)) and (why := _tried(line, before, each, digests)):
            yield number, why, line
        before = line


def _follow(line: str, each: dict[str, int]) -> None:
    for loop in _LOOP.finditer(line) if "for" in line or "read" in line or "while" in line else ():
        names = re.findall(r"\w+", loop["each"] or loop["read"] or "") or [
            loop["counter"] or loop["perl"] or loop["line"] or "_"
        ]
        if len(names) <= _FEW_NAMES:
            size = int(loop["high"]) - int(loop["low"]) if loop["counter"] else _size(loop["over"] or "")
            each |= dict.fromkeys(names, size)
    taken = _TAKEN.match(line) if each and "=" in line else None
    if taken and taken[2] in each:
        each |= dict.fromkeys(re.findall(r"\w+", taken[1]), 0)


def _size(over: str) -> int:
    """The number of values in a range."""
    if not (span := _SPAN.search(over)):
        return 0
    low, high = next((span[at], span[at + 1]) for at in (1, 3, 5, 7) if span[at + 1])
    return int(high) - int(low or 0)


def _tried(line: str, before: str, each: dict[str, int], digests: set[str]) -> str | None:
    if (
        (found := _PORTS.search(line))
        and int(found[2]) - int(found[1]) >= _LEAST_PORTS
        and not _OWN.search(line)
    ):
        return SCAN
    if _size(line) >= _LEAST_HOSTS and _FILLED.search(line):
        return SCAN
    if not each:
        return None
    given = {name for pattern in _PASSWORD for name in _names(pattern, line)}
    given |= set(_names(_PASSWORD[3], f"{before} {line}"))
    if _ASKS.search(line):
        given |= set(_names(_NAMED, line))
    if not given.isdisjoint(each):
        return PASSWORDS
    if any(name in each for pattern in _HASHED for name in _names(pattern, line)):
        return HASHES
    if (made := _DIGEST.match(line)) and made[2] in each:
        digests.add(made[1])
    if any(digests.intersection(pair.groups()) for pair in _EQUAL.finditer(line)):
        return HASHES
    for patterns, least in ((_PORT, _LEAST_PORTS), (_HOST, _LEAST_HOSTS)):
        sizes = [each.get(name, 0) for pattern in patterns for name in _names(pattern, line)]
        if max(sizes, default=0) >= least and not _OWN.search(line):
            return SCAN
    return None


def _names(pattern: re.Pattern[str], line: str) -> Iterator[str]:
    for found in pattern.finditer(line):
        yield from (name for name in found.groups() if name)
