"""What the lines of a script execute, without text that is only printed or searched for.

A warning to users, an administrator's `ps | grep miner`, a course's text in a here-document: such words are no misuse.
Text counts as printed only where nothing can run it: it goes to people, or to a document that the script never uses
again, by a command that the script has not redefined.
"""

import re
from bisect import bisect_right
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from tocsin.workload.normal import Commands
from tocsin.workload.signs.captured import captured_lines
from tocsin.workload.signs.shown import harmless_python, printers, shown_variables, variable_of

__all__ = ["executed", "executed_commands", "reads_itself"]

_PRINTS = frozenset(
    "echo printf logger wall : yes cowsay figlet toilet banner notify-send dialog whiptail zenity".split()  # noqa: SIM905
)
_SEARCHES = frozenset(
    """grep egrep fgrep zgrep bzgrep xzgrep rg ag ack awk gawk mawk jq yq mlr xsv csvgrep xmllint strings look ngrep tshark
    journalctl ausearch zcat""".split()  # noqa: SIM905
)
"""Their output may be run like printed text; without that, they only read."""
_INERT = frozenset(
    """pgrep pkill killall pidof which whereis type man whatis apropos rm unlink apt apt-get yum dnf zypper apk
    iptables ip6tables nft ufw firewall-cmd [ [[ test ls stat file du wc squeue scancel sacct locate nslookup dig host whois""".split()  # noqa: SIM905
)
"""Commands that look for a program or a file, compare, end or remove it, shut its way out or install it; none runs it."""
_VIEWERS = frozenset("wall write mail mailx mutt sendmail logger more less".split())  # noqa: SIM905
_FILTERS = frozenset("head tail wc column nl fold fmt cut tr cat grep egrep fgrep tac".split())  # noqa: SIM905
"""Commands between a printing one and people; none of them can write a file by itself, as `sort -o` can."""
_DATABASES = frozenset("sqlite3 psql mysql mariadb duckdb".split())  # noqa: SIM905
_DATABASE_ACTS = re.compile(
    r"[\"'\n]\s*\.[a-z]|\\[a-z!]|\bsystem\b|\bprogram\b|file\b|\s-(?:f|cmd|init)\b", re.IGNORECASE
)
_GIT_TELLS = re.compile(
    r"\s*git\s+(?:-C\s+\S{1,100}\s+)?(?:commit|tag|log|grep|blame|show|notes)\s(?!.*(?:-O|--open|--exec))"
)
_PERL_PRINTS = re.compile(
    r"\s*perl\s+-[lan]*n[lan]*e\s+'\s*print\s+(?:if|unless)\s+/(?!.*(?:system|exec|qx|`|eval|\?\{|readpipe))[^']*/[a-z]*\s*;?\s*'"
)
_R_PRINTS = re.compile(r"\s*Rscript\s+(?:--\w+\s+)?-e\s+(?:'(?P<a>[^']*)'|\"(?P<b>[^\"]*)\")\s*;?$")
_TRAP = re.compile(r"\s*trap\s+(?:'(?P<a>[^']*)'|\"(?P<b>[^\"$`]*)\")\s+[A-Z0-9 ]{1,60};?\s*$")
_TEE = re.compile(r"(?<![\w-])tee\s+(?:(-a|--append)\s+)?(?=[\w./~-]+\s*(?:$|[|;&<>]))")
_CASE = re.compile(
    r"\bcase\s.{1,200}?\sin\s+[^()`$;&]{1,400}\)|^\(?(?:\"[^\"$`]*\"|'[^']*'|[^\s()'\"`$;&<>])+\)(?=\s|$)"
)
"""The patterns of a `case`, with the line that begins it or alone."""
_SHOWS = _VIEWERS | {"cat", ":"}
"""Commands that show people what comes through a pipe, and those that only show a here-document."""
_READS = (
    _SHOWS
    | _PRINTS
    | _INERT
    | _SEARCHES
    | _FILTERS
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
"""Commands that may name a document without running what is written in it."""
_PREFIXES = frozenset("if then else elif do while until ! { ( time sudo command exec builtin && ||".split())  # noqa: SIM905
_NAMES = (
    _PRINTS
    | _SEARCHES
    | _INERT
    | _VIEWERS
    | _DATABASES
    | {"cat", "git", "perl", "Rscript", "trap", "for", "find", "sed"}
)
_INERT_IN = re.compile(
    r"<<|#|[\"'=]|\b(?:print|message|tee|curl|"
    + "|".join(sorted(map(re.escape, _NAMES - {":", "[", "[["})))
    + r")\b|^:|\[|\)"
)
"""A line without any of these is what it executes."""
_TOKEN = re.compile(
    r"(?P<quoted>\$'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\"|'[^']*+')|(?P<end>\|\|?|&&|;;?|(?<![<>])&(?!>))"
    r"|(?P<comment>(?<!\S)\#.*)|(?P<open>[\"'])|(?P<rest>\\.|[^\"'\\|&;#\s$]++|.)",
    re.DOTALL,
)
_CALL = re.compile(
    r"\s*(?:print|cat|message|console\.log|puts|log(?:ger|ging)\.\w{1,20})\s?\([^()]*\)\s*;?\s*$"
)
"""Printing in Python, R, JavaScript and Ruby, of nothing that is called first."""
_INTO_FILE = re.compile(r"\b(?:file|con)\s*=")
_FILLED_IN = re.compile(r"\bf[\"'][^\"']*\{[^}]*\(")
_ASSIGNS = re.compile(r"\s*\S+\s*=")
_SETS = re.compile(r"\s*(?:(?:local|readonly|typeset|declare)\s+(?:-[ar]\s+)?)?(?:(\w+)=|for\s+(\w+)\s+in\s)")
_SETS_BESIDE = re.compile(r"\$\{\w+:?=")
_PASSED_ON = ("|", "<", ">", "&", ";", "`", "$(")
_TARGET = re.compile(
    r"\d?>>?\s*(?:&\s*[12]\b|/dev/(?:null|stderr|stdout|tty)|/etc/hosts"
    r"|(?P<document>[^\s;|&<>$`*?\"']{1,200}\.(?:md|rst|html?|tex|log|txt|csv|tsv|bib|adoc|rules)|README|NOTES))(?=\s|$|[;|&])"
)
_RUNS_INPUT = re.compile(
    r"\|\s*(?:sudo\s+)?(?:\S{0,40}/)?(?:(?:(?:ba|da|z|k|c|tc)?sh|ssh|at|batch|crontab|parallel)\b"
    r"|(?:python[\d.]*|perl|ruby)\b(?!\s+(?:-[\w=]{1,20}\s+){0,3}(?:[\w./${}~-]{1,200}\.(?:py|pl|rb)\b|-\w{0,3}e\s+'s/[^'/]{0,99}/[^'/]{0,99}/g?'(?=\s|$))))"
    r"|\b(?:(?:ba|da|z|k)?sh|source|python[\d.]*|perl|ruby)\s+(?:-\w{1,9}\s+){0,3}<\(|(?:^|[;&|]\s*)\.\s+<\("
    r"|\bxargs\b.{0,200}\b(?:ba|da|z|k)?sh\b|\b(?:ba|da|z|k)?sh\s+-?\w*\s*(?:<<<|<\s*<\()"
)
"""A script with any of these may run what it prints: in the same command, in a block that goes into it, or in a file."""
_GOES_ON = re.compile(r"(?:^|[;\s])(?:[)}]|done|fi|esac)\s*(?:\||[\d&]?>)|\bexec\s*\d?>|^\||\bcoproc\b")
"""The output of a block, or of all that follows, goes elsewhere."""
_SUBSTITUTION = re.compile(r"(?:\$\(|`|<\()\s*([\w.:+-]{0,60})(?:[^()`;&]{0,200}([;&]))?")
_READS_FILES = re.compile(
    r"(?:\beval\b.{0,200}(?:\$\(|`)|<\s*<\()\s*(?:<|(?:cat|head|tail|tac|rev|sed|[gm]?awk|[ef]?grep|cut|tr|dd|base64)\b)[^)`]{0,200}[*?\[$]"
)
_EVAL = re.compile(r"(?<!-)\beval\b")
_HOOK = re.compile(
    r"\beval\s+[\"']?(?:\$\(|`)\s*(?:[\w./${}~-]{0,200}/)?(?:conda|mamba|micromamba|ssh-agent|spack|brew|pyenv|direnv|dircolors)\b"
)
"""An eval that sets up a shell, by tools that print nothing of the script's own."""
_RUNS_ANY_FILE = re.compile(
    r"(?:^|[;&|(]\s*|\b(?:do|then|else|exec|sudo|srun|nohup|time|-exec)\s+)(?:(?:ba|da|z|k)?sh|source|\.|python[\d.]*|perl|ruby)"
    r"\s+(?:-\w{1,9}\s+){0,4}(?P<name>[\"']?[^\s;|&]{0,200}[$*?\[{][^\s;|&/]{0,99})(?![^\s;|&])"
)
"""It runs a file whose name is not known here, so that any file may be it, unless its name ends otherwise."""
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|([A-Za-z_]\w*))$")
_KNOWN_END = re.compile(r"(?:\$\w+|\$\{\w+\})[\w./-]{0,200}$|^[\w./-]{1,200}$")
_DEFINED = re.compile(
    r"(?:^|[;&|{(\s])([\w.+:\[-]{1,60})\s*\(\s*\)|\bfunction\s+([\w.+:\[-]{1,60})"
    r"|\balias\s+(?:-\w\s+)?([\w.+:-]{1,60})(?:=|\s)[\"']?+(?!\3\b)|\bhash\s+-p\s+\S{1,200}\s+([\w.+:-]{1,60})"
)
_DEFINES_ANY = re.compile(
    r"\$_(?!\w)|\$\{_[}:%#/]|\bBASH_COMMAND\b|(?:^|[;&|]\s*)fc\s+-|\balias\s+(?:-\w\s+)?[\"']?[^\s=]{0,60}\$|\bBASH_ALIASES\b|\bcommand_not_found_handle\b"
)
_QUOTED_DEFINITION = re.compile(r"[\"'][^\"']{0,200}(?:\(\s*\)\s*[{(]|\balias\s+\w|\bfunction\s+\w)")
"""What an eval may define, in a text."""
_ITSELF = re.compile(
    r"(?:\b(?:sed|[gm]?awk|[efz]?grep|rg|tail|head|cut|tr|cat|perl|python[\d.]*|dd|base64|openssl|xxd|rev|tac|od|fold|while)\b"
    r"[^;|&]{0,200}\s|<\s?)[\"']?\$(?:0\b|\{0\}|\{?BASH_SOURCE)|\bscontrol\s+write\s+batch_script\b"
)
_OWN_NAMES = ("$0", "${0", "BASH_SOURCE", "batch_script")
_FLOWS = re.compile(r"[|>`<]|\$\(")
_PATTERN = re.compile(
    r"\b(?:[efzp]|bz|xz)?grep\s+(?:-[\w-]{1,20}(?:=\S{1,60})?\s+){0,6}(?:\"[^\"]{0,400}\"|'[^']{0,400}'|[^\s|;&\"'<>()]{1,200})"
    r"|\b(?:rg|ag|ack)\s+(?:-[\w-]{1,20}(?:=\S{1,60})?\s+){0,6}(?:\"[^\"]{0,400}\"|'[^']{0,400}'|[^\s|;&\"'<>()]{1,200})"
    r"|\b(?:pgrep|pkill|killall|pidof)\s+(?:-[\w-]{1,20}\s+){0,6}[\w.*-]{1,100}"
    r"|-i?name\s+(?:\"[^\"]{0,200}\"|'[^']{0,200}'|[^\s;|&]{1,200})"
    r"|\b[gm]?awk\s+(?:-\S{1,20}\s+){0,3}'[^'/]{0,80}/[^/']{0,200}/"
    r"|--comment(?:=|\s+)(?:\"[^\"$`]{0,400}\"|'[^']{0,400}')"
    r"|\bcurl\s[^;|&\"'`$]{0,400}\s(?:-d|--data(?:-raw|-binary)?|--json)[ =](?:\"(?![^\"]*method)[^\"$`]{0,2000}\"|'(?![^']*method)[^']{0,2000}')"
    r"|\bsed\s+(?:-\w{1,9}\s+){0,3}(?:\"/[^\"]{0,200}/[dp]\"|'/[^']{0,200}/[dp]')"
)
_QUOTED_OR_HERE = re.compile(
    r"\\.|(?<![^\s;&|()])#.*|\$'(?:[^'\\]|\\.)*'|'[^']*'|\"(?:[^\"\\]|\\.)*\"|(?P<here>(?<!<)<<(?!<))|(?P<open>['\"])"
)
_HERE = re.compile(r"(?<!<)<<(?!<)-?\s*(?:\\?([\w.!-]{1,60})|\"([^\"]{1,60})\"|'([^']{1,60})')")
_MOST_DOCUMENTS = 200
_MOST_RUN = 20
_MOST_QUOTED = 500
"""Lines that are read for quoted texts, beside a multiple of all lines."""
_CLOSES = {'"': re.compile(r"(?:[^\"\\]|\\.)*+\""), "'": re.compile(r"[^']*+'")}


