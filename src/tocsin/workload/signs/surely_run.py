"""What a script surely runs: its own commands, and text that it passes to a shell or to a program that runs it.

Only that counts as proof. Other text that may be run (test data in a file, an argument, the input of an unknown program)
is shown to people as an open sign.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from tocsin.workload.signs.documents import HERE, document_ends, text_ends
from tocsin.workload.signs.executed import executed
from tocsin.workload.signs.inert_commands import DATABASES, FILTERS, INERT, PRINTS, SEARCHES, VIEWERS
from tocsin.workload.signs.shown import variable_of
from tocsin.workload.signs.simple_commands import PREFIXES, Command, simple_commands
from tocsin.workload.signs.unread import copied_files, run_files

__all__ = ["surely_run"]

_READERS = (
    PRINTS
    | SEARCHES
    | INERT
    | VIEWERS
    | FILTERS
    | DATABASES
    | frozenset(
        """sed sort uniq tee dd paste join comm diff cmp od xxd hexdump base64 md5sum sha1sum sha256sum sha512sum b2sum cksum
        find shellcheck clamscan yara snort suricata zeek pandoc pdflatex xelatex git""".split()  # noqa: SIM905
    )
)
"""Commands that treat their arguments and input as data, unless told to run something."""
_FILE_READERS = frozenset("cat zcat head tail sort uniq paste join".split())  # noqa: SIM905
"""For these, the names of files may show what a program gets."""
_TOLD_TO_RUN = re.compile(
    r"\bsystem\b|\bgetline\b|\|\s*\"|\s-(?:exec|ok)|[\"']!|\s\$0|\s-O\b|--exec|--checkpoint-action"
)
_RUNNERS = frozenset(
    """sh bash zsh dash ksh csh tcsh fish busybox eval source . trap ssh pdsh clush at batch crontab sbatch qsub bsub parallel
    xargs su runuser tclsh expect tmux screen watch flock script vim systemd-run env coproc alias docker podman make""".split()  # noqa: SIM905
)
"""Commands that run the text that they get."""
_WRAPPERS = frozenset(
    """srun mpirun mpiexec nice ionice time timeout nohup stdbuf taskset numactl command exec sudo apptainer singularity
    xvfb-run conda micromamba poetry uv setsid""".split()  # noqa: SIM905
)
_OF_WRAPPER = re.compile(r"-|\w+=|\d+[smhd]?$|\S+\.(?:sif|img|simg)$|(?:exec|run)$")
_INTERPRETER = re.compile(
    r"(?:python[\d.]*|pypy\d?|Rscript|R|julia|perl|ruby|node|php|octave|matlab|java|lua|pytest)$"
)
_INLINE = re.compile(r"\s(?:-[a-zA-Z]*[ceEr]|-batch)\s")
_CODE_RUNS = re.compile(
    r"\bsystem\d?\b|\b[pP]open\d?\b|\bsubprocess\b|\bexec\w{0,4}\s?[(\"'{]|\bexecSync\b|\bspawn\w{0,4}\b|\bcheck_(?:call|output)\b|\bqx\b"
    r"|\bos\.execute\b|\brun\(|\bpty\b|\(`|=\s{0,9}`|\beval\b|\bsocket\b|\bexec\s"
)
"""A program with none of these runs no command."""
_CODE_FILE = re.compile(r"\.(?:py|r|jl|pl|rb|js|php|m|lua)$", re.IGNORECASE)
_ONLY_CHECKS = re.compile(r"\s*(?:ba|da|z|k)?sh\s+-n\s")
_TEXT = re.compile(r"\$?\"((?:[^\"\\]|\\.)*+)\"|'([^']*+)'")
_SEVERAL_WORDS = re.compile(r"[\s,|]")
"""A sentence, a command or a list, not a setting."""
_DATA = re.compile(r"[\s,|]|^\$\{?!?\w+(?:\[[@*]\])?\}?$")
_SUBSTITUTED = re.compile(r"[$<]\(([^()`]{0,2000})\)")
_SUBSTITUTES = ("$(", "`", "<(", ">(")
_TARGET = re.compile(r"(?:(?<![<>&])>>?\|?\s*|\btee\s+(?:-a\s+)?|\bof=)[\"']?([^\s;|&<>\"'()]{1,200})")
_RUN_BY_OTHERS = re.compile(r"\.(?:service|timer|desktop)$|cron|rc\.local$|^\.\w*(?:rc|profile|login)$")
"""Files that a system or a shell runs by itself."""
_SETTINGS = re.compile(r"\"pools?\"\s{0,9}:")
"""A miner's settings, which it reads from a file of this name unless told otherwise."""
_SETTINGS_FILE = "config.json"
_ASSIGNS = re.compile(
    r"\s*(?:export|local|readonly|typeset|declare)\s|\s*[A-Za-z_]\w*(?:\[[^\]]{0,60}\])?\+?="
)
_NAME = re.compile(r"(?:^|\s)([A-Za-z_]\w*)(?:\[[^\]]{0,60}\])?\+?=")
_VALUE = re.compile(
    r"(?:^|\s)(?:[A-Za-z_]\w*(?:\[[^\]]{0,60}\])?\+?=(?:\([^()]*\)|[^\s()]*)|-\w+|export|local|readonly|typeset|declare)(?=\s|$)"
)
_FILLS = re.compile(
    r"\b(?:read|mapfile|readarray)\s+([^<|;&]{1,200})<|\bprintf\s+-v\s+(\w+)|^\s*for\s+(\w+)\s+in\s+[^;()`]+(?:;\s*do)?$(?<!:)"
)
_USED = re.compile(r"\$\{?[!#]?([A-Za-z_]\w*)")
_FUNCTION = re.compile(r"(?:^|[;\s])(?:function\s+)?([\w-]{1,60})\s*\(\s*\)")
_BLOCK_INTO_SHELL = re.compile(r"(?:^|[;\s])(?:\}|done|\)|fi|esac)\s*\|\s*(?:ba|da|z|k)?sh\b")
_MOST_WORDS = 16
_MOST_LINES = 2000
"""The longest script of jobspec has 1,500; in a longer one, everything that may be run counts."""

