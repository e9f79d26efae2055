"""Code in another language that a script passes to an interpreter or to a program with files of its own kind."""

import re
from collections.abc import Iterator, Sequence

from tocsin.workload.signs.arguments import is_built, is_handed
from tocsin.workload.signs.computed_kinds import ENDPOINT, HANDS_ON, RUNS, Found
from tocsin.workload.signs.file_kinds import CODE_FILE, RECIPE, SETTINGS_FILE
from tocsin.workload.signs.foreign import makes_text, names_files, runs_unwritten
from tocsin.workload.signs.given_files import given_files
from tocsin.workload.signs.host_names import names_host, strings_of
from tocsin.workload.signs.inert_code import is_inert
from tocsin.workload.signs.programs import EDITORS, MAKERS
from tocsin.workload.signs.recipes import puts_together
from tocsin.workload.signs.values import COMPUTED, UNKNOWN, Value, base, is_itself
from tocsin.workload.signs.written_files import WrittenFiles

__all__ = ["inline_code"]

_SAVES = re.compile(r"\bw!?\s+([\w.-]+)")
"""Files that an editor is told to write."""
_INTO_NAMED_FILE = re.compile(r"\bprintf?\b[^>;}|]{0,200}>\s*[A-Za-z_$(]")
"""What awk prints into a file whose name comes from elsewhere."""
_SETS_MEMORY = re.compile(r"\bset\s+(?:var|\{|\*)|\b(?:memory\s+write|restore)\b")
"""A debugger changes what the program has read."""
_IN_PLACE = re.compile(r"-[a-z]{0,4}i(?:\.\w+)?$|--in-place")
_LANGUAGES = EDITORS | frozenset("R sqlite3 gnuplot matlab sas stata m4 gdb lldb expect wish".split())  # noqa: SIM905
"""Programs with files of their own kind that are code and not recipes."""


def inline_code(
    files: WrittenFiles, line: int, name: str, words: Sequence[str], given: Value | None
) -> Found:
    """What code in another language runs or passes on: on the command line, in files and in its input."""
    origins = files.origins
    texts: list[str] = []
    named: list[str] = []
    values = [origins.value(word) for word in words]
    file_of_code = next((word for word in words if word[:1] != "-"), "") if "awk" not in name else ""
    for word, value in zip(words, values, strict=True):
        if value.origin == COMPUTED and word is file_of_code:
            yield line, RUNS
        elif is_built(word) and is_handed(origins, word):
            yield line, HANDS_ON
        elif is_itself(base(word)) and word is file_of_code and "awk" not in name:
            yield line, RUNS
        file = base(value.text)
        if file in files.bodies:
            named.append(files.bodies[file])
        elif origins.files.get(file) == COMPUTED and (word is file_of_code or word[:2] == "-f"):
            yield line, RUNS
        if word.startswith("--eval"):
            named.append(value.text.partition("=")[2])
        elif " " in value.text or "(" in value.text:
            texts.append(value.text)
    if given is not None and file_of_code in ("", "-", "/dev/stdin") and "awk" not in name and name != "jq":
        if given.origin == COMPUTED:  # its input is its code
            yield line, RUNS
        elif given.text != UNKNOWN:
            named.append(given.text)
    elif given is not None and "awk" in name and any(word in ("-", "-f-", "/dev/stdin") for word in words):
        texts.append(given.text)
    if MAKERS.match(name):
        named += [
            body for file, body in files.bodies.items() if CODE_FILE.search(file) or RECIPE.search(file)
        ]
        if name not in _LANGUAGES and any(map(puts_together, named)):
            yield line, RUNS
    texts += named
    if name in EDITORS:
        edited = [*map(base, words), *_SAVES.findall(" ".join([*texts, given.text if given else ""]))]
        origins.note_changed(edited)
    elif any(map(_IN_PLACE.match, words)):
        origins.note_changed([file for file in given_files(words) if file in origins.files])
    if name in ("gdb", "lldb") and any(map(_SETS_MEMORY.search, texts)):
        yield line, HANDS_ON
    if name != "jq":
        yield from ((line, why) for text in texts for why in _signs(name, text))
    origins.loose = (
        origins.loose
        or name.endswith("rename")
        or ("awk" in name and any(map(_INTO_NAMED_FILE.search, texts)))
    )
    for text in texts:
        for file in map(base, names_files(text)):
            origins.files[file] = COMPUTED
            if SETTINGS_FILE.search(file) and makes_text(text):
                yield line, HANDS_ON


def _signs(name: str, text: str) -> Iterator[str]:
    # awk has few ways to run anything, and they are known; making text is its purpose
    if (runs_unwritten(text, surely=True) or ("awk" not in name and makes_text(text))) and not is_inert(
        name, text
    ):
        yield RUNS
    if names_host(strings_of(text)):
        yield ENDPOINT
