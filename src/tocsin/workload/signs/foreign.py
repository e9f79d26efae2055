"""Code of other languages in a shell script: whether it starts, loads, evaluates or calls anything that is not written out.

No language is parsed. Code that makes text from other text may do anything with it. In other code, everything that starts
a program is found by its words, in all languages alike. Each use must be a call with only literal text, numbers and
values from outside; then the other rules can read it.
"""

import re
from functools import cache

__all__ = ["makes_text", "names_files", "runs_unwritten"]

_ALWAYS = r"""ctypes|cffi|memfd_create|child_process|__builtins__|__subclasses__|__getattribute__|webbrowser|bash_app|write18|ShellEscape
  |directlua|indir|methodcaller|InteractiveInterpreter|fsockopen|stream_socket_client|call_user_func\w*|open_connection|createConnection
  |socketConnection|TCPSocket|IO::Socket|getattr(?=\s?\(\s?(?:os|sys|builtins|subprocess|__\w+)\b)|marshal|str2func|(?:net|tls)\.(?:connect|Socket)
  |document\.write|b(?:64|32|16|85)decode|a85decode|decode_base64|unhexlify|fromhex|unquote|atob|rot_?13|maketrans|intToUtf8|rawToChar"""
"""Used only to load, to call by a computed name, to connect, or to make unreadable text."""
_STARTERS = r"""p?open[23]|popen4?|Popen|posix_spawnp?|exec[lv]p?e?|execvP|execSync|execFile\w{0,4}|[Ss]pawn\w{0,12}|shell_exec|passthru|proc_open|pcntl_exec
  |create_subprocess_(?:exec|shell)|check_call|check_output|getoutput|getstatusoutput|readpipe|syscall|startfile|call_program|esyscmd|syscmd
  |run_path|run_module|os:cmd|callCommand|execute_command_line|execute_process|runCommand|Command::new|exec\.Command|__import__|import_module|import_string
  |dlopen|ccall|loadstring|loadfile|dofile|create_connection|create_datagram_endpoint|sendto|ProcessBuilder|call-process\w*|start-process|make-process|process-lines
  |shell-command\w*|make-network-process|open-network-stream|feval|evalin|evalc|uplevel|public_send|instance_eval|const_get|include_string
  |(?:pickle|dill|cloudpickle)\.loads|timeit|runctx|system2|getRuntime\(\)\.exec|commandLine|run_command|Cmd"""
_ENGLISH = r"system|exec|eval|qx|Function"
"""Words that start or evaluate something, but are also ordinary names of variables."""
_CALLED = r"run|call|shell|sh|cmd|unix|dos|connect|execute|Command|compile|socket"
"""Words that do so only if they are called."""
_WORD = rf"(?x)(?<![\w$-])(?:(?P<always>{_ALWAYS})|(?P<starts>{_STARTERS})|(?P<english>{_ENGLISH})|(?P<called>{_CALLED}))(?![\w-])"
_TEXT = r"""[rbuRBU]{0,2}(?:"(?:[^"\\\n$`@{|%]|%(?![sdcux])|\\[nt"'])*+"|'(?:[^'\\\n$`{|%]|%(?![sdcux])|\\[nt"'])*+'|`[^`\n$\\{|]*+`)"""
"""Literal text without anything that a shell or a language would expand."""
_OUTSIDE = rf"""(?:[-+]?\d[\w.]*+|True|False|TRUE|FALSE|true|false|None|NULL|null|nil|[TF](?!\w)|\(char\s?\*\)\s?(?:0|NULL)|(?:str|int)\(\d+\)|os\.getpid\(\)
  |\*?sys\.(?:executable|std\w+|argv)(?:\[[\d:]*\])?|(?:\w+\.)?(?:PIPE|STDOUT|DEVNULL|AF_\w+|SOCK_\w+)|(?:\w+\.)?environ(?:\[{_TEXT}\]|\.get\({_TEXT}\)|\.copy\(\))?|os\.getenv\({_TEXT}\)
  |@ARGV|\$ENV\{{\w+\}}|\$ARGV\[\d\])"""
