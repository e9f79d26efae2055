"""What the lines of a script do, without what they only say or look for.

A warning to users, an administrator's `ps | grep miner`, a course's text in a here-document: such words are no misuse.
"""

import re
from collections.abc import Sequence

__all__ = ["acts"]

_SAYING = frozenset("echo printf logger wall :".split())  # noqa: SIM905  # a list of words reads best so
_SEEKING = frozenset(
    """pgrep pkill killall pidof which whereis type hash man whatis apropos rm unlink apt apt-get yum dnf zypper apk
    iptables ip6tables nft ufw firewall-cmd""".split()  # noqa: SIM905  # a list of words reads best so
)
"""Commands that look for a program, end it, remove it, shut its way out or install it; none runs it."""
_TELLING = frozenset("wall mail mailx sendmail logger more less".split())  # noqa: SIM905  # a list of words reads best so
_SHOWING = _TELLING | {"cat", ":"}
"""Commands that only show what comes through a pipe, and those that only show a here-document."""
_BEFORE = frozenset("if then else elif do while until ! { ( time sudo command exec builtin && ||".split())  # noqa: SIM905  # a list of words reads best so
_ANY = re.compile(
    r"<<|#|\b(?:echo|printf|logger|wall|[efzp]?grep|pkill|killall|pidof|which|whereis|type|hash|man|whatis|apropos|rm|unlink"
    r"|apt|yum|dnf|zypper|apk|ip6?tables|nft|ufw|firewall-cmd|find|awk|sed)\b|^:"
)
"""A line without any of these is what it does."""
_PART = re.compile(
    r"(?P<quoted>\"(?:[^\"\\]|\\.)*+\"|'[^']*+')|(?P<end>\|\|?|&&|;;?|(?<![<>])&(?!>))|(?P<comment>(?<!\S)\#.*)"
    r"|(?P<rest>\\.|[^\"'\\|&;#\s]++|.)"
)
_SAFE_TARGET = re.compile(
    r"\d?>>?\s*(?:&\s*\d|/dev/(?:null|stderr|stdout|tty)|/etc/hosts|[^\s;|&<>]{1,200}\.(?:md|rst|html?|tex|log))(?=\s|$)"
)
_RUNS_TEXT = re.compile(
    r"\|\s*(?:sudo\s+)?(?:\S{0,40}/)?(?:(?:ba|da|z|k|c|tc)?sh|python[\d.]*|perl|ruby|ssh|at|crontab)\b"
    r"|\beval\b|<\(|(?:^|[;\s])(?:[)}]|done|fi)\s*(?:\||\d?>)|\bexec\s*\d?>"
)
"""A script with any of these may run what it prints, so that nothing in it is only said."""
_SOUGHT = re.compile(
    r"\b[efzp]?grep\s+(?:-[\w-]{1,20}(?:=\S{1,60})?\s+){0,6}(?:\"[^\"]{0,400}\"|'[^']{0,400}'|[^\s|;&\"'<>()]{1,200})"
    r"|\b(?:pgrep|pkill|killall|pidof)\s+(?:-[\w-]{1,20}\s+){0,6}[\w.*-]{1,100}"
    r"|-i?name\s+(?:\"[^\"]{0,200}\"|'[^']{0,200}'|[^\s;|&]{1,200})"
    r"|\bawk\s+(?:-\S{1,20}\s+){0,3}'\s*!?/[^/']{0,200}/|\bsed\s+(?:-\w{1,9}\s+){0,3}[\"']/[^/'\"]{0,200}/[dp]\b"
)
_HERE = re.compile(r"<<-?\s*([\"']?)(\w{1,60})\1")


def acts(lines: Sequence[str]) -> list[str]:
    """The lines in their order, each with what it does alone; one that does nothing is empty."""
    runs_text = any(_RUNS_TEXT.search(line) for line in lines)
    shown = _shown(lines) if not runs_text else frozenset[int]()
    return [
        "" if place in shown else _act(line, runs_text=runs_text) if _ANY.search(line) else line
        for place, line in enumerate(lines)
    ]


def _shown(lines: Sequence[str]) -> frozenset[int]:
    """The lines of here-documents that are shown to people; one without an end is none."""
    ends: dict[int, int] = {}
    after: dict[str, int] = {}
    for place in range(len(lines) - 1, -1, -1):
        if "<<" in lines[place] and (here := _HERE.search(lines[place])) and here[2] in after:
            ends[place] = after[here[2]]
        after[lines[place]] = place
    found: set[int] = set()
    last = -1
    for place in sorted(ends):
        if place > last:  # else it stands in another here-document
            last = ends[place]
            if _only_shows(lines[place]):
                found.update(range(place + 1, last))
    return frozenset(found)


def _only_shows(line: str) -> bool:
    """Whether a here-document that begins in this line goes to people, or to a file that they read."""
    head = next((word for word in line.split() if word not in _BEFORE and not word.endswith("()")), "")
    rest = _SAFE_TARGET.sub(" ", _HERE.sub(" ", line, count=1))
    return head in _SHOWING and not any(mark in rest for mark in "|>&;`$(")


def _act(line: str, *, runs_text: bool) -> str:
    """The commands of a line that do something; quoted text is one word, so a `;` in it ends nothing."""
    commands: list[str] = []
    first, last = 0, len(line)
    for part in _PART.finditer(line):
        if part.lastgroup == "comment":
            last = part.start()
        elif part.lastgroup == "end":
            commands.append(line[first : part.end()])
            first = part.end()
    commands.append(line[first:last])
    heads = [*map(_head, commands), ""]
    kept = [
        command
        for place, command in enumerate(commands)
        if not _is_idle(command, heads[place], heads[place + 1], runs_text=runs_text)
    ]
    return _SOUGHT.sub(" ", "".join(kept)).strip()


def _head(command: str) -> str:
    return next((word for word in command.split(maxsplit=6)[:6] if word not in _BEFORE), "")


def _is_idle(command: str, head: str, following: str, *, runs_text: bool) -> bool:
    """Whether a command only says or seeks."""
    if "$(" in command or "`" in command:
        return False
    if head in _SEEKING:
        return True
    if head not in _SAYING or runs_text:
        return False
    if command.endswith("|") and not command.endswith("||") and following not in _TELLING:
        return False
    return ">" not in _unquoted(_SAFE_TARGET.sub(" ", command))


def _unquoted(text: str) -> str:
    return "".join(part[0] for part in _PART.finditer(text) if part.lastgroup != "quoted")