def reads_itself(lines: Sequence[str], text: str) -> bool:
    """Whether a script reads its own text, other than to show it, so that even its comments may be run.

    `text` is the lines joined.
    """
    if not any(mark in text for mark in _OWN_NAMES):
        return False
    naming = [line for line in lines if any(mark in line for mark in _OWN_NAMES)]
    return any(_ITSELF.search(line) and _FLOWS.search(line) for line in naming)


def executed_commands(script: Commands) -> list[str]:
    """For each command of a script what it executes, wherever it stands; a line may be text here and a command there."""
    if not script.sources:
        return list(executed(script.lines))
    found: dict[str, str] = {}
    for source in script.sources:
        for line, act in zip(source, executed(source), strict=True):
            if len(act) >= len(found.get(line, "")):
                found[line] = act
    return [found.get(line, line) for line in script.lines]


@lru_cache(maxsize=4)  # several steps ask for the same lines, one after the other
def executed(lines: tuple[str, ...]) -> tuple[str, ...]:
    """The lines in their order, each with what it executes; one that executes nothing is empty."""
    context = _with_names(_context(lines), lines)
    found = list(lines)
    for first, after, body in _statements(lines, context):
        if body:  # a here-document that people read
            found[first:after] = [""] * (after - first)
        elif after - first > 1:  # one command with a quoted text of several lines
            if not _act("\n".join(lines[first:after]), context, captured=context.captures(first, after)):
                found[first:after] = [""] * (after - first)
        elif _INERT_IN.search(lines[first]):
            found[first] = _act(lines[first], context, captured=context.captures(first, after))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Context:
    """Facts about the whole script that its commands need."""

    captured: frozenset[int] | None
    """Places of the lines that print into something that may be run; None if any line may."""
    defined: frozenset[str] | None
    """Names that it gives a meaning of its own; None if any name may be one."""
    used: frozenset[str]
    """Documents that it writes and that some command may run or copy."""
    any_file: bool
    """It runs files whose names are not known."""
    cases: bool = False
    """It compares words in a `case`."""
    printers: frozenset[str] = frozenset()
    """Functions of its own that only print."""
    shown: frozenset[str] = frozenset()
    """Variables whose text is only shown."""

    def captures(self, first: int, after: int) -> bool:
        return self.captured is None or not self.captured.isdisjoint(range(first, after))

    def redefines(self, *names: str) -> bool:
        return self.defined is None or not (self.defined - self.printers).isdisjoint(names)

    def prints(self, name: str) -> bool:
        return name in _PRINTS or (name in self.printers and self.defined is not None)

    def safe(self, command: str) -> str | None:
        """The command without its harmless output; None if a document that it writes may be run."""
        for target in _TARGET.finditer(command):
            if (name := target["document"]) and (self.any_file or _base(name) in self.used):
                return None
        return _TARGET.sub(" ", command)


