"""Names whose text a script only shows: functions that print their arguments, and variables that nothing runs."""

import re
from collections.abc import Callable, Iterator, Sequence

__all__ = ["harmless_python", "printers", "shown_variables", "variable_of"]

_MOST_NAMES = 50
_MOST_MENTIONS = 300
_MOST_ROUNDS = 5
_LONGEST_BODY = 20
_FUNCTION = re.compile(r"\s*(?:function\s+([\w-]{1,60})\s*(?:\(\s*\))?|([\w-]{1,60})\s*\(\s*\))\s*(\{.*)?$")
_DATE = re.compile(r"\$\((?:date|hostname|basename|pwd|whoami|tput)\b[^()`]{0,80}\)")
_PRINT = r"(?:(?:echo|printf|logger|date|exit|return|local|shift|true|:)(?=[\s;]|$)[^|`<>;&]*|\}|\{)?"
_STDERR = r"\s*(?:>&2|2>&1|>\s*/dev/stderr)?\s*"
_PRINTS_ALONE = re.compile(_PRINT + _STDERR)
_PRINTS_AND_LOGS = re.compile(
    _PRINT + r"(?:\s*\|\s*(?:tee\s+(?:-a\s+)?[\w./-]{1,100}\.log|logger\b[^|;&<>`]*))?" + _STDERR
)
"""Commands that print, possibly with a copy to a log; no other output goes anywhere."""
_TEXT = r"(?:\"(?:[^\"\\]|\\.)*\"|'[^']*'|\$'(?:[^'\\]|\\.)*')"
_ASSIGNS = re.compile(
    rf"\s*(?:(?:local|readonly|typeset|declare)\s+(?:-[ar]\s+)?)?(\w+)=(?:{_TEXT}\s*;?\s*$|\()"
)
_LOOP = re.compile(r"\s*for\s+(\w+)\s+in\s")
_READ = re.compile(
    r"\s*(?:IFS=\S{0,9}\s+)?read\s+(?:-[a-z]+\s+|''\s*|\"\"\s*)*(\w+)\s*(?:\|\|\s*(?:true|:)\s*)?$"
)
_FROM_CAT = re.compile(r"\s*(?:(?:local|readonly)\s+)?(\w+)=\"?\$\(\s*cat\s*$")
_SPECIAL = re.compile(
    r"(?:BASH|GIT_|LD_|PS\d|SLURM|SBATCH|PROMPT|PATH|ENV|EDITOR|PAGER|VISUAL|SHELL|IFS|PYTHON|PERL)"
)
"""Variables that a shell or a program runs by itself."""
_SEES_ALL = re.compile(
    r"\$\{!|(?<!-)\beval\b|(?:^|[;&|{(]\s*)(?:source|\.)\s|\bset\s+-\w*a|\ballexport\b|\b(?:declare|typeset|local)\s+-\w*[nxp]"
    r"|\bcompgen\b|(?:^|[;&|]\s*)set\s*(?:\||>|$)"
)
"""With these, any variable may be used without its name being written."""
_PYTHON_ACTS = re.compile(
    r"system|[Pp]open|subprocess|\bexec|\beval|compile|pickle|marshal|spawn|fork|\bpty\b|socket|ctypes|importlib|getattr|globals|vars\(|url|request"
    r"|connect|writ|save|dump|\.to_|runpy|cffi|process|asyncio|paramiko|__|[\"'][wax]b?\+?[\"']|[\"']r\+|`|\bos\.(?!path|environ|getenv|listdir)"
)
_PYTHON_IMPORTS = re.compile(r"(?:^|;)\s*(?:import|from)\s+([\w.]+(?:\s*,\s*[\w.]+)*)")
_PYTHON_MODULES = frozenset(
    """re sys os json csv collections pathlib glob datetime time math argparse itertools functools statistics string
    pandas numpy polars matplotlib matplotlib.pyplot sklearn""".split()  # noqa: SIM905
)


def printers(lines: Sequence[str], *, logged: bool) -> frozenset[str]:
    """Functions that only print their arguments: `die`, `log`, `warn`; with `logged`, into a log as well."""
    found: dict[str, bool] = {}
    for place, line in enumerate(lines):
        if (
            ("(" in line or "function" in line)
            and (begun := _FUNCTION.match(line))
            and len(found) < _MOST_NAMES
        ):
            name = begun[1] or begun[2]
            body = _body([begun[3] or "", *lines[place + 1 : place + 1 + _LONGEST_BODY]])
            pattern = _PRINTS_AND_LOGS if logged else _PRINTS_ALONE
            parts = [
                _without_text(_DATE.sub("", part)).strip()
                for row in body or ()
                for part in re.split(r";|&&", _without_text(row))
            ]
            prints = body is not None and all("$(" not in part and pattern.fullmatch(part) for part in parts)
            found[name] = prints and found.get(name, True)  # a second definition must print, too
    return frozenset(name for name, prints in found.items() if prints)


def _body(rows: Sequence[str]) -> list[str] | None:
    """The lines of a function; None if its end is not found."""
    found: list[str] = []
    for row in rows:
        found.append(row)
        if row.strip() == "}" or (row.lstrip().startswith("{") and row.rstrip().endswith("}")):
            inside = "\n".join(found).strip()
            return inside[1:-1].split("\n") if inside.startswith("{") else None
    return None


def _without_text(row: str) -> str:
    """Quoted text without a command in it, as one word."""
    return re.sub(
        _TEXT, lambda text: "x" if "`" not in text[0] and "$(" not in _DATE.sub("", text[0]) else text[0], row
    )


def shown_variables(
    lines: Sequence[str], only_shows: Callable[[int, str, frozenset[str]], bool]
) -> frozenset[str]:
    """Variables that hold text, and that every command which names them only shows or searches for.

    `only_shows(place, name, shown)` decides for a line that names one, given that those in `shown` are such variables.
    """
    names = frozenset(_candidates(lines))
    if not names or len(names) > _MOST_NAMES or any(map(_SEES_ALL.search, lines)):
        return frozenset()
    naming = {name: [place for place, line in enumerate(lines) if name in line] for name in names}
    if sum(map(len, naming.values())) > _MOST_MENTIONS:
        return frozenset()
    for _ in range(_MOST_ROUNDS):  # one that is not only shown may be set from another
        bad = {name for name in names if not all(only_shows(place, name, names) for place in naming[name])}
        if not bad:
            return names
        names -= bad
    return frozenset()


def _candidates(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        if "=" in line or "for" in line or "read" in line:
            for pattern in (_ASSIGNS, _LOOP):
                if (found := pattern.match(line)) and not _SPECIAL.match(found[1]):
                    yield found[1]
            if "<<" in line and (name := variable_of(line.partition("<<")[0])) and not _SPECIAL.match(name):
                yield name


def variable_of(command: str) -> str | None:
    """The variable that a here-document is read into, by the text before and after its mark."""
    found = _READ.match(command) or _FROM_CAT.match(command)
    return found[1] if found else None


def harmless_python(lines: Sequence[str]) -> bool:
    """Whether a program only computes and prints: it imports nothing unknown, and calls nothing that runs or writes."""
    modules = {
        name.strip() for line in lines for names in _PYTHON_IMPORTS.findall(line) for name in names.split(",")
    }
    return modules <= _PYTHON_MODULES and not any(map(_PYTHON_ACTS.search, lines))
