"""What a line of an output is: its prefix, its log level, a call of a stack, a guess, a closing word."""

import re

__all__ = [
    "COLOUR",
    "FRAME",
    "GUESS",
    "bare",
    "closes",
    "gives_value",
    "is_call",
    "is_mild",
    "levelled",
    "raised",
    "speaks_of_error",
    "without_folders",
    "without_task",
]

COLOUR = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
FRAME = re.compile(r"\s|[-=]{3}|=  |at |frame #|#\d|\[\d+\]|\[\S{1,80}:\d{1,9}\] \[", re.ASCII)
"""How lines of stacks and banners begin."""
GUESS = re.compile(
    r"\b(?:could|can|may|might|often|usually|probably|perhaps)(?: also)?(?: be)? (?:caused by|due to|because)"
    r"|\b(?:can|may|might|could|often|usually|probably) (?:also )?(?:indicate|mean|suggest)s?\b"
    r"|\b(?:potential|possible|probable|common) (?:root )?(?:causes?|reasons?)\b"
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
    r"\berrors?\b[^:=]{0,20}[:=]\s{0,8}[-+]?\d{1,12}\.\d{0,16}(?:e[-+]?\d{1,3})?(?:[\s,;)]|$)"
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
    """Whether a bare line, the last one of an output, says that some work is done.

    >>> [closes(line) for line in ("stage-in finished", "tile 17 was not saved", "done")]
    [True, False, False]
    """
    return bool(_CLOSING.search(line)) and len(line.split()) >= _FEWEST_WORDS and not _DENIED.search(line)