def _with_names(context: _Context, lines: Sequence[str]) -> _Context:
    """Add the functions and variables that only show text; where it is unclear what runs, there are none."""
    if context.captured is None or context.defined is None:
        return context
    passed = frozenset(
        place
        for first, end in _ends(lines).items()
        if _passes_on(_HERE.sub(" ", lines[first], count=1), context)
        for place in range(first + 1, end)
    )
    context = replace(context, captured=context.captured | passed)
    cases = any("case" in line and " in" in line for line in lines)
    logged = not (context.any_file or context.used)  # otherwise a log may be run
    context = replace(context, printers=printers(lines, logged=logged), cases=cases)

    def only_shows(place: int, name: str, shown: frozenset[str]) -> bool:
        line, guess = lines[place], replace(context, shown=shown)
        if _only_fills(line, guess):
            return True
        return not re.search(rf"\b{name}\b", _act(line, guess, captured=context.captures(place, place + 1)))

    return replace(context, shown=shown_variables(lines, only_shows))


def _context(lines: Sequence[str]) -> _Context:
    defined = {
        name
        for line in lines
        if "()" in line or "function" in line or "alias" in line or "hash" in line or "( )" in line
        for names in _DEFINED.findall(line)
        for name in names
        if name
    }
    names = None if any(_DEFINES_ANY.search(line) for line in lines) else frozenset(defined)
    if reads_itself(lines, "\n".join(lines)):
        return _Context(None, names, frozenset(), any_file=True)
    live = [line for before, line in pairwise(("", *lines)) if line[:1] != "#" or before.endswith("\\")]
    evals = [line for line in (_HOOK.sub("", line) for line in live if "eval" in line) if _EVAL.search(line)]
    if evals and any(map(_QUOTED_DEFINITION.search, live)):
        names = None
    runs_input = any(map(_RUNS_INPUT.search, live))
    runs_text = (
        runs_input
        or any("$(" in line or "`" in line or (defined and "$" in line) for line in evals)
        or any(map(_GOES_ON.search, live))
    )  # a variable may hold what a function printed
    captured: frozenset[int] | None = frozenset()
    if runs_text or any(_substitutes(line, defined) for line in live):
        captured = captured_lines(lines)
        if captured is None and not runs_text:
            captured = frozenset()
    documents = {
        _base(target["document"])
        for line in live
        if ">" in line or "tee" in line
        for target in _TARGET.finditer(_as_redirection(line))
        if target["document"]
    }
    any_file = (
        captured is None
        or runs_input
        or len(documents) > _MOST_DOCUMENTS
        or (bool(documents) and _runs_any_of(documents, live))
        or (bool(evals) and any(map(_READS_FILES.search, live)))
    )
    used = _used(lines, documents, captured or frozenset()) if documents and not any_file else set()
    return _Context(captured, names, frozenset(used), any_file)