Span = tuple[int, int]
"""First line and line after."""


@lru_cache(
    maxsize=128
)  # several steps need the same lines; a script may hold dozens of texts that it unpacks
def surely_run(lines: tuple[str, ...]) -> tuple[str, ...]:
    """The lines in order, each reduced to the part that is surely run."""
    if len(lines) > _MOST_LINES:
        return executed(lines)
    if any("|" in line and _BLOCK_INTO_SHELL.search(line) for line in lines):  # then what is printed is run
        return executed(lines)
    found = list(executed(lines))
    shell, documents = _parts(lines)
    functions = {name for line in lines if "(" in line for name in _FUNCTION.findall(line)}
    for first, after in shell:
        act = _commanded("\n".join(found[first:after]), functions)
        if after - first == 1 or not act:
            found[first:after] = [act, *[""] * (after - first - 1)]
    used = _drop_unused(found, lines, shell)
    ran = [line for first, after in shell for line in found[first:after] if line]
    files = _run(ran)
    for first, after in shell:  # files written by a command that only prints
        text = "\n".join(lines[first:after])
        if ">" in text and not any(found[first:after]) and not files.isdisjoint(_written(text)):
            found[first:after] = lines[first:after]
    named = {_base(word) for line in ran for word in re.split(r"[\s=]", line)} | {_SETTINGS_FILE}
    for begins, end in documents:
        if not _is_run(lines[begins], "\n".join(lines[begins + 1 : end]), files, used, named):
            found[begins + 1 : end] = [""] * (end - begins - 1)
    return tuple(found)


def _parts(lines: tuple[str, ...]) -> tuple[list[Span], list[Span]]:
    """The command lines, with multi-line quoted texts as one; and here-documents by their first and last line."""
    ends = document_ends(lines)
    closing = text_ends(lines, None)
    shell: list[Span] = []
    documents: list[Span] = []
    place = 0
    while place < len(lines):
        if (end := ends.get(place)) is not None:
            shell.append((place, place + 1))
            documents.append((place, end))
            place = end + 1
        else:
            after = closing.get(place, place + 1)
            shell.append((place, after))
            place = after
    return shell, documents


def _commanded(text: str, functions: Iterable[str]) -> str:
    """A command line without text that its commands treat as data."""
    if not text:
        return text
    if "$(" in text or "<(" in text:
        head, _ = _head(text)
        if head not in _RUNNERS and head not in functions and not head.startswith("$("):
            text = _SUBSTITUTED.sub(
                lambda inside: " " if _only_reads(inside[1], functions) else inside[0], text
            )
    kept: list[str] = []
    pipe: list[Command] = []
    for command in simple_commands(text):
        pipe.append(command)
        if not command.text.endswith("|") or command.text.endswith("||"):
            kept += _of_pipe(pipe, functions)
            pipe = []
    return "".join([*kept, *_of_pipe(pipe, functions)]).strip()


def _of_pipe(pipe: Sequence[Command], functions: Iterable[str]) -> list[str]:
    if any(_runs_input(command.text, functions) for command in pipe[1:]):
        return [command.text for command in pipe]
    return [_without_data(command.text, functions) for command in pipe]


def _runs_input(text: str, functions: Iterable[str]) -> bool:
    head, rest = _head(text)
    return (
        head in _RUNNERS
        or head in functions
        or (_INTERPRETER.match(head) is not None and rest in ([], ["-"]))
    )


