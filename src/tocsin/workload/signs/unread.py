"""Commands that cannot be read here: what a script decodes or fetches, and then runs.

Nothing is decoded for this: people should see that a script does so.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain

from tocsin.workload.commands import Line
from tocsin.workload.signs.effort import Effort
from tocsin.workload.signs.fetched import (
    EVERYTHING,
    FETCH_MARKS,
    FETCH_WORDS,
    fetched_files,
    fetched_variables,
    is_unpacked,
    runs_local_file,
)
from tocsin.workload.signs.open_signs import FETCHED_AT_ONCE

__all__ = ["DECODED", "FETCHED", "copied_files", "run_files", "unread_commands"]

DECODED = "runs what it decodes"
FETCHED = "runs what it fetches"
_MOST_NAMES = 100

_SHELL = r"(?:[\w./]{0,40}/)?(?:ba|da|z|k)?sh\b(?!\s+[\w./-]{1,200}\.\w)|\$\{?(?:SHELL|BASH)\b"
_INTERPRETER = r"(?:python[\d.]{0,5}|perl|ruby|node|php)\s{0,9}(?:-\s{0,9})?(?:$|[;&)])"
_WRAPPER = r"(?:sudo|env|timeout|nohup|nice|exec|srun|mpirun|setsid|command|xargs)\s"
_TO_SHELL = (
    rf"\|(?<!\|\|)&?\s{{0,9}}(?:[({{]\s{{0,9}}(?:cd\s[^;|]{{0,80}};\s{{0,9}})?)?(?:{_WRAPPER}(?:[^|;&]{{0,80}}?\s)?)?(?:{_SHELL})"
    r"|\|(?<!\|\|)\s{0,9}while\s[^;|]{0,60}\bread\b[^;|]{0,40};\s{0,9}do\s+eval\b|>\(\s{0,9}(?:ba|da|z|k)?sh\b"
)
_DECODE = (
    r"(?=[abdefgioprtuxz])\b(?:base(?:64|32)\b|basenc\b|openssl\s|xxd\s+(?:-\w+\s+){0,4}-\w*r|uudecode\b|rev\b|tac\b|gpg\s|(?:gun|bun)zip2?\b|[bx]?zcat\b"
    r"|gzip\s+-\w*d|xz\s+-\w*d|xzcat\b|unxz\b|zstd(?:cat)?\b|tr\s+[\"']?[\w!-]{2,}-|tr\s+-d\s|printf\s+[^|;]{0,40}(?:\\\\?x|\\\\?[0-7$]|%b|%o|%c)"
    r"|echo\s+-\w*e\s[^|;]{0,40}\\|perl\s[^|]{0,80}\b(?:pack|unpack|chr|tr|y)\b|python[\d.]{0,5}\s[^|]{0,80}(?:chr|decode|fromhex|\^)"
    r"|awk\s[^|]{0,80}(?:%c|strtonum)|od\s+-|fold\s+-|iconv\s+(?:-\w\s+)?(?:-f|--from-code)[ =]?(?:IBM|CP\d|EBCDIC|UTF-?(?:7|16|32))|dd\s+conv=)"
)
_ANY_OUTPUT = r"\b(?:printf|awk|perl|python[\d.]{0,5}|ruby|node|php|dd|jq|tr|od|fold|paste|sed|cut|grep)\s"
_INTO_SHELL = re.compile(_TO_SHELL)
_INTO_INTERPRETER = re.compile(rf"(?:{_DECODE}|{_ANY_OUTPUT}).{{0,400}}(?<!\|)\|\s{{0,9}}{_INTERPRETER}")
_EVALUATED = re.compile(
    r"(?:\beval|\b(?:ba|da|z|k)?sh\s+-\w*c|\bpython[\d.]{0,5}\s+-c|\b(?:perl|ruby)\s+-e|\bsource|\b(?:ba|da|z|k)?sh|<<<"
    rf"|(?:^|[;&|]\s{{0,9}})\.?)\s{{0,9}}[\"']?(?:(?:\$\(|`)[^;]{{0,300}}{_DECODE}|<\([^;]{{0,300}}(?:{_DECODE}|{_ANY_OUTPUT}))"
)
_CHANGED = re.compile(
    r"(?:^|[;&|]\s{0,9}|\b(?:eval|trap|do|then|exec|nohup|sh\s+-\w*c)\s+)[\"']?\$\{\w{1,40}(?:[/,^~]|:\d)[^}]{0,80}\}"
    r"[\"']?\s{0,9}(?:$|[;&|]|-|EXIT)"
)
"""A command that is only a variable with its letters changed."""
_LOCKED = re.compile(r"\bunzip\s(?:-\w+\s+){0,3}-\w*P|\b(?:7z\w?|unrar)\s+[xe]\s(?:[^|;&]{0,200}\s)?-p\S")
"""An archive with a password."""
_VARIABLE = re.compile(rf"\b([A-Za-z_]\w{{0,40}})\+?=[\"']?(?:\$\(|`)[^;]{{0,300}}{_DECODE}")
_USED = re.compile(
    r"(?:\beval\s|\bsh\s+-\w*c\s|<<<|^|;\s{0,9}|\b(?:do|then|trap|nohup|exec|srun|mpirun|sudo|env|nice|timeout|setsid|command)\s"
    r"(?:--?[\w=-]{1,20}\s+(?:\d{1,9}\w?\s+)?){0,4})\s{0,9}[\"']?\$\{?([A-Za-z_]\w{0,40})"
)
_CALLS_DECODER = re.compile(
    r"b(?:64|32|16|85)decode|a85decode|unhexlify|\bfromhex\(|marshal\.loads|decode_base64|rot_?13|(?:zlib|lzma|bz2)\.decompress"
    r"|pack\s?\(?\s?[\"'](?:H\*|u|C\*)|\bchr\(|\batob\(|Buffer\.from\(|str\.maketrans|\bbytes\(\[|rawToChar\(|intToUtf8\("
    r"|\bunquote\w{0,9}\(|:reverse\(|string\.char\(|[\"'](?:\.(?:replace|translate)\(|\[::)|\b(?:y|tr)/[^/\n]{2,60}/[^/\n]{2,60}/|\]\s?\^="
)
_CALLS_RUNNER = re.compile(
    r"exec\((?<=\bexec\()|eval(?<=\beval)\s?[({]|os\.(?:system|popen|exec\w{0,4})\(|subprocess\.(?<=\bsubprocess\.)\w"
    r"|Popen\((?<=\bPopen\()|system(?<=\bsystem)[\s(]|execSync|pty\.spawn"
)
"""Each begins with a literal character, which makes the search ten times as fast."""
_RUNNER_MARKS = ("exec", "eval", "os.popen", "subprocess.", "Popen(", "system", "pty.spawn")
_FETCHED_CODE = re.compile(r"\b(?:exec|eval)\(.{0,200}\b(?:urlopen|requests\.get)\(")
_DECODED_FILE = re.compile(
    rf"{_DECODE}[^|;&]{{0,300}}(?:>\s{{0,9}}|-out\s+|-o\s{{0,3}})[\"']?([\w./~${{}}-]{{1,200}})"
)
_COPIED = re.compile(
    r"\b(?:mv|cp|ln|install)\s(?:-\w{1,9}\s+){0,3}[\"']?([\w./~${}-]{1,200})[\"']?\s+[\"']?([\w./~${}-]{1,200})"
)
_RUN = re.compile(
    r"(?:(?:^|[;&|(\s])(?:(?:ba|da|z|k)?sh|source|\.|exec|nohup|srun|mpirun|sudo|setsid|sbatch|qsub|python[\d.]{0,5}|perl)\s+"
    r"(?:-[\w=]{1,20}\s+(?:\d{1,9}\s+)?){0,4}(?:<\s{0,9})?|\bchmod\s+(?:\+x|[ugoa]{1,4}\+\w*x|[0-7]*[1357][0-7]{0,2})\s+|(?<![.\w])\./"
    r"|(?:^|[;&|]\s{0,9})(?=[~/$]))[\"']?([\w./~${}-]{1,200})"
)
_DECODES = re.compile(_DECODE)
_CHANGED_ANYWHERE = re.compile(r"\$\{\w{1,40}(?:[/,^~]|:\d)")
_DECODE_WORDS = frozenset(
    """base64 base32 basenc openssl xxd uudecode rev tac gpg gunzip bunzip bunzip2 zcat bzcat xzcat gzip xz unxz zstd zstdcat tr
    printf echo perl python python2 python3 awk od fold unzip 7z 7za unrar iconv dd""".split()  # noqa: SIM905  # a list of words reads best so
)
_USUAL_WORDS = frozenset("printf echo python python2 python3".split())  # noqa: SIM905
_UNUSUAL_MARKS = ("\\", "%b", "%o", "%c", "chr", "decode", "fromhex", "^", "7z")
"""Most scripts have one of these words; code that decodes by them alone also has one of these marks."""
_DECODER_WORDS = frozenset(
    """b64decode b32decode b16decode b85decode a85decode unhexlify fromhex marshal decode rot13 rot zlib lzma bz2 pack unpack chr
    atob buffer maketrans bytes rawtochar inttoutf8 unquote reverse char replace translate y tr""".split()  # noqa: SIM905
)
_DECODER_MARKS = ("[::", "^=")
"""The patterns match only in a script that has one of these words or marks; searching for them is fast."""
_ENDS = re.compile(r"&&|;|\|\|")
_INSTALLERS = re.compile(
    r"conda|mamba|miniforge|get-pip|rustup|nextflow|juliaup|spack|^install", re.IGNORECASE
)
"""Programs that scientists fetch and run every day."""


def unread_commands(
    lines: Sequence[Line], text: str, words: set[str], effort: Effort
) -> Iterator[tuple[int, str]]:
    """Line and reason of the first place where a script runs what it decodes, and where it runs what it fetches.

    `text` is the lines joined, and `words` are the words in it: most scripts have none that matter.
    """
    found: set[str] = set()
    for number, why in chain(_calls(lines, text, words), _commands(lines, text, words, effort)):
        if why not in found:
            found.add(why)
            yield number, why


def _calls(lines: Sequence[Line], text: str, words: set[str]) -> Iterator[tuple[int, str]]:
    """The line of a call that decodes, in Python, Perl and similar languages, if another call runs something."""
    if words.isdisjoint(_DECODER_WORDS) and not any(mark in text for mark in _DECODER_MARKS):
        return
    if (
        any(mark in text for mark in _RUNNER_MARKS)
        and _CALLS_RUNNER.search(text)
        and (decoder := _CALLS_DECODER.search(text))
    ):
        yield lines[text.count("\n", 0, decoder.start())][0], DECODED


def _commands(lines: Sequence[Line], text: str, words: set[str], effort: Effort) -> Iterator[tuple[int, str]]:
    if not (
        not words.isdisjoint(FETCH_WORDS)
        or any(mark in text for mark in FETCH_MARKS)
        or (_may_decode(text, words) and (_DECODES.search(text) or _is_locked(text)))
        or (("|" in text or ">(" in text) and _INTO_SHELL.search(text))
        or ("${" in text and _CHANGED_ANYWHERE.search(text))
        or "<(" in text
    ):
        return
    fetches = not words.isdisjoint(FETCH_WORDS) or any(mark in text for mark in FETCH_MARKS)
    makes = any(
        effort.over() or _decoded_files(line) or (fetches and fetched_files(line)) for _, line in lines
    )
    files: dict[str, str] = {}
    ran: set[str] = set()
    variables: dict[str, str] = {}
    for number, line in lines:
        if effort.over():
            return
        if _decodes_here(line):
            yield number, DECODED
        if "exec(" in line or "eval(" in line:
            yield from ((number, FETCHED) for _ in _FETCHED_CODE.finditer(line))
        if ("$(" in line or "`" in line) and "=" in line and len(variables) < _MOST_NAMES:
            variables |= dict.fromkeys(_VARIABLE.findall(line), DECODED)
            variables |= dict.fromkeys(fetched_variables(line) if fetches else (), FETCHED)
        if variables and "$" in line:
            yield from ((number, variables[name]) for name in _USED.findall(line) if name in variables)
        for command in map(str.strip, _ENDS.split(line)) if makes else ():
            runs = run_files(command)
            yield from ((number, files[name]) for name in runs & files.keys())
            if EVERYTHING in files and runs_local_file(command):
                yield number, FETCHED
            ran.update(runs if len(ran) < _MOST_NAMES else ())
            if len(files) < _MOST_NAMES:
                made = _made(command, files)
                yield from ((number, made[name]) for name in ran & made.keys() - runs)
                files |= made


def run_files(command: str) -> set[str]:
    """The names of the files that a command runs, or makes executable."""
    return {_base(name) for name in _RUN.findall(command)}


def copied_files(command: str) -> dict[str, str]:
    """The new names of the files that a command copies, moves or links, by their old ones."""
    if not any(tool in command for tool in ("mv", "cp", "ln", "install")):
        return {}
    return {_base(old): _base(new) for old, new in _COPIED.findall(command)}


def _may_decode(text: str, words: set[str]) -> bool:
    found = words & _DECODE_WORDS
    return bool(found) and (not found <= _USUAL_WORDS or any(mark in text for mark in _UNUSUAL_MARKS))


def _decodes_here(line: str) -> bool:
    """Whether one line both decodes and runs; fetching and running is a sign of its own."""
    if ("|" in line or ">(" in line) and (
        (_INTO_SHELL.search(line) and not FETCHED_AT_ONCE.patterns[0].search(line))
        or _INTO_INTERPRETER.search(line)
    ):
        return True
    substituted = "$(" in line or "`" in line or "<(" in line
    return bool(
        (substituted and ("<(" in line or _DECODES.search(line)) and _EVALUATED.search(line))
        or ("${" in line and _CHANGED_ANYWHERE.search(line) and _CHANGED.search(line))
        or _is_locked(line)
    )


def _is_locked(text: str) -> bool:
    return ("unzip" in text or "7z" in text or "unrar" in text) and _LOCKED.search(text) is not None


def _made(line: str, files: dict[str, str]) -> dict[str, str]:
    """The files that a line decodes, fetches or renames."""
    found = dict.fromkeys(map(_base, _decoded_files(line)), DECODED)
    found |= dict.fromkeys(map(_base, fetched_files(line)), FETCHED)
    if is_unpacked(line, {name for name, why in files.items() if why == FETCHED}):
        found[EVERYTHING] = FETCHED
    for old, new in copied_files(line).items() if files else ():
        if old in files:
            found[new] = files[old]
    return {name: why for name, why in found.items() if name.strip("${}") and not _INSTALLERS.search(name)}


def _decoded_files(line: str) -> list[str]:
    return _DECODED_FILE.findall(line) if ">" in line or " -o" in line else []


def _base(path: str) -> str:
    return path.rpartition("/")[2]