def _runs_any_of(documents: set[str], lines: Sequence[str]) -> bool:
    """Whether a file of a name that is not known whole is run, and may be one of the documents."""
    names = {run["name"].strip("\"'") for line in lines for run in _RUNS_ANY_FILE.finditer(line)}
    ends = {name[at:] for name in documents for at in range(len(name))}
    text = "\n".join(lines) if names else ""
    for name in sorted(names)[:_MOST_RUN]:
        values = [name]
        if variable := _VARIABLE.search(name):
            word = variable[1] or variable[2]
            values = [value.strip("\"'") for value in re.findall(rf"^{word}=(\S+)$", text, re.MULTILINE)]
            if len(values) + len(re.findall(rf"\$(?:{word}\b|{{{word}}})", text)) < len(
                re.findall(rf"\b{word}\b", text)
            ):
                return True  # it gets its value in another way
        for value in values:
            end = re.split(r"\$\{?\w+\}?", value)[-1]
            if not end or not _KNOWN_END.search(value) or end in ends or end.endswith(tuple(documents)):
                return True
    return len(names) > _MOST_RUN


def _substitutes(line: str, functions: Container[str]) -> bool:
    """Whether a substitution holds a function of the script, or commands that may be on other lines or behind a `;`."""
    if line.count("`") % 2:
        return True
    if not ("$(" in line or "`" in line or "<(" in line):
        return False
    if line.count("(") > line.count(")"):
        return True
    return any(found[1] in functions or found[2] for found in _SUBSTITUTION.finditer(line))


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def _used(lines: Sequence[str], documents: set[str], captured: frozenset[int]) -> set[str]:
    """The documents that some command does more with than to write or to show them."""
    mentioned = re.compile("|".join(map(re.escape, sorted(documents))))
    found: set[str] = set()
    for place, line in enumerate(lines):
        if not mentioned.search(line):
            continue
        for command in _commands(_as_redirection(line)):
            rest = _TARGET.sub(" ", command.text)
            goes_on = place in captured or ">" in rest or command.text.endswith("|") or "shell" in rest
            shown = command.head in _READS and not goes_on
            found.update(() if shown else mentioned.findall(rest))
    return found


