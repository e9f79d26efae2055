"""Files into which a command writes its input or output, other than by a redirection."""

from collections.abc import Sequence
from itertools import pairwise

__all__ = ["EDITORS", "edited_files", "write_targets"]

_EDIT_ALWAYS = frozenset("ed ex vi vim patch truncate".split())  # noqa: SIM905
EDITORS = _EDIT_ALWAYS | frozenset("sed perl ruby awk gawk yq crudini".split())  # noqa: SIM905
"""Programs that may change files in place."""
_INPUT = frozenset(("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"))


def write_targets(name: str, words: Sequence[str]) -> list[str]:
    """The words that name such files; `words` are the arguments."""
    plain = [word for word in words if word[:1] != "-"]
    if name in ("tee", "sponge"):
        return plain
    if name == "dd":
        return [word[3:] for word in words if word.startswith("of=")]
    if name in ("cp", "mv", "install", "ln", "rsync"):
        return plain[-1:] if not _INPUT.isdisjoint(words) else []
    if name == "sort":
        return [after for option, after in pairwise(words) if option == "-o"] + [
            word.partition("=")[2] if word[1] == "-" else word[2:]
            for word in words
            if word.startswith("--output=") or (word[:2] == "-o" and len(word) > len("-o"))
        ]
    return []


def edited_files(name: str, words: Sequence[str]) -> Sequence[str]:
    """The words that may be names of files that a command changes in place."""
    options = [word for word in words if word[:1] == "-"]
    edits = (
        name in _EDIT_ALWAYS
        or any("i" in word[:5] if word[1:2] != "-" else word.startswith("--in-place") for word in options)
        or "inplace" in words
    )
    return words if edits else ()
