"""What a line of an output is: its prefix, its log level, a call of a stack, a guess, a closing word."""

import re

__all__ = [
    "COLOUR",
    "FRAME",
    "GUESS",
    "adjusted",
    "bare",
    "closes",
    "gives_value",
    "is_call",
    "is_mild",
    "is_option",
    "levelled",
    "passed_until",
    "quotes",
    "r_warnings",
    "raised",
    "recovers",
    "speaks_of_error",
    "without_folders",
    "without_task",
]

COLOUR = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
FRAME = re.compile(r"\s|[-=]{3}|=  |at |frame #|#\d|\[\d+\](?! [\"-.\d])|\[\S{1,80}:\d{1,9}\] \[", re.ASCII)
"""How lines of stacks and banners begin; `[1] "text"` and `[1] 0.5` are values that R prints."""
GUESS = re.compile(
    r"\b(?:could|can|may|might|often|usually|probably|perhaps)(?: also)?(?: be)? (?:caused by|due to|because)"
    r"|\b(?:can|may|might|could|often|usually|probably) (?:also )?(?:indicate|mean|suggest)s?\b"
    r"|\b(?:potential|possible|probable|common) (?:root )?(?:causes?|reasons?)\b"
    r"|(?:^|[.;,(] ?|\band )if (?:the |your )?\w{2,30} (?:is|are|does|do|has|have|runs?) "
)
"""How programs begin a guess about the reason."""
_TASK = r"\[?rank\s?\d{1,6}\]?:|\[?\d{1,6}\]?:\s|\[\d{1,6},\d{1,6}\]<\w{1,9}>:|\(\w{1,20}\ pid=\d{1,9}[^)]{0,60}\)"
_PREFIX = re.compile(rf"(?:\s|{_TASK}|[│|]\s|>\s)*")
_TASK_ONLY = re.compile(rf"(?:{_TASK}\ ?)?")
"""The prefix that launchers write before each line of a task."""
_CALL = re.compile(
    r'file "[^"]{1,300}", line \d{1,7}\b|#\d{1,3} {1,4}0x[0-9a-f]{4,16} |at [\w.$/<>]{1,300}\('
    r"|(?:\[\d{1,3}\] )?\S{1,200} at \S{1,300}:\d{1,6}(?: \[inlined\])?$"
)
"""How Python, gdb, Java and Julia write one call of a stack."""
_FOLDERS = re.compile(r"(?<![\w./])/(?:[\w.+@%~$=,-]{1,100}/){1,40}")
"""The folders of an absolute path."""
_VALUE = re.compile(
    r"\berrors?\b(?:[^:=]{0,20}[:=]\s{0,8}|\s{1,8})[-+]?\d{1,12}\.\d{0,16}(?:e[-+]?\d{1,3})?(?:[\s,;)%]|$)"
)
_LEVEL_WITHIN = 80
"""Characters from the start of a line in which a log level counts; further on, it is part of the message."""
_SEVERE = re.compile(r"\W{0,3}(?:error|fatal|critical|severe)\b\W")
"""A line that begins with such a level has no other one ("ERROR: qsub -q debug ...")."""
_MILD = re.compile(r"\[?[diw]\d{4} \d\d:|\[[diw] |[\d:. -]{8,40}: [diw] ")
"""How Google's, PyTorch's and TensorFlow's logs write a level below an error: by its first letter."""
_RAISED = re.compile(r"[a-z_][\w.]{2,120}(?:: |$)", re.ASCII)
_CLOSING = re.compile(
    r"\b(?:complete|completed|done|finished|ok|passed|ready|saved|succeeded|written)\W{0,3}$"
)
_NUMBER = r"\(?[-+]?\d[\d.,:]{0,20}(?:e[-+]?\d{1,3})?[a-z%/]{0,8}\)?"
_RESULT = re.compile(
    rf"[a-z][\w()/%.-]{{0,40}}[:=]?(?: {{1,3}}(?:=|[a-z][\w()/%.-]{{0,40}}[:=]?)){{0,4}} {{0,3}}(?<=[ :=]){_NUMBER}"
    rf"(?: (?:{_NUMBER}|[a-z%/(][\w%/().-]{{0,30}})){{0,5}}$"
    rf"|{_NUMBER}(?:\s{{1,20}}{_NUMBER}){{1,12}}$"
)
"""Words, a number, and perhaps what it counts ("mean 0.41", "kept 998 of 1000 records"), or a row of numbers."""
_NO_RESULT = re.compile(
    r"\b(?:at|code|core|cpu|end|job|launch_\w+|line|max|memory|node|pid|port|rank|rc|retval|run|signal|start|status|step|stop"
    r"|task|thread|trap|version|wait)\w*\b"
    r"|\b(?:already|are|beyond|found|had|has|have|is|only|outside|still|than|too|was|were)\b"
    r"|abort|exit|kill|miss|terminat|invalid|illegal|revoked|require|need|must|limit|attempt|retr[iy]|errno|errorcode"
    r"|time|blocking|fatal|crash|refused|denied|lost"
)
"""With one of these, a line with a number tells of an end, a place, a resource or a fault, not of a result."""
_QUOTED = re.compile(
    r"(?![\w.-]{0,60}(?:last_error|message|reason|state|status) ?=)[a-z][a-z0-9]*(?:[_.-][a-z0-9]+)+ ?= ?[^=\s]"
    r"|\+{1,4} |(?:echo|except|printf?|raise)\b ?[('\" a-z]|log(?:ger|ging)?\.[a-z]+\("
    r"|-{1,2}[a-z][\w-]{0,40}(?:, --[\w-]{1,40})?(?:[ =]\S{1,40})? {2,}\S"
    r"|-{1,2}[a-z](?:[\w-]{0,40}\w)?(?:[ =]{0,1}[<\[{]|, ?-{1,2}[a-z])"
)
"""A setting (but not a state or a reason), a command that a shell echoes before it runs it, a statement of a program, the description of an option."""
_OPTION = re.compile(r"\s{1,12}-{1,2}[a-z](?:[\w-]{0,40}\w)?(?:[ ,=<\[|]|$)")
_ECHO = re.compile(r"\becho (?:-[en]{1,2} )?['\"]")
"""What a shell would write, in a line that shows the command."""
_RECOVERY = re.compile(
    r"\b(?:fall(?:ing|s)? back|continuing|using (?:the |a )?(?:defaults?|built-?in|cached|fallback)\b"
    r"|defaults? (?:is |are |was |were )?(?:used|taken)|(?:used|taken) instead|fallback (?:is |was )?used)"
)
_ADJUSTED = re.compile(
    r"[.;,] {1,2}(?:re)?setting (?![^.;:]{0,40}\b(?:code|state|status)\b)[^.;:]{1,40} to (?!down\b|fail|nan\b|zero\b)\S"
)
"""How a line ends that says what was done about its first part."""
_PASSED = re.compile(
    r"^(?:test result: ok\b|result: pass$|all (?:\d{1,7} )?tests? (?:passed|succeeded|successful|ok)\b"
    r"|ran \d{1,7} tests? in [\d.]{1,12}s\n\s{0,9}ok\b"
    r"|=+ \d{1,7} passed(?:, \d{1,7} (?:deselected|skipped|warnings?|xfailed|xpassed)){0,5} in [\d.]{1,12}s\b"
    r"|[^\n]{0,80}\bpassed\b[^\n]{0,40}\b0 (?:tests? )?fail)",
    re.MULTILINE,
)
"""How test suites report that all tests passed: what they print above are failures on purpose."""
_R_WARNINGS = re.compile(r"^warning messages?: {0,3}\n[^\n]*(?:\n(?:\d{1,3}: |[ \t])[^\n]*)*", re.MULTILINE)
_R_ERROR = re.compile(r"^(?:error|erreur|fehler)\b|^execution halted", re.MULTILINE)
_DENIED = re.compile(r"\b(?:abort\w*|abnormally|cannot|error|exit\w*|fail\w*|no|not|unable)\b|n't\b")
_FEWEST_WORDS = 2
_ERROR = re.compile(r"error|exception|\bfail")