def _statements(lines: Sequence[str], context: _Context) -> Iterator[tuple[int, int, bool]]:
    """First line, line after, and whether these are a here-document's lines for people; other lines one by one.

    A quoted text or a here-document without an end is none: then each of its lines is a command.
    """
    ends, closing = _ends(lines), _closing(lines)
    place = 0
    while place < len(lines):
        if (after := closing.get(place)) is not None:
            yield place, after, False
            place = after
            continue
        yield place, place + 1, False
        end = ends.get(place)
        if end is not None:
            if (
                not context.captures(place, place + 1)
                and _only_shows(lines[place], lines[place + 1 : end], context)
            ) or _only_fills(lines[place], context):
                yield place + 1, end, True
            else:  # what is handed to another program is its commands
                yield from ((inside, inside + 1, False) for inside in range(place + 1, end))
            place = end
        place += 1


def _ends(lines: Sequence[str]) -> dict[int, int]:
    """Where the here-document ends that begins in a line. `<<` in a quoted text, of several lines too, begins none."""
    if not any("<<" in line for line in lines):
        return {}
    last, places = dict.fromkeys(_CLOSES, -1), dict[str, list[int]]()
    for place, line in enumerate(lines):
        places.setdefault(line, []).append(place)
        last.update({mark: place for mark in _CLOSES if mark in line})
    ends: dict[int, int] = {}
    mark, place = None, -1
    while (place := place + 1) < len(lines):
        line, word, at = lines[place], "", 0
        if mark and (closed := _CLOSES[mark].match(line)):
            mark, at = None, closed.end()
        while not mark and (token := _QUOTED_OR_HERE.search(line, at)):
            at = token.end()
            if token["open"] and last[token["open"]] > place:  # without an end it is an ordinary character
                mark = token["open"]
            elif not word and token["here"] and (here := _HERE.match(line, token.start())):
                word = here[1] or here[2] or here[3]
        where = places.get(word, []) if word else []
        if (after := bisect_right(where, place)) < len(where):
            ends[place] = place = where[after]
    return ends


