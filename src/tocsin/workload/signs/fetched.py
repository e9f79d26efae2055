"""What a script fetches from elsewhere: files by web, copy and object-store tools, and values from servers."""

import re

__all__ = [
    "EVERYTHING",
    "FETCH_MARKS",
    "FETCH_WORDS",
    "fetched_files",
    "fetched_variables",
    "is_unpacked",
    "runs_local_file",
]

EVERYTHING = "*"
"""Instead of a name: an archive, a folder or a list was fetched, so any local file may come from it."""
FETCH_WORDS = frozenset(
    """curl wget aria2c urlretrieve urlopen requests nc ncat socat lynx w3m scp rsync sftp lftp tftp ftp rclone gsutil gcloud
    s3cmd s5cmd aws dig nslookup redis gdown""".split()  # noqa: SIM905  # a list of words reads best so
)
FETCH_MARKS = ("http -", "https -", "/dev/tcp/", "git clone", "host -t")
"""A script without any of these words and marks fetches nothing."""

_FETCHES = re.compile(
    r"curl|wget|aria2c|urlretrieve|(?:nc|ncat|socat|lynx|w3m|https?) |<&|git\s+clone|scp |rsync |rclone |gsutil |gcloud |s3cmd |s5cmd |aws |ftp |gdown "
)
_BY_WEB = r"\b(?:curl|wget|aria2c)\s[^|;&]{0,400}?"
_FILE = re.compile(
    rf"{_BY_WEB}(?:(?<!\S)-\w{{0,9}}[oO]|--output|--output-document|>)[ =]?\s{{0,9}}[\"']?([\w./~${{}}-]{{1,200}})"
    rf"|{_BY_WEB}(?:https?|ftp)://[^\s\"';|&]{{0,300}}/([\w.%+-]{{1,100}})"
    r"|\burlretrieve\([^)]{0,300},\s{0,9}[\"']([\w./-]{1,200})"
    r"|(?:(?<![.\w])(?:nc|ncat|socat|lynx|w3m|https?)\s[^|;&>]{0,300}|<&\d{1,2}\s{0,9})>\s{0,9}[\"']?([\w./~${}-]{1,200})"
)
_SEVERAL = re.compile(
    rf"{_BY_WEB}(?:-i\s|--input-file|-r\s|--recursive|--mirror|://[^\s;|&]{{0,300}}[{{\[])"
    r"|\bgit\s+clone\s|\b(?:curl|wget)\s[^;&]{1,400}\|\s{0,9}(?:tar|bsdtar|cpio|unzip|busybox)\s"
)
_COPIES = re.compile(
    r"(?:^|[;&|(]\s{0,9})(?:sudo\s|time\s|srun\s)?(?:scp|rsync|rclone|gsutil|gcloud|s3cmd|s5cmd|aws|sftp|lftp|tftp|ftp|gdown)\s([^;&|]{1,500})"
)
_REMOTE = re.compile(
    r"[\"']?(?:(?:s3|gs|https?|ftp|sftp)://|(?:[\w.${}-]{1,80}@)?[\w.${}-]{2,80}:(?!/?/?$))([^\"'\s]{0,200})"
)
_GETS = re.compile(r"\bm?get\s+[\"']?([\w./~${}-]{1,200})")
_VARIABLE = re.compile(
    r"\b([A-Za-z_]\w{0,40})=[\"']?(?:\$\(|`)\s{0,9}(?:curl|wget|nc|ncat|lynx|dig|nslookup|redis-cli|ssh\s[^)`;]{1,100}\scat|aws\s+s3|gsutil|rclone\s+cat"
    r"|host\s+-t)\s"
)
_UNPACKED = re.compile(
    r"\b(?:(?:bsd)?tar\s+-{0,2}\w{0,9}x|unzip\s|7z\w?\s+[xe]\s|gunzip\s|unxz\s|bunzip2\s|cpio\s)"
)
_LOCAL = re.compile(
    r"(?:^|[;&|]\s{0,9}|\b(?:srun|mpirun|mpiexec|exec|nohup|time|nice|setsid|do|then)\s(?:-\S{1,40}\s+(?:\d{1,6}\s+)?){0,6})[\"']?"
    r"(?:\./[\w.-]|[\w.-]{1,80}/[\w./-]{1,200}(?:\s|$))|\bchmod\s+(?:\+x|[ugoa]{1,4}\+\w*x|[0-7]*[1357][0-7]{0,2})\s+[^/~$\s]"
)


def fetched_files(command: str) -> list[str]:
    """The names of the files that a command fetches; `EVERYTHING` if they are unknown."""
    if not _FETCHES.search(command):
        return []
    names = [name for found in _FILE.findall(command) for name in found if name]
    if _SEVERAL.search(command):
        names.append(EVERYTHING)
    if copy := _COPIES.search(command):
        names += _copied(copy[1])
    return names


def _copied(arguments: str) -> list[str]:
    """The names of what a copying tool fetches, if its source is remote."""
    words = arguments.split()
    if names := _GETS.findall(arguments):
        return names
    *sources, target = [word for word in words if word[0] not in "-<>"] or [""]
    remote = [found[1] for found in map(_REMOTE.match, sources) if found]
    if not remote or _REMOTE.match(target):
        return []
    names = [target.strip("\"'")] if not target.endswith((".", "/")) else []
    return names + [EVERYTHING if name.endswith(("/", "*", "}")) or not name else name for name in remote]


def fetched_variables(line: str) -> list[str]:
    """The variables that a line sets to the response of a server."""
    return _VARIABLE.findall(line)


def is_unpacked(command: str, names: set[str]) -> bool:
    """Whether a command unpacks one of these files."""
    return bool(_UNPACKED.search(command)) and any(name in command for name in names)


def runs_local_file(command: str) -> bool:
    """Whether a command runs a file below the working folder, or makes one executable."""
    return _LOCAL.search(command) is not None
