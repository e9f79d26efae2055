"""Commands that a script puts together in a way that is not followed here: people should see that it does so."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain

from tocsin.workload.commands import Line
from tocsin.workload.signs.computed_names import computed_names
from tocsin.workload.signs.unread import run_files

__all__ = ["PUT_TOGETHER", "put_together"]

PUT_TOGETHER = "runs what it puts together"

_EVALUATES = re.compile(
    r"(?<![\w-])eval\s+[\"']?(?:\$\(|`)(?!.{0,200}\b(?:conda|mamba|micromamba|ssh-agent|spack|brew|pyenv|direnv|dircolors|scram\w*|modulecmd"
    r"|lmod|scontrol|\w{0,12}env|[\w./-]{1,200}\.sh|register-python-argcomplete|dbus-launch|opam|guix|keychain|parse_yaml|hook)\b)"
)
"""An eval of what a command prints, other than the tools that set up a shell so."""
_SUBSTITUTED = re.compile(
    r"(?:exec\s+)?\"?(?:\$\(|`)"
    r"(?!\s{0,3}(?:which|command|type|readlink|realpath|dirname|basename|whereis|spack|conda|brew|find|ls|echo|eval|if)\b)[^()`]{1,300}[)`][\"']?(?:\s|$)"
)
"""A command that is what another prints, other than the place of a program."""
_BEGINS = ("$(", "`", '"$(', '"`', "exec $", "exec `")
_LITERAL = r"\s?[rbu]{0,2}(?:\"[^\"\n]{0,2000}\"|'[^'\n]{0,2000}')\s?[,)]"
_CALLS = re.compile(
    rf"(?:\bos\.(?:system|popen|execute)|\bget(?:status)?output|\bexecSync|\bshell_exec|\bpassthru|(?<![.\w])system)\s?\((?!{_LITERAL}|\s?\))"
    r"|(?<![.\w])system\s+\$\w|\b(?:subprocess\.\w{3,12}|Popen)\(\s?(?:[a-z_]\w{0,40}\s?[,+%.(\[]|f[\"']|[\"'][^\"'\n]{0,500}[\"']\s?[+%.])[^\n]{0,300}shell\s?=\s?True"
)
"""A program within the script that runs a command which is not written out in its call."""
_CODE = re.compile(
    r"(?<![.\w])exec\(\s?(?:(?!open\(|compile\(|f?[\"'])[\w.(]|[$@])|\bexec[lv]p?e?\(\s?(?![\"'])\w|\bmemfd_create\b"
    r"|\bCommand::new\(|\bexec\.Command\(|\bProcessBuilder\(|\bgetRuntime\(\)\.exec\(|(?:^|[;&|]\s{0,9})(?:hash\s+-p|enable\s+-f)\s"
    r"|\b[A-Za-z_]\w{0,40}\s?\|\s?getline\b|\|\s?\\?\"(?:ba|da|z|k)?sh\b|(?<![.\w])system\s+(?:join|map|reverse|pack|sprintf|[ul]c)\b"
)
"""Code or a program that exists only while the script runs."""
_PATTERN = re.compile(
    r"(?:(?:srun|exec|nohup|mpirun|do|then)\s+)?(?!\[)(?:[\w.~/-]{0,200}/)?\w{0,40}(?:\?|\[[\w^!-]{1,20}\])[\w?.*\[\]-]{0,60}\s+-"
)
"""A program that is named by a pattern of file names, with its options."""
_JOINED = re.compile(
    r"(?:python[\d.]{0,5}|perl|ruby|node|php|lua|julia|Rscript)\s[^\n]{0,100}?-\w{0,3}[cer]\s[^\n]{0,2000}[\"'\w\])]\s?(?:\+|\.{1,2})\s?[\"'][\w+:/. ]"
)
"""One on a line that joins pieces of text, and runs something."""
_JOINS_ARGUMENTS = re.compile(
    r"\b(?:exec[lv]p?e?|system2?|spawn\w{0,4}|run|Popen|(?:check_)?call)\s?\([^\n]{0,400}?(?:[\"']\.(?:join|format)\(|\bpaste0?\()"
)
_TCL = re.compile(r"(?:^|[;\[{]\s{0,9})exec\s+\$\w{1,40}\$")
_DESCRIPTOR = re.compile(
    r"(?:\b(?:source|(?:ba|da|z|k)?sh)|(?:^|[;&|]\s{0,9})\.)\s+(?:/dev/fd/\d|<&\s{0,3}\d|/dev/stdin)|(?:ba|da|z|k)?sh\s{0,9}<&\d",
    re.MULTILINE,
)
_CHARACTERS = re.compile(
    r"\$\{\w{1,40}:\s?[^}:]{0,20}[$a-z][^}:]{0,20}:\s?1\}|\bread\s[^;|\n]{0,40}-\w{0,4}[nN] ?1\b|\bexpr\s+substr\b|\bcut\s+-c\s?[\"']?\$|\bfold\s+-w ?1\b"
)
_RUNS_VARIABLE = re.compile(
    r"(?<![\w-])eval\s|^[\"']?\$\{?\w{1,40}\}?[\"']?\s{0,9}$|sh\s+-c\s+\"?\$", re.MULTILINE
)
_OWN_TEXT = re.compile(r"<<|\b(?:echo|printf|seq|date)\s|\$\{?(?:0|BASH_SOURCE)\b")
_FILTERS = re.compile(
    r"\b(?:tr|cut|paste|sed|[gm]?awk|rev|fold|sort|tac|jq|perl|m4|cpp|envsubst|tail|head|unzip)\s"
)
_TARGET = re.compile(r"(?<![<>&\d])>>?\s{0,9}[\"']?([\w./~${}-]{1,200})")
_WRITES = re.compile(
    r"\bopen\(\s?[\"']([\w./~-]{1,200})[\"']\s?,\s?[\"'][wa]|print[^\n]{0,200}>\s?\"([\w./~-]{1,200})\"|\bcat\([^\n]{0,300}\bfile\s?=\s?\"([\w./~-]{1,200})\""
    r"|\bsed\s[^\n]{0,200}/w\s{1,3}([\w./~-]{1,200})"
)
_IMPORTED = re.compile(r"^(?:import|from)\s+(\w{1,60})", re.MULTILINE)
_EDITORS = re.compile(r"^(?:vim?|ex|ed)\s", re.MULTILINE)
_JOINS = re.compile(r"\bcat\s+([\w./~-]{1,99}(?:\s+[\w./~-]{1,99}){1,20})\s{0,9}>>?\s{0,9}([\w./~-]{1,200})")
_CUT_OUT = re.compile(
    r"\bdd\s(?=[^;|&]{0,300}\b(?:skip|count)=)[^;|&]{0,300}\bof=[\"']?([\w./~${}-]{1,200})|\bobjcopy\s[^;|&]{0,300}\s([\w./~${}-]{1,200})\s{0,9}(?:$|[;|&])"
)
"""A program taken out of another file, or made of parts of one."""
_CALLED = (
    (_EVALUATES, ("eval",)),
    (
        _CALLS,
        ("system", "popen", "output(", "execSync", "shell_exec", "shell=", "shell =", "passthru", "execute("),
    ),
    (_JOINED, ("exec", "spawn", "run(", "call(", "Popen", "check_", "system")),
    (_JOINS_ARGUMENTS, (".join(", ".format(", "paste")),
    (_TCL, ("exec $",)),
    (_DESCRIPTOR, ("/dev/fd", "<&", "/dev/stdin")),
    (
        _CODE,
        (
            *("exec(", "execl", "execv", "memfd_create", "Command", "ProcessB", "getRuntime", "hash -p"),
            *("enable -f", "getline", 'sh"', "system "),
        ),
    ),
)
"""Each with its marks: a line without any has none, and a look for them is fast."""
_LETTER_MARKS = (":1}", ": 1}", "read -", "expr sub", "cut -c", "fold -w")
_WRITE_MARKS = ("open(", '> "', '>"', "cat(", "/w ")
_CALL_WORDS = frozenset(
    "eval system system2 execve processbuilder getruntime getline popen getoutput run call spawn execlp execvp execv getstatusoutput execsync exec shell passthru execute fd stdin execl execvpe execle memfd".split()  # noqa: SIM905
)
_CALL_MARKS = ("<&", "Command", "hash -p", "enable -f", 'sh"')
_OWN_MARKS = ("$0", "BASH_SOURCE")
_LETTER_WORDS = frozenset("expr fold cut read".split())  # noqa: SIM905
_MAKER_WORDS = frozenset(
    "tr cut paste sed awk gawk mawk rev fold sort tac jq perl m4 cpp envsubst open print cat vi vim ex ed dd objcopy".split()  # noqa: SIM905
)
"""A script without any of these words has none of them."""
_MOST_FILES = 100


def put_together(lines: Sequence[Line], text: str, words: set[str]) -> Iterator[tuple[int, str]]:
    """The line of the first such command, if any; `text` is the lines joined, and `words` are the words in it."""
    looks = (
        (number for number, line in lines if line.startswith(_BEGINS) and _SUBSTITUTED.match(line)),
        _substituted_later(lines, text),
        (number for number, line in lines if _PATTERN.match(line)) if "?" in text or "]" in text else (),
        computed_names(lines, text),
        _called(lines, text)
        if not words.isdisjoint(_CALL_WORDS) or any(mark in text for mark in _CALL_MARKS)
        else (),
        _by_letters(lines, text) if not words.isdisjoint(_LETTER_WORDS) or "1}" in text else (),
        _made_and_run(lines, text)
        if not words.isdisjoint(_MAKER_WORDS) or any(mark in text for mark in _OWN_MARKS)
        else (),
    )
    number = next(chain.from_iterable(looks), None)
    if number is not None:
        yield number, PUT_TOGETHER


def _substituted_later(lines: Sequence[Line], text: str) -> Iterator[int]:
    """Such a command behind another in its line."""
    for mark in ("; $(", "& $(", "| $(", "; `"):
        for number, line in lines if mark in text else ():
            if mark in line and "[[" not in line and _SUBSTITUTED.match(line, line.index(mark) + 2):
                yield number


def _called(lines: Sequence[Line], text: str) -> Iterator[int]:
    for pattern, marks in _CALLED:
        for mark in marks:
            if mark in text:
                yield from (number for number, line in lines if mark in line and pattern.search(line))


def _by_letters(lines: Sequence[Line], text: str) -> Iterator[int]:
    """A text that is taken apart letter by letter, and then run."""
    for mark in _LETTER_MARKS:
        if mark in text:
            found = [number for number, line in lines if mark in line and _CHARACTERS.search(line)]
            yield from found if found and _RUNS_VARIABLE.search(text) else ()


def _made_and_run(lines: Sequence[Line], text: str) -> Iterator[int]:
    """The line that makes a file of the script's own text, changed or joined on the way, which the script runs."""
    made: dict[str, int] = {}
    written: set[str] = set()
    for number, line in lines if ">" in text else ():
        if ">" not in line or len(made) > _MOST_FILES:
            continue
        own = _OWN_TEXT.search(line)
        if own:
            targets = [_base(name) for name in _TARGET.findall(line)]
            written.update(targets)
            made |= dict.fromkeys(targets if _FILTERS.search(line) else (), number)
        elif "cat " in line and (joins := _JOINS.search(line)):
            made[_base(joins[2])] = number
    for mark in _WRITE_MARKS:
        for number, line in lines if mark in text else ():
            if mark in line:
                made |= {_base(name): number for names in _WRITES.findall(line) for name in names if name}
    if written and _EDITORS.search(text):
        for number, line in lines:
            made |= (
                dict.fromkeys(written & set(map(_base, line.split())), number) if _EDITORS.match(line) else {}
            )
    for mark in ("dd ", "objcopy "):
        for number, line in lines if mark in text else ():
            made |= {_base(name): number for names in _CUT_OUT.findall(line) for name in names if name}
    made.pop("", None)
    if made:
        ran = {name for _, line in lines for name in run_files(line)}
        ran |= {f"{name}.py" for name in _IMPORTED.findall(text)}
        yield from (number for name, number in made.items() if name in ran)


def _base(path: str) -> str:
    return path.strip("\"'").rpartition("/")[2]