def _closing(lines: Sequence[str]) -> dict[int, int]:
    """The line after a quoted text that begins in a line of a printing command and ends in a later one."""
    found: dict[int, int] = {}
    place, work = 0, _MOST_QUOTED + 8 * len(lines)
    while place < len(lines):
        after = place + 1
        if "'" in lines[place] or '"' in lines[place]:
            command = _commands(lines[place])[-1]
            mark = command.open if command.head in _PRINTS else None
            while mark and after < len(lines) and work > 0:
                mark = _open_after(lines[after], mark)
                after, work = after + 1, work - 1
            if mark:  # it never ends
                after = place + 1
            elif after > place + 1:
                found[place] = after
        place = after
    return found


def _open_after(line: str, mark: str) -> str | None:
    """The quote that is open at the end of a line that begins inside a quoted text."""
    end = _CLOSES[mark].match(line)
    return mark if end is None else _commands(line[end.end() :])[-1].open


def _only_fills(line: str, context: _Context) -> bool:
    """Whether a here-document that begins in this line becomes a variable that is only shown."""
    return bool(context.shown) and variable_of(_HERE.sub("", line, count=1)) in context.shown


def _only_shows(line: str, body: Sequence[str], context: _Context) -> bool:
    """Whether a here-document that begins in this line goes to people, or to a document that they read."""
    rest = _HERE.sub(" ", _as_redirection(line), count=1)
    first, *others = _commands(rest)
    words = [word for word in first.text.split() if word not in _PREFIXES and not word.endswith("()")]
    head = words[0] if words else ""
    if re.fullmatch(r"python[\d.]*", head) and words[1:] in ([], ["-"]) and not others:
        return not context.redefines(head) and harmless_python(body)
    if head not in _SHOWS or context.redefines(head, *(other.head for other in others)):
        return False
    if any(other.head not in _VIEWERS | _FILTERS for other in others):
        return False
    safe = context.safe(rest)
    return safe is not None and not any(mark in safe.replace("|", "", len(others)) for mark in _PASSED_ON)


def _passes_on(command: str, context: _Context) -> bool:
    """Whether the output of a command goes elsewhere than to people or to a document that they read."""
    safe = context.safe(command)
    return safe is None or any(mark in safe for mark in ("|", ">", "$(", "`"))