def bare(line: str) -> str:
    """A line in lower case without the prefix of its task and without the frame of a box."""
    found = _PREFIX.match(line)
    return line[found.end() if found else 0 :].rstrip(" │|\t")


def without_task(line: str) -> str:
    """A line without the prefix of its task; its indentation stays."""
    return _TASK_ONLY.sub("", line, count=1)


def without_folders(line: str) -> str:
    """A line with the last part of each absolute path only: the name of a folder says nothing about the failure.

    >>> without_folders("error=2 in /lustre/ann/run.sh")
    'error=2 in /run.sh'
    """
    return _FOLDERS.sub("/", line) if "/" in line else line


def is_call(line: str) -> bool:
    """Whether a bare line is one call of a stack: its names are those of functions and files."""
    return bool(_CALL.match(line))


def is_mild(line: str) -> bool:
    """Whether a bare line has a level below an error, written as a letter."""
    return bool(_MILD.match(line))


def levelled(line: str) -> str:
    """The part of a bare line in which a log level may stand."""
    return "" if _SEVERE.match(line) else line[:_LEVEL_WITHIN]


def gives_value(line: str) -> bool:
    """Whether a line gives the value of an error ("max error: 1.2e-05"), which is not a failure."""
    return bool(_VALUE.search(line))


def raised(line: str) -> bool:
    """Whether a line has the form of the one below the stack of a Python exception."""
    return bool(_RAISED.match(line))