_ATOM = rf"(?:{_TEXT}|{_OUTSIDE})"
_ITEM = rf"(?:(?!stdin|input)\w+\s?(?:=>?|:)\s?)?(?:{_ATOM}|(?:c|list|array)?[\[(]\s*+(?>(?:{_ATOM}\s*+(?:,\s*+|(?=[\])])))*)[\])])"
_WRITTEN_CALL = rf"(?x)\s*+\(\s*+(?>(?:{_ITEM}\s*+(?:,\s*+|(?=\))))*)\)"
_WRITTEN_WORDS = (
    rf"(?x)[ \t]*+(?>(?:{_ITEM}[ \t]*+,\s*+)*){_ITEM}[ \t]*+(?:[;\n}})\]]|(?:if|unless|or|and)\s|\|\||&&|\Z)"
)
_MADE_WORDS = re.compile(r"[ \t]+[^\n;\"'()]{0,300}?\[\w+ ")
"""Words with the result of a Tcl command."""
_VARIABLE_WORDS = re.compile(r"[ \t]+[^\n;\"'()]{0,300}?[$\[]")
_DEFINES = re.compile(r"\b(?:def|function|sub|proc|fn|func|rule|process|async)\s+$")
_IMPORTS = re.compile(
    r"^[ \t]*(?:import[ \t]+([^\n;#]*)|from[ \t]+([\w.]+)[ \t]+import[ \t]+\(?([^\n;#]*))", re.MULTILINE
)
_MODULES = frozenset(
    "os posix subprocess pty popen2 commands shutil runpy importlib socket asyncio builtins pickle".split()  # noqa: SIM905
)
_HARMLESS_NAMES = frozenset(
    """path environ getenv getcwd PIPE STDOUT DEVNULL CalledProcessError TimeoutExpired sep makedirs listdir chdir mkdir copy
    copyfile copytree move rmtree which gethostname getfqdn reload sleep gather cpu_count getpid walk remove rename""".split()  # noqa: SIM905
)
_MADE_CALLS = re.compile(
    r"""(?xm)\](?<=["']\])\s?\(|_G(?<=\b_G)\s?\[|__dict__(?<=\b__dict__)\s?\[|globalThis(?<=\bglobalThis)\s?\[|globals(?<=\bglobals)\s?\(\)\s?\[
    |locals(?<=\blocals)\s?\(\)\s?\[|vars(?<=\bvars)\s?\((?:\w*\)\s?\[|\s?os\b)|sys(?<=\bsys)\.(?:modules\s?\[|argv\s?=)
    |@(?<![\w$@]@)\w+\(\s?["'$.\w]|\$\w+\(["'$\w]|&\$\w|&\{|open(?<=\bopen)\s?\(?[^\n;]{0,60}["'{](?:-\||\|)
    |pipe(?<=\bpipe)\s?\(\s?(?!["'][^"'\n]*["']\s?[,)])\w|%x[(\[{]|\|&?\s?getline
    |print[^\n;}|]{0,200}\|&?\s?["A-Za-z($]|/inet\d?/|/proc/self/fd|\.(?<=^\.)(?:shell|system|once\s*\||output\s*\|)
    |\$\(shell\b|\{\{[^}]*\}\}\s*\(|\]\s?\.\s?execute\s?\(|\.exe(?:cute)?\(\)|exe(?<=\bexe)(?:cute)?\s["'][^\n]{0,300}!
    |set(?<=\bset)[ \t]+\w+[ \t]+\[socket\b|\[socket\s|Socket(?<=\bSocket)\.tcp\b"""
)
"""Calls by a computed name, pipes to other programs, and connections. Each begins with a literal character, which makes the
search three times as fast."""
_PLOTS_INTO = re.compile(r"""^[ \t]*set[ \t]+output[ \t]+["']\|(?!\s?[\w./ -]*["']\s*$)""", re.MULTILINE)
"""gnuplot's output goes to another program."""
_NOTEBOOK_RUNS = re.compile(r"[\"'][!%]\s?[\w./~]")
_TICKS = re.compile(r"`[^`\n]{0,200}[$#+][^`\n]{0,200}`")
_MAY_RUN = re.compile(
    r"`|\||/proc/|\"cells|/inet|passthru|proc|pcntl|[Ss]ystem|open|exe|[Ss]pawn|call|check_|output|qx|pipe|sys|memfd|start|run|eval|shell|dos|unix|__|import|load|dofile"
    r"|connect|Connection|fork|Builder|cmd|Cmd|Command|write18|Escape|directlua|indir|\bsh\b|ctypes|cffi|globals|getattr|marshal|vars|decode|hex|quote|atob|rot|maketrans|Utf8|rawTo|argv|%x"
    r"|sock|Sock|document|\{\{|browser|bash_app|_G|timeit|loads|send|const_get|func|Function|compile|@\w+\(|\$\w+\(|&\$|&\{|level|Interp"
)
"""Code with none of these runs nothing; one search is faster than all."""
_MAKES_TEXT = re.compile(
    r"""(?x)\b(?:join|replace\w*|paste0?|format\w*|s?printf|concat\w*|strcat|strjoin|mapconcat|translate|reversed?|chr|char|fromCharCode|pack|unpack|gsub
    |sub|subst\w*|implode|mkString|string-append|append|push|splice|slice|split|decode|bytes|bytearray|rev|toupper|tolower|upper|lower|reduce|accumulate
    |StringIO|Template|__add__|__mod__|glue|file\.path|inet_\w+|ip_?address|string\smap)\b
    |["']\s{0,9}\|\|\s{0,9}["']|["'\w)\]]\s{0,9}(?:\+|\.\.|//|\^|&|<>|~|\*)=?\s{0,9}[rbf]?["']|["']\s{0,9}(?:\+{1,2}|\.\.?|//|\^|&|<>|~|%|\*)\s{0,9}["'\w($@]|["'][ \t]{1,9}(?:\w{1,40}[ \t]{1,9})?["']
    |\bf["'][^"'\n{]*\{|\#\{|\$\{|\[::|["']\[|\$\w+\.\w|\[\w+\s[^\]\n$]{0,200}\$|=~\s?(?:s|tr|y)\b|\{\{"""
)
"""Text that is joined, formatted or changed."""
_STRING = re.compile(r"\"(?:[^\"\\\n]|\\.)*+\"")
_FILLED = re.compile(r"[$@]\w")
_FILE = re.compile(r"[\"']([\w./~-]{1,80})[\"']")
_WRITES = re.compile(
    r"\bopen\s?\(|\.write|\bdump\b|\bsave|>\s?\"|\bfile\s?=|\bwriteLines|\bsink\(|\bwrite\w*\(|\bputs\b|\bw\s"
)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """A long pattern, compiled when a script first needs it: these three take as long as all others of the module."""
    return re.compile(pattern)