def _as_redirection(command: str) -> str:
    """`tee` writes what it is given as `cat` with a redirection does."""
    return (
        _TEE.sub(lambda found: f"cat {'>>' if found[1] else '>'} ", command) if "tee" in command else command
    )


class _Command(NamedTuple):
    """One command of a line, with the operator that ends it."""

    text: str
    head: str
    open: str | None = None
    """The quote that is not closed in it."""


def _commands(line: str) -> list[_Command]:
    """The commands of a line without its comment; quoted text is one word, so a `;` in it ends nothing."""
    found: list[_Command] = []
    first, last = 0, len(line)
    unclosed = None
    for token in _TOKEN.finditer(line):
        if token.lastgroup == "open":
            unclosed = token[0]
            break
        if token.lastgroup == "comment":
            last = token.start()
            break
        if token.lastgroup == "end":
            found.append(_command(line[first : token.end()]))
            first = token.end()
    found.append(_command(line[first:last])._replace(open=unclosed))
    return found


def _command(text: str) -> _Command:
    head = next((word for word in text.split(maxsplit=6)[:6] if word not in _PREFIXES), "")
    return _Command(text, head.removeprefix("/usr").removeprefix("/bin/"))


def _act(line: str, context: _Context, *, captured: bool) -> str:
    """The commands of a line that do something."""
    if context.cases and ")" in line:
        line = _CASE.sub(" ", line)
    commands = _commands(line)
    kept = [
        command.text
        for place, command in enumerate(commands)
        if not _is_idle(command, commands[place + 1 :], context, captured=captured)
    ]
    return _PATTERN.sub(" ", "".join(kept)).strip()


def _is_idle(command: _Command, following: Sequence[_Command], context: _Context, *, captured: bool) -> bool:
    """Whether a command only prints, searches or compares."""
    text, head = command.text, command.head
    after = following[0].head if following else ""
    if _sets_shown_text(text, context):
        return True
    if "$(" in text or "`" in text or context.redefines(head, after):
        return False
    if head == "trap" and (trapped := _TRAP.match(text)):
        return not _act(trapped["a"] or trapped["b"] or "", context, captured=captured)
    if head in _INERT:
        return not _ASSIGNS.match(text)  # in Python, a name
    if captured or not _tells(command, context) or (head == "printf" and " -v" in text):
        return False
    if "<<" in text and not ("<<<" in text and head in _VIEWERS | _SEARCHES):
        return False
    if not _goes_to_people(command, following):
        return False
    safe = context.safe(_as_redirection(text))
    return safe is not None and ">" not in _unquoted(safe)


def _sets_shown_text(text: str, context: _Context) -> bool:
    """Whether a command gives a variable text that is only shown."""
    if not context.shown or "$(" in text or "`" in text:
        return False
    found = _SETS.match(text)
    return found is not None and (found[1] or found[2]) in context.shown


def _tells(command: _Command, context: _Context) -> bool:
    """Whether the output of a command is all that it does."""
    text, head = command.text, command.head
    if _SETS_BESIDE.search(text):
        return False
    if head in _SEARCHES:
        return not any(word in text for word in ("system", "getline", "exec(", '"sh', '| "'))
    if head in _DATABASES:
        return _DATABASE_ACTS.search(text) is None
    if head == "Rscript" and (printed := _R_PRINTS.match(text)):
        text = printed["a"] or printed["b"] or ""
    elif head in ("git", "perl"):
        return (_GIT_TELLS if head == "git" else _PERL_PRINTS).match(text) is not None
    calls = "(" in text and _CALL.match(_unquoted(text)) is not None and not _FILLED_IN.search(text)
    if calls and _INTO_FILE.search(text):
        return False
    return context.prints(head) or head in _VIEWERS or calls


def _goes_to_people(command: _Command, following: Sequence[_Command]) -> bool:
    """Whether the pipe after a command, if any, has only filters and viewers."""
    for after in following:
        if not command.text.endswith("|") or command.text.endswith("||"):
            return True
        if after.head not in _VIEWERS | _FILTERS or ">" in _unquoted(after.text):
            return False
        command = after
    return not command.text.endswith("|")


def _unquoted(text: str) -> str:
    return "".join(token[0] for token in _TOKEN.finditer(text) if token.lastgroup != "quoted")