def speaks_of_error(line: str) -> bool:
    return bool(_ERROR.search(line))


def closes(line: str) -> bool:
    """Whether a bare line, the last one of an output, says that some work is done, or gives a result.

    >>> [closes(line) for line in ("stage-in finished", "tile 17 was not saved", "done")]
    [True, False, False]
    >>> [closes(line) for line in ("mean 0.41", "kept 998 of 1000 records", "return code: 1", "failed: 3", "processed: 0")]
    [True, True, False, False, False]
    """
    if len(line.split()) < _FEWEST_WORDS or _DENIED.search(line):
        return False
    if _CLOSING.search(line):
        return True
    return bool(_RESULT.match(line)) and not line.endswith((" 0", ":0", "=0")) and not _NO_RESULT.search(line)


def quotes(line: str) -> bool:
    """Whether a bare line is text of a configuration, a script or a help page, which states nothing.

    >>> [quotes(line) for line in ("on_error = abort", "+ grep -c 'killed' log", "except memoryerror:", "-k  keep on errors")]
    [True, True, True, True]
    >>> [quotes(line) for line in ("job.state=out_of_memory", "last_error = killed", "exception: killed", "- killed")]
    [False, False, False, False]
    """
    return bool(_QUOTED.match(line) or _ECHO.search(line))


def is_option(line: str) -> bool:
    """Whether a line, in lower case, begins with an option that a help page describes.

    >>> [is_option(line) for line in ("  -k, --kill=sig  send it", "    --strict  stop", "-bash: x: not found", "-e- error")]
    [True, True, False, False]
    """
    return bool(_OPTION.match(line))


def adjusted(line: str) -> bool:
    """Whether a bare line says itself what was done about the problem that it reports.

    >>> [adjusted(line) for line in ("type must be 'ml'. setting type to 'ml'.", "n3 failed, setting its state to down")]
    [True, False]
    """
    return bool(_ADJUSTED.search(line))


def passed_until(text: str, start: int) -> int:
    """The position of the last line, from a position on, by which a test suite reports that all passed; -1 if there is none.

    >>> [passed_until(text, 0) for text in ("ok\\ntest result: ok. 2 passed; 0 failed", "2 passed, 10 failed")]
    [3, -1]
    """
    return max((found.start() for found in _PASSED.finditer(text, start)), default=-1)


def r_warnings(text: str, start: int) -> list[tuple[int, int]]:
    """Where R lists warnings from a position of a lower-case text on, if it reports no error there: it went on with them.

    >>> [r_warnings(text, 0) for text in ("warning message:\\nno such file", "error in f\\nwarning message:\\nno such file")]
    [[(0, 29)], []]
    """
    return (
        [] if _R_ERROR.search(text, start) else [found.span() for found in _R_WARNINGS.finditer(text, start)]
    )


def recovers(line: str) -> bool:
    """Whether a bare line says that the work goes on in spite of what the line above reports.

    >>> [recovers(line) for line in ("tile 1: default used", "using the built-in topology", "using mpirun")]
    [True, True, False]
    """
    return bool(_RECOVERY.search(line))