def _head(text: str) -> tuple[str, list[str]]:
    """The program of a command, after those that only start another, and the words after it."""
    words = text.rstrip("|;&").split(maxsplit=_MOST_WORDS)
    place = 0
    while place < len(words) and words[place] in PREFIXES:
        place += 1
    wrapped = False
    while place < len(words) and (words[place] in _WRAPPERS or (wrapped and _OF_WRAPPER.match(words[place]))):
        wrapped = True
        place += 1
    head = words[place] if place < len(words) else ""
    return (head.strip("\"'").removeprefix("/usr").removeprefix("/bin/"), words[place + 1 :])


def _without_data(text: str, functions: Iterable[str]) -> str:
    head, _ = _head(text)
    if head in functions:
        return text
    if _ONLY_CHECKS.match(text):
        return ""
    if head in _READERS:
        if _TOLD_TO_RUN.search(text) or any(mark in text for mark in _SUBSTITUTES):
            return text
        return _TEXT.sub(" ", text) if head in _FILE_READERS else ""
    if head in _RUNNERS or head == "read":  # what a script asks people for, it needs
        return text
    if _INTERPRETER.match(head) and _INLINE.search(text):
        return text if _CODE_RUNS.search(text) else ""
    if _ASSIGNS.match(text) or ("'" not in text and '"' not in text):
        return text
    is_data = _DATA if _INTERPRETER.match(head) else _SEVERAL_WORDS
    return _TEXT.sub(lambda quoted: " x" if is_data.search(quoted[1] or quoted[2] or "") else quoted[0], text)


def _only_reads(text: str, functions: Iterable[str]) -> bool:
    heads = {_head(command.text)[0] for command in simple_commands(text)}
    return heads <= _READERS and heads.isdisjoint(functions) and not _TOLD_TO_RUN.search(text)


def _drop_unused(found: list[str], lines: Sequence[str], shell: Sequence[Span]) -> set[str]:
    """Drop the values of variables that no command uses; returns the names that are used."""
    setting: dict[str, list[Span]] = {}
    unused: set[Span] = set()
    used: set[str] = set()
    for span in shell:
        if names := _names_set("\n".join(lines[slice(*span)])):
            unused.add(span)
            for name in names:
                setting.setdefault(name, []).append(span)
        else:
            used.update(_USED.findall("\n".join(found[slice(*span)])))
    ask = list(used)
    while ask:  # a used value may hold other variables
        for span in setting.pop(ask.pop(), ()):
            if span in unused:
                unused.remove(span)
                found[slice(*span)] = lines[slice(*span)]
                new = set(_USED.findall("\n".join(lines[slice(*span)]))) - used
                used |= new
                ask += new
    for first, after in unused:
        found[first:after] = [""] * (after - first)
    return used


def _names_set(text: str) -> set[str]:
    """The variables that a line assigns, if it does nothing else."""
    if "=" in text and _ASSIGNS.match(text):
        bare = _TEXT.sub(
            lambda value: ",," if _SEVERAL_WORDS.search(value[1] or value[2] or "") else "x", text
        )
        if "," not in bare and "(" not in bare:  # a setting, which a program that this script starts may read
            return set()
        return set() if _VALUE.sub("", bare).strip(" ;\n") else set(_NAME.findall(bare))
    return {
        name
        for one in _FILLS.finditer(text)
        for words in one.groups()
        if words
        for name in words.split()
        if name.isidentifier()
    }


def _run(lines: Iterable[str]) -> set[str]:
    """The files that these lines run, including under their earlier names."""
    files: set[str] = set()
    copies: dict[str, str] = {}
    for line in lines:
        files |= run_files(line)
        copies |= copied_files(line)
        for command in simple_commands(line):
            head, rest = _head(command.text)
            if head in _RUNNERS:
                files.update(map(_base, rest))
    return files | {old for old, new in copies.items() if new in files}


def _written(text: str) -> set[str]:
    return {_base(name) for name in _TARGET.findall(text)}


def _is_run(begins: str, body: str, files: set[str], used: set[str], named: set[str]) -> bool:
    """Whether a here-document is surely run, given the line that begins it."""
    opener = HERE.sub(" ", begins)
    for command in simple_commands(opener):
        head, rest = _head(command.text)
        if _INTERPRETER.match(head) and all(word.startswith(("-", "<", ">")) for word in rest):
            return _CODE_RUNS.search(body) is not None
        if head in _RUNNERS and not _ONLY_CHECKS.match(command.text):
            return True
    written = _written(opener)
    if any(map(_RUN_BY_OTHERS.search, written)):
        return True
    if run := written & files:
        return not all(map(_CODE_FILE.search, run)) or _CODE_RUNS.search(body) is not None
    if _SETTINGS.search(body) and not written.isdisjoint(named):
        return True
    return variable_of(opener) in used or not used.isdisjoint(_names_set(f"{opener} <"))


def _base(path: str) -> str:
    return path.strip("\"'").rpartition("/")[2]
