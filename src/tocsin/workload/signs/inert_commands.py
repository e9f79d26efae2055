"""Which commands only print, search, compare or remove, and which may come between them and people."""

import re
from collections.abc import Sequence

from tocsin.workload.signs.simple_commands import Command, unquoted

__all__ = [
    "DATABASES",
    "FILTERS",
    "INERT",
    "INERT_IN",
    "PRINTS",
    "READS",
    "SEARCHES",
    "SHOWS",
    "VIEWERS",
    "goes_to_people",
    "only_prints",
]

PRINTS = frozenset(
    "echo printf logger wall : yes cowsay figlet toilet banner notify-send dialog whiptail zenity".split()  # noqa: SIM905
)
SEARCHES = frozenset(
    """grep egrep fgrep zgrep bzgrep xzgrep rg ag ack awk gawk mawk jq yq mlr xsv csvgrep xmllint strings look ngrep tshark
    journalctl ausearch zcat""".split()  # noqa: SIM905
)
"""Their output may be run like printed text; otherwise, they only read."""
INERT = frozenset(
    """pgrep pkill killall pidof which whereis type man whatis apropos rm unlink apt apt-get yum dnf zypper apk
    iptables ip6tables nft ufw firewall-cmd [ [[ test ls stat file du wc squeue scancel sacct locate nslookup dig host whois""".split()  # noqa: SIM905
)
"""Commands that look for a program or file, compare, end or remove it, block its network or install it; none runs it."""
VIEWERS = frozenset("wall write mail mailx mutt sendmail logger more less".split())  # noqa: SIM905
FILTERS = frozenset("head tail wc column nl fold fmt cut tr cat grep egrep fgrep tac".split())  # noqa: SIM905
"""Commands between a printing one and people; none of them can write a file itself, as `sort -o` can."""
DATABASES = frozenset("sqlite3 psql mysql mariadb duckdb".split())  # noqa: SIM905
_DATABASE_ACTS = re.compile(
    r"[\"'\n]\s*\.[a-z]|\\[a-z!]|\bsystem\b|\bprogram\b|file\b|\s-(?:f|cmd|init)\b", re.IGNORECASE
)
_GIT_PRINTS = re.compile(
    r"\s*git\s+(?:-C\s+\S{1,100}\s+)?(?:commit|tag|log|grep|blame|show|notes)\s(?!.*(?:-O|--open|--exec))"
)
_PERL_PRINTS = re.compile(
    r"\s*perl\s+-[lan]*n[lan]*e\s+'\s*print\s+(?:if|unless)\s+/(?!.*(?:system|exec|qx|`|eval|\?\{|readpipe))[^']*/[a-z]*\s*;?\s*'"
)
_R_PRINTS = re.compile(r"\s*Rscript\s+(?:--\w+\s+)?-e\s+(?:'(?P<a>[^']*)'|\"(?P<b>[^\"]*)\")\s*;?$")
SHOWS = VIEWERS | {"cat", ":"}
"""Commands that show people the input of a pipe, and those that only show a here-document."""
READS = (
    SHOWS
    | PRINTS
    | INERT
    | SEARCHES
    | FILTERS
    | {
        *(
            "touch",
            "pdflatex",
            "xelatex",
            "latex",
            "bibtex",
            "biber",
            "pandoc",
            "snort",
            "suricata",
            "zeek",
            "yara",
            "clamscan",
        )
    }
)
"""Commands that may name a document without running its contents."""
_NAMES = (
    PRINTS
    | SEARCHES
    | INERT
    | VIEWERS
    | DATABASES
    | {"cat", "git", "perl", "Rscript", "trap", "for", "find", "sed"}
)
INERT_IN = re.compile(
    r"<<|#|[\"'=]|\b(?:print|message|tee|curl|"
    + "|".join(sorted(map(re.escape, _NAMES - {":", "[", "[["})))
    + r")\b|^:|\[|\)"
)
"""A line without any of these executes all of its text."""
_CALL = re.compile(
    r"\s*(?:print|cat|message|console\.log|puts|log(?:ger|ging)\.\w{1,20})\s?\([^()]*\)\s*;?\s*$"
)
"""Printing in Python, R, JavaScript and Ruby, without calling anything first."""
_INTO_FILE = re.compile(r"\b(?:file|con)\s*=")
_FILLED_IN = re.compile(r"\bf[\"'][^\"']*\{[^}]*\(")
_SETS_BESIDE = re.compile(r"\$\{\w+:?=")


def only_prints(command: Command, *, prints: bool) -> bool:
    """Whether a command does nothing but print."""
    text, head = command.text, command.head
    if _SETS_BESIDE.search(text):
        return False
    if head in SEARCHES:
        return not any(word in text for word in ("system", "getline", "exec(", '"sh', '| "'))
    if head in DATABASES:
        return _DATABASE_ACTS.search(text) is None
    if head == "Rscript" and (printed := _R_PRINTS.match(text)):
        text = printed["a"] or printed["b"] or ""
    elif head in ("git", "perl"):
        return (_GIT_PRINTS if head == "git" else _PERL_PRINTS).match(text) is not None
    calls = "(" in text and _CALL.match(unquoted(text)) is not None and not _FILLED_IN.search(text)
    if calls and _INTO_FILE.search(text):
        return False
    return prints or head in VIEWERS or calls


def goes_to_people(command: Command, following: Sequence[Command]) -> bool:
    """Whether the pipe after a command, if any, has only filters and viewers."""
    for after in following:
        if not command.text.endswith("|") or command.text.endswith("||"):
            return True
        if after.head not in VIEWERS | FILTERS or ">" in unquoted(after.text):
            return False
        command = after
    return not command.text.endswith("|")
