"""The origin of the text in files that a script writes, copies and cuts."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from tocsin.workload.signs.file_kinds import DATA_FILE
from tocsin.workload.signs.outputs import Outputs
from tocsin.workload.signs.printing_programs import CODE, COMPILERS, DECODERS, FILTERS, WRITERS
from tocsin.workload.signs.reserved_words import RESERVED
from tocsin.workload.signs.statements import Statement
from tocsin.workload.signs.values import COMPUTED, ITSELF, OUTSIDE, OWN, OWN_PIECE, Value, base, is_itself
from tocsin.workload.signs.word_values import ALNUM
from tocsin.workload.signs.write_targets import write_targets

__all__ = ["FileOrigins"]

_NAMED = re.compile(r"[\w./~-]*\w\.[A-Za-z]\w*$")
_LONGEST_CONTENT = 300
_READS = WRITERS | FILTERS | DECODERS
"""Programs that may write their input into a file that an argument names."""
_ARCHIVERS = frozenset("tar zip ar".split())  # noqa: SIM905
_ARCHIVE = re.compile(r"\.(?:tar|tgz|t?gz|zip|a|xz|bz2)$")
_TOOLS = frozenset("uu quopri base64 gzip zipfile tarfile json.tool".split())  # noqa: SIM905
"""Modules of Python that decode or unpack one file into another."""
_OUTPUT = frozenset("-o -out --output".split())  # noqa: SIM905
_DIRECTIVE = re.compile(r"%.|\\.")
"""What stands for something else in a format of find."""
_LETTERS = re.compile(r"[A-Za-z]{3}")


class FileOrigins(Outputs):
    """The files of a script, in addition to what its commands print."""

    def note_files(self, name: str, rest: Sequence[str], statement: Statement) -> None:
        """Record the files that a command makes from others."""
        if name in ("cp", "mv", "install", "ln") and len(rest) > 2:
            source = rest[-2]
            origin = (
                OWN
                if is_itself(source) or self.value(source).text == ITSELF
                else self.files.get(base(self.value(source).text), 0)
            )
            if origin or name == "ln":
                file = base(self.value(rest[-1]).text)
                self.files[file] = max(origin, OWN)
                if content := self.contents.get(base(self.value(source).text)):
                    self.contents[file] = content
        elif name in ("touch", "mkdir"):
            made = [self.value(word).text for word in rest[1:] if word[:1] != "-"]
            parts = (part for path in made for part in path.split("/"))
            self.files |= dict.fromkeys(filter(ALNUM.search, parts), OWN)
        elif name == "sed":
            for file in re.findall(r"w\s+([\w.-]+)[\"']?$", " ".join(rest), re.MULTILINE):
                self.files[file] = COMPUTED
        elif name == "dd":
            if any(word.startswith(("skip=", "count=")) for word in rest):
                self.assembled.update(base(word[3:]) for word in rest if word.startswith("of="))
        elif name == "objcopy":
            self.assembled.add(base(rest[-1]))
        elif name == "find":
            for option, file, form in zip(rest, rest[1:], rest[2:], strict=False):
                if option == "-fprintf" and _LETTERS.search(_DIRECTIVE.sub("", form)):
                    self.files[base(self.value(file).text)] = COMPUTED
        elif name in _ARCHIVERS and self._names_own(rest):
            self.files |= {file: OWN for file in map(base, rest[1:]) if _ARCHIVE.search(file)}
        elif CODE.match(name) and not _TOOLS.isdisjoint(rest) and self._names_own(rest):
            self._note_made(rest[1:])
        elif name == "cat" and len(rest) > 2:
            self.assembled.update(
                base(target) for operator, target in statement.redirections if operator in (">", ">>")
            )
        elif name in COMPILERS and self._names_own(rest):
            target = next((after for option, after in pairwise(rest) if option == "-o"), "a.out")
            self.files[base(target)] = COMPUTED if "-E" in rest else OWN
        elif (name == "cpp" or name in DECODERS) and self._names_own(rest):
            self._note_made(rest[1:])

    def _names_own(self, words: Sequence[str]) -> bool:
        """Whether any of these words is a file that the script wrote."""
        return any(self.files.get(base(word)) for word in words[1:])

    def note_changed(self, files: Iterable[str]) -> None:
        """Record that the text of these files was changed."""
        for file in files:
            self.files[file] = COMPUTED
            self.contents.pop(file, None)

    def _note_made(self, words: Sequence[str]) -> None:
        """Record the files that a program makes, by its words, as computed, unless the script wrote them before."""
        for option, word in pairwise(("", *words)):
            if _NAMED.match(word) or option in _OUTPUT:
                self.files.setdefault(base(word), COMPUTED)

    def write(self, statement: Statement, name: str, rest: Sequence[str], given: Value | None) -> None:
        """Record what a command writes into files."""
        targets = [
            target
            for operator, target in statement.redirections
            if operator in (">", ">>", ">|", "&>", "&>>")
        ]
        read = self.given(statement, given) if name in _READS else None
        if read is not None and read.origin != OUTSIDE:
            if name in DECODERS:
                self._note_made(rest[1:])
            for word in rest[1:] if name in WRITERS else filter(_NAMED.match, rest[1:]):
                if word[:1] != "-" and (file := base(self.value(word).text.rpartition("=")[2])):
                    self.files[file] = COMPUTED
            for file in re.findall(r"^\+\+\+ ([\w./-]+)", read.text, re.MULTILINE):
                self.files[base(file)] = COMPUTED
        targets += write_targets(name, rest[1:])
        if not targets:
            return
        value = OWN_PIECE if name in RESERVED else self.printed(statement, given)
        if (
            value.origin == COMPUTED
            and self.is_unknown(name)
            and all(map(DATA_FILE.search, map(_last, targets)))
        ):
            return  # results of a scientific program
        if value.origin in (OWN, COMPUTED) or ALNUM.search(value.text):
            for target in targets:
                if (file := base(self.value(target).text)) and file != "null":
                    self.files[file] = max(
                        self.files.get(file, OWN), COMPUTED if value.origin == COMPUTED else OWN
                    )
                    self.contents[file] = f"{self.contents.get(file, '')}{value.text}"[:_LONGEST_CONTENT]


def _last(target: str) -> str:
    return target.strip("\"'")