def runs_unwritten(code: str, *, surely: bool = False) -> bool:
    """Whether code may start, load, evaluate or call something that is not literal text there.

    `surely`: it is code of another language, not text that may be a shell's.
    """
    if not _MAY_RUN.search(code):
        return False
    if ("`" in code and _TICKS.search(code)) or _MADE_CALLS.search(code):
        return True
    if "output" in code and _PLOTS_INTO.search(code):
        return True
    if '"cells"' in code and _NOTEBOOK_RUNS.search(code):
        return True
    code, names = _without_imports(code)
    if names is None:
        return True
    if any(not _is_harmless(code, found, surely=surely) for found in _compiled(_WORD).finditer(code)):
        return True
    return bool(names) and any(
        not _compiled(_WRITTEN_CALL).match(code, found.end())
        for found in re.finditer(rf"(?<![\w.])(?:{'|'.join(names)})\b", code)
    )


def _without_imports(code: str) -> tuple[str, list[str] | None]:
    """Code without its imports, and its names for modules that start programs; None if it renames them."""
    if "import" not in code:
        return code, []
    names: list[str] = []
    for found in _IMPORTS.finditer(code):
        if found[2] in _MODULES:
            for part in found[3].rstrip(" )\\").split(","):
                name, _, other = part.strip().partition(" as ")
                if name in _HARMLESS_NAMES or not name:
                    continue
                if other or not name.isidentifier():
                    return code, None
                names.append(name)
    return _IMPORTS.sub("", code), names


def _is_harmless(code: str, found: re.Match[str], *, surely: bool) -> bool:
    """Whether a word that may start something is called with literal text, or is merely a word."""
    if found["always"]:
        return False
    start, end = found.span()
    before, after = code[max(0, start - 12) : start], code[end : end + 1]
    if _DEFINES.search(before):
        return True
    if found["called"]:
        return _is_harmless_call(code, found[0], before, end)
    if after and after == before[-1:] and after in "\"'":  # by its name
        return False
    following = code[end : end + 40].lstrip(" \t")[:1]
    if following == "(":
        return _is_method(found[0], before) or _compiled(_WRITTEN_CALL).match(code, end) is not None
    if following and following in "\"'`$@%<":
        return (after != " " and after != following) or _compiled(_WRITTEN_WORDS).match(code, end) is not None
    if following == "=" or following == ":":
        return True
    if not following or following in ",)]};\n":  # passed on
        if found["english"]:
            return before[-1:] not in (".", "@") and not before.rstrip().endswith(("(", ",", "\\&", "(:"))
        return False
    if after in (" ", "\t") and found[0] in ("exec", "spawn", "eval", "uplevel"):
        return not (_VARIABLE_WORDS if surely else _MADE_WORDS).match(code, end)
    return True


def _is_harmless_call(code: str, word: str, before: str, end: int) -> bool:
    following = code[end : end + 1]
    if following == "(":
        if word == "compile" and before[-1:] == ".":  # patterns, models
            return True
        if word == "run" and before.endswith(("asyncio.", "anyio.")):
            return True
        return _compiled(_WRITTEN_CALL).match(code, end) is not None
    if word in ("compile", "socket", "sh", "cmd", "connect"):
        return True
    if before[-1:] == "." and following in ",)]};\n":  # passed on
        return False
    return not (following == " " and code[end + 1 : end + 2] in ('"', "'")) or (
        _compiled(_WRITTEN_WORDS).match(code, end) is not None
    )


def _is_method(word: str, before: str) -> bool:
    """`cursor.exec(…)`, `df.eval(…)`: a method of something else."""
    return word == "eval" and before[-1:] == "."


def makes_text(code: str) -> bool:
    """Whether code joins, formats or changes text."""
    return _MAKES_TEXT.search(code) is not None or any(
        _FILLED.search(found[0]) for found in _STRING.finditer(code)
    )


def names_files(code: str) -> list[str]:
    """The names of files that code may write."""
    return _FILE.findall(code) if _WRITES.search(code) else []
