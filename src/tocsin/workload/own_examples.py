"""A site's own examples of an operation, from a folder and from people's answers."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tocsin.core.errors import InputError, ScriptError
from tocsin.scripts.text import read
from tocsin.workload.normal import commands
from tocsin.workload.rules import OPERATION

__all__ = ["Examples", "kind_of", "read_examples"]

_LEAST = 5
"""Examples of each kind."""
_MOST = 100_000
_NUMBERS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Examples:
    """Scripts that are the operation, and scripts that are not."""

    yes: Sequence[str]
    no: Sequence[str]
    no_text: int = 0
    """Files that are not text; not used."""
    contradicting: int = 0
    """Answers that contradict each other about one script; not used either."""

    def __len__(self) -> int:
        return len(self.yes) + len(self.no)


class _File(NamedTuple):
    path: Path
    text: str


def kind_of(text: str) -> str:
    """A key shared by scripts that are equal except for numbers, case and blanks."""
    return " ".join(_NUMBERS.sub("0", commands(text).text.lower()).split())


def read_examples(
    name: str, folder: Path, *, background: Iterable[str] = (), more: Sequence[tuple[str, bool]] = ()
) -> Examples:
    """FOLDER/yes holds scripts that are it, FOLDER/no scripts that are not; without FOLDER/yes, all in the folder are it.

    `background` are more scripts that are not; `more` are answered cases, which take precedence over a file with the
    same script. A script in both folders is refused: nothing could be learned from it.
    """
    if not OPERATION.fullmatch(name):
        raise InputError(
            f'"{name[:80]}" is not a valid name for an operation; use lower-case letters, digits and _'
        )
    answers: dict[str, set[bool]] = {}
    for text, is_it in more:
        answers.setdefault(kind_of(text), set()).add(is_it)
    yes, lost = _scripts(folder / "yes" if (folder / "yes").is_dir() else folder)
    no, also_lost = _scripts(folder / "no") if (folder / "no").is_dir() else ([], 0)
    kinds = {kind_of(file.text): file.path for file in yes}
    for file in no:
        if (kind := kind_of(file.text)) in kinds and kind not in answers:
            raise InputError(
                f"{kinds[kind]} and {file.path} say the same, but for numbers and blanks; a script is {name} or it is "
                "not: take one of them away"
            )
    clear = [(text, is_it) for text, is_it in more if len(answers[kind_of(text)]) == 1]
    found = Examples(
        [*(f.text for f in yes if kind_of(f.text) not in answers), *(text for text, is_it in clear if is_it)],
        [
            *(f.text for f in no if kind_of(f.text) not in answers),
            *(text for text, is_it in clear if not is_it),
            *background,
        ],
        lost + also_lost,
        len(more) - len(clear),
    )
    for scripts, what in ((found.yes, f"of {name}"), (found.no, "of other jobs")):
        if len(scripts) < _LEAST:
            raise InputError(
                f"{folder} has {len(scripts)} example{'' if len(scripts) == 1 else 's'} {what}; at least {_LEAST} are needed"
                + (", in the folder no or among the scripts that tocsin kept" if scripts is found.no else "")
                + (f" ({found.no_text} files are no text)" if found.no_text else "")
            )
    return found


def _scripts(folder: Path) -> tuple[list[_File], int]:
    """The scripts in a folder, and the number of other files."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.is_file())[:_MOST]
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be read: {error.strerror}") from None
    found: list[_File] = []
    for path in paths:
        try:
            found.append(_File(path, read(path)))
        except ScriptError:
            continue
    return found, len(paths) - len(found)
