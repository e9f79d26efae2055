"""The lines of slurm.conf that turn a Lua plug-in on."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ConfLine", "lua_lines", "names_lua"]

_INCLUDE = re.compile(r"\s*include\s+(\S+)", re.IGNORECASE)
_COMMENT = re.compile(r"(?<!\\)#.*")
_DEEPEST = 10
"""Files that include one another; more is taken as a loop."""


@dataclass(frozen=True, slots=True)
class ConfLine:
    path: Path
    number: int
    text: str


def names_lua(value: str) -> bool:
    """Whether a setting of slurm.conf names the Lua plug-in.

    >>> names_lua("throttle,lua"), names_lua("cli_filter/lua"), names_lua("(null)")
    (True, True, False)
    """
    return "lua" in re.split(r"[,/\s]+", value.strip().strip('"').lower())


def lua_lines(conf: Path, setting: str) -> list[ConfLine]:
    """The lines of the file, and of those that it includes, in which this setting names lua.

    A file that cannot be read raises OSError.
    """
    # As in Slurm's own parser: any case, an operator before "=", and the value in quotes or up to a blank.
    pattern = re.compile(rf'(?:^|\s){setting}\s*[-*+/]?=\s*("[^"]*"|\S+)', re.IGNORECASE)
    return [
        line for line in _lines(conf, conf.parent, 0) if any(names_lua(v) for v in pattern.findall(line.text))
    ]


def _lines(path: Path, folder: Path, depth: int) -> Iterator[ConfLine]:
    if depth > _DEEPEST:
        raise OSError(f"{path} is included more than {_DEEPEST} levels deep")
    first, parts = 0, list[str]()
    for number, text in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
        first = first if parts else number
        parts.append(_COMMENT.sub("", text).rstrip())
        if parts[-1].endswith("\\"):
            parts[-1] = parts[-1][:-1]
            continue
        whole, parts = "".join(parts), []
        if included := _INCLUDE.match(whole):
            yield from _lines(folder / included[1], folder, depth + 1)
        else:
            yield ConfLine(path, first, whole.strip())
