"""Facts about a whole script that decide whether its text may be run: captured output, own names, files that it runs."""

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tocsin.workload.signs.captured import captured_lines
from tocsin.workload.signs.documents import TARGET, as_redirection, file_name, runs_any_of, used_documents
from tocsin.workload.signs.inert_commands import PRINTS

__all__ = ["Context", "reads_itself", "script_context"]

_RUNS_INPUT = re.compile(
    r"\|\s*(?:sudo\s+)?(?:\S{0,40}/)?(?:(?:(?:ba|da|z|k|c|tc)?sh|ssh|at|batch|crontab|parallel)\b"
    r"|(?:python[\d.]*|perl|ruby)\b(?!\s+(?:-[\w=]{1,20}\s+){0,3}(?:[\w./${}~-]{1,200}\.(?:py|pl|rb)\b|-\w{0,3}e\s+'s/[^'/]{0,99}/[^'/]{0,99}/g?'(?=\s|$))))"
    r"|\b(?:(?:ba|da|z|k)?sh|source|python[\d.]*|perl|ruby)\s+(?:-\w{1,9}\s+){0,3}<\(|(?:^|[;&|]\s*)\.\s+<\("
    r"|\bxargs\b.{0,200}\b(?:ba|da|z|k)?sh\b|\b(?:ba|da|z|k)?sh\s+-?\w*\s*(?:<<<|<\s*<\()"
)
"""A script with any of these may run what it prints: in the same command, in a block piped into it, or in a file."""
_GOES_ON = re.compile(r"(?:^|[;\s])(?:[)}]|done|fi|esac)\s*(?:\||[\d&]?>)|\bexec\s*\d?>|^\||\bcoproc\b")
"""The output of a block, or of everything that follows, is redirected."""
_SUBSTITUTION = re.compile(r"(?:\$\(|`|<\()\s*([\w.:+-]{0,60})(?:[^()`;&]{0,200}([;&]))?")
_READS_FILES = re.compile(
    r"(?:\beval\b.{0,200}(?:\$\(|`)|<\s*<\()\s*(?:<|(?:cat|head|tail|tac|rev|sed|[gm]?awk|[ef]?grep|cut|tr|dd|base64)\b)[^)`]{0,200}[*?\[$]"
)
_EVAL = re.compile(r"(?<!-)\beval\b")
_HOOK = re.compile(
    r"\beval\s+[\"']?(?:\$\(|`)\s*(?:[\w./${}~-]{0,200}/)?(?:conda|mamba|micromamba|ssh-agent|spack|brew|pyenv|direnv|dircolors)\b"
)
"""An eval that sets up a shell, with tools that print nothing of the script's own."""
_DEFINED = re.compile(
    r"(?:^|[;&|{(\s])([\w.+:\[-]{1,60})\s*\(\s*\)|\bfunction\s+([\w.+:\[-]{1,60})"
    r"|\balias\s+(?:-\w\s+)?([\w.+:-]{1,60})(?:=|\s)[\"']?+(?!\3\b)|\bhash\s+-p\s+\S{1,200}\s+([\w.+:-]{1,60})"
)
_DEFINES_ANY = re.compile(
    r"\$_(?!\w)|\$\{_[}:%#/]|\bBASH_COMMAND\b|\bBASH_REMATCH\b|(?:^|[;&|]\s*)fc\s+-|\balias\s+(?:-\w\s+)?[\"']?[^\s=]{0,60}\$|\bBASH_ALIASES\b|\bcommand_not_found_handle\b"
)
_QUOTED_DEFINITION = re.compile(r"[\"'][^\"']{0,200}(?:\(\s*\)\s*[{(]|\balias\s+\w|\bfunction\s+\w)")
"""What an eval may define, in a text."""
_ITSELF = re.compile(
    r"(?:\b(?:sed|[gm]?awk|[efz]?grep|rg|tail|head|cut|tr|cat|perl|python[\d.]*|dd|base64|openssl|xxd|rev|tac|od|fold|while)\b"
    r"[^;|&]{0,200}\s|<\s?)[\"']?\$(?:0\b|\{0\}|\{?BASH_SOURCE)|\bscontrol\s+write\s+batch_script\b"
)
_RUNS_NAME = re.compile(
    r"(?:^|[;&|]\s*|\beval\s+[\"']?|\bsh\s+-c\s+[\"']?)[\"']?\$\{?(?:SLURM_JOB_NAME|PBS_JOBNAME|LSB_JOBNAME|JOB_NAME)\b"
)
"""The job's name is in a directive, which is a comment."""
_OWN_NAMES = ("$0", "${0", "BASH_SOURCE", "batch_script", "JOB_NAME", "JOBNAME")
_FLOWS = re.compile(r"[|>`<]|\$\(")
_MOST_DOCUMENTS = 200


def reads_itself(lines: Sequence[str], text: str) -> bool:
    """Whether a script reads its own text, other than to show it, so that even its comments may be run.

    `text` is the lines joined.
    """
    if not any(mark in text for mark in _OWN_NAMES):
        return False
    naming = [line for line in lines if any(mark in line for mark in _OWN_NAMES)]
    return any((_ITSELF.search(line) and _FLOWS.search(line)) or _RUNS_NAME.search(line) for line in naming)


@dataclass(frozen=True, slots=True)
class Context:
    """Facts about the whole script that its commands need."""

    captured: frozenset[int] | None
    """Indices of the lines that print into something that may be run; None if any line may."""
    defined: frozenset[str] | None
    """Names that it redefines; None if any name may be redefined."""
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
        return name in PRINTS or (name in self.printers and self.defined is not None)

    def safe(self, command: str) -> str | None:
        """The command without its harmless output; None if a document that it writes may be run."""
        for target in TARGET.finditer(command):
            if (name := target["document"]) and (self.any_file or file_name(name) in self.used):
                return None
        return TARGET.sub(" ", command)


def script_context(lines: Sequence[str]) -> Context:
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
        return Context(None, names, frozenset(), any_file=True)
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
        file_name(target["document"])
        for line in live
        if ">" in line or "tee" in line
        for target in TARGET.finditer(as_redirection(line))
        if target["document"]
    }
    any_file = (
        captured is None
        or runs_input
        or len(documents) > _MOST_DOCUMENTS
        or (bool(documents) and runs_any_of(documents, live))
        or (bool(evals) and any(map(_READS_FILES.search, live)))
    )
    used = used_documents(lines, documents, captured or frozenset()) if documents and not any_file else set()
    return Context(captured, names, frozenset(used), any_file)


def _substitutes(line: str, functions: Container[str]) -> bool:
    """Whether a substitution holds a function of the script, or commands that may be on other lines or after a `;`."""
    if line.count("`") % 2:
        return True
    if not ("$(" in line or "`" in line or "<(" in line):
        return False
    if line.count("(") > line.count(")"):
        return True
    return any(found[1] in functions or found[2] for found in _SUBSTITUTION.finditer(line))
