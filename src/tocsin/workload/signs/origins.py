"""The origin of the text in a script's variables and files: written out, from outside, or computed from its own text."""

import re
from collections.abc import Sequence
from itertools import zip_longest

from tocsin.workload.signs.file_origins import FileOrigins
from tocsin.workload.signs.host_names import names_host
from tocsin.workload.signs.printing_programs import WRITERS
from tocsin.workload.signs.read_command import names_read, reads_all, reads_letters
from tocsin.workload.signs.reserved_words import ASSIGNS, DECLARES, PREFIXES
from tocsin.workload.signs.server_addresses import addresses
from tocsin.workload.signs.statements import Statement, statements
from tocsin.workload.signs.values import (
    A_NUMBER,
    CHANGED,
    COMPUTED,
    FROM_OUTSIDE,
    OUTSIDE,
    OWN,
    PIECE,
    UNKNOWN,
    WRITTEN,
    Value,
    base,
)
from tocsin.workload.signs.word_values import ALNUM, LONGEST
from tocsin.workload.signs.write_targets import EDITORS, edited_files

__all__ = ["Origins"]

_SETS_NUMBER = re.compile(
    r"([A-Za-z_]\w*)(?:\[[^\]]*\])?\s*(?:(?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--)|(?:\+\+|--)([A-Za-z_]\w*)"
)
_WRITE = WRITERS | {"tee", "cp", "sort", "install", "mv"}
_MOST_PARTS = _LONGEST_PART = 100
"""Of a loop's list, what is followed into a file."""
_SEPARATES = " ,;:|\n\t-"
_WITHOUT_BRACKETS = str.maketrans("", "", "{}\"'")
_MOST_POSITIONS = 9
_MAY_SPLIT = re.compile(r".*[*?{`]|\$|.*\$[@*({]")
_NAME = re.compile(r"[A-Za-z]")
"""A word that may become several."""


class Origins(FileOrigins):
    """The values of a script's variables and files, in the order of its statements."""

    def take(self, statement: Statement, given: Value | None) -> None:
        words = statement.words
        self.notice_files()
        place = 0
        while place < len(words) and words[place] in PREFIXES:
            place += 1
        if place < len(words) and words[place] in DECLARES:
            self._declare(words[place], words[place + 1 :])
            return
        while place < len(words) and "=" in words[place] and self.assign(words[place]):
            place += 1
        rest = words[place:]
        name = rest[0] if rest else ""
        if len(rest) > 1:
            self._command(name, rest, statement, given)
        elif name == "exec":
            self._open(statement)
        elif name == "shift":
            self.put("@", self.values.get("@", FROM_OUTSIDE))
        for word in edited_files(name, rest[1:]) if name in EDITORS else ():
            if (file := base(self.value(word).text)) in self.files:
                self.note_changed([file])
        if statement.redirections or name in _WRITE:
            self.write(statement, name, rest, given)

    def _open(self, statement: Statement) -> None:
        """What is opened for the commands that follow."""
        for operator, target in statement.redirections:
            if operator == "<>" and (file := base(self.value(target).text)) in self.files:
                self.note_changed([file])  # any part of it may be replaced
            if operator[:2] == "<<" or (operator[0] == "<" and self.read([target]).origin >= OWN):
                self.input = COMPUTED

    def _command(self, name: str, rest: Sequence[str], statement: Statement, given: Value | None) -> None:
        if rest[1] == "()":
            self.functions.add(name)
        elif name in ("for", "select", "foreach"):
            if len(rest) > 3:
                self.put(rest[1], self.listed(" ".join(rest[3:])))
                self.lists[rest[1]] = rest[3 : 3 + _MOST_PARTS]
        elif name == "read":
            self._fill(names := names_read(rest[1:]), statement, given)
            if names and any(word[0] == "-" and "a" in word for word in rest):
                self.arrays[names[0]] = self.values[names[0]].text
        elif name == "[[":
            self._match(rest[1])
        elif name in ("cd", "pushd"):
            folder = self.value(rest[-1])
            self.values["PWD"] = (
                folder
                if folder.text[:1] == "/"
                else Value(f"{UNKNOWN}/{folder.text}", max(folder.origin, OUTSIDE))
            )
            self._known.clear()
        elif name == "getopts":
            value = self.values.get("@", FROM_OUTSIDE)
            if rest[-1][:1] == "-":  # an option that is written out
                value = Value(self.value(rest[-1]).text[2:], OWN)
            self.put("OPTARG", value)
        elif name in ("mapfile", "readarray"):
            self._fill([rest[-1], "MAPFILE"], statement, given, lines=True)
        elif name == "printf":
            if rest[1] == "-v" and len(rest) > 3:
                value = self.echoed("printf", rest[3:])
                variable, bracket, _ = self.value(rest[2]).text.partition("[")
                own = Value(value.text if names_host(value.text) else PIECE, max(OWN, value.origin))
                self.put(variable, own if bracket else value)
        elif name == "function":
            self.functions.add(rest[1])
        elif name == "alias":
            self.functions.update(word.partition("=")[0] for word in rest[1:])
        elif name in self.functions:
            values = [self.value(word) for word in rest[1:]]
            worst = max(value.origin for value in values)
            values.append(self.values.get("@", FROM_OUTSIDE))
            host = next((value.text for value in values if names_host(value.text)), PIECE)
            self.put("@", Value(host, COMPUTED if worst == COMPUTED else OWN))
        elif name == "coproc":
            self.coprocess = True
        elif name == ":":
            for word in rest[1:]:
                if "${" in word:
                    self.value(word)
        else:
            self.note_files(name, rest, statement)

    def _declare(self, name: str, words: Sequence[str]) -> None:
        if name in ("set", "setenv"):
            self._set(words)
            return
        if name == "let":
            for word in words:
                for found in _SETS_NUMBER.finditer(word):
                    self.put(found[1] or found[2], A_NUMBER)
            return
        options = "".join(word[1:] for word in words if word[:1] == "-")
        for word in words:
            if "i" in options and word.isidentifier():
                self.integers.add(word)
            if (
                "=" in word
                and self.assign(word)
                and name in ("declare", "typeset", "local", "readonly", "export")
            ):
                variable = re.split(r"[\[+=]", word)[0]
                value = self.values[variable]
                if "i" in options:
                    self.integers.add(variable)
                    self.values[variable] = _as_integer(value)
                elif "n" in options:
                    if value.text.isidentifier():
                        self.references[variable] = value.text
                    self.values[variable] = Value(PIECE, max(OWN, value.origin))
                elif ("l" in options or "u" in options) and value.origin in (WRITTEN, OWN):
                    self.values[variable] = Value(value.text.lower(), COMPUTED)

    def assign(self, word: str) -> bool:
        """Record an assignment; False if the word is not one."""
        found = ASSIGNS.match(word)
        if not found:
            return False
        name, rest = self.references.get(found["name"], found["name"]), word[found.end() :]
        asked = name in self.missing
        old = self.values.get(name)
        if rest[:1] == "(" and rest[-1:] == ")":
            value = self.listed(rest[1:-1])
            if rest[1:].lstrip()[:1] == "[":
                self.keyed.add(name)
            if not found["more"]:
                self.put(name, value)
                self.arrays[name] = rest[1:-1]
                return True
        else:
            value = self.value(rest)
            if found["more"]:
                if (
                    PIECE in value.text
                    and value.text[:1] not in _SEPARATES
                    and value.origin in (OWN, COMPUTED)
                ):
                    value = CHANGED  # longer and longer, with nothing in between
                if old:
                    value = Value((old.text + value.text)[:LONGEST], max(old.origin, value.origin))
                    self.values[name] = value
            elif value.origin in (WRITTEN, OWN) and _is_longer(name, rest) and (old or PIECE in value.text):
                value = CHANGED
        if name in self.integers:
            value = _as_integer(value)
        if found["key"]:
            if _NAME.match(found["key"], 1):
                self.keyed.add(name)
            if value.origin != OUTSIDE:
                value = Value(value.text if names_host(value.text) else PIECE, max(OWN, value.origin))
        if not asked:  # what it asks for itself is from before
            self.missing.discard(name)
        self.put(name, value)
        return True

    def listed(self, inside: str) -> Value:
        """Any of the words of a list."""
        origin = OUTSIDE
        count = 0
        text = host = ""
        for statement in statements(inside).found:
            for word in statement.words:
                count += 1
                value = self.value(word.partition("]=")[2] if word[:1] == "[" and "]=" in word else word)
                text = value.text
                if "IFS" in self.values and word[:1] == "$" and value.origin in (WRITTEN, OWN):
                    value = CHANGED  # cut into parts
                if not host and (names_host(text) or any(addresses(text))):
                    host = text
                origin = max(origin, OWN if value.origin == WRITTEN else value.origin)
        if count == 1 and origin == OWN:
            return Value(text, OWN)
        return Value((host or PIECE) if origin >= OWN else UNKNOWN, origin)

    def printed_in_loop(self, statement: Statement) -> str:
        """What a command prints in all iterations, if it prints what a loop is over."""
        text = self.printed(statement, None).text
        name = statement.words[-1].strip('"${}')
        if text.count(PIECE) != 1 or name not in self.lists:
            return text
        end = "\n" if "echo" in statement.words and "-n" not in statement.words else ""
        return "".join(
            text.replace(PIECE, self.value(word).text[:_LONGEST_PART]) + end for word in self.lists[name]
        )

    def _match(self, test: str) -> None:
        """The parts of a text that a test matches."""
        left, sign, _ = test.partition("=~")
        if sign:
            value = self.value(left.split()[-1] if left.split() else "")
            outside = value.origin == OUTSIDE and not ALNUM.search(value.text)
            self.values["BASH_REMATCH"] = FROM_OUTSIDE if outside else CHANGED
            self._known.clear()

    def _set(self, words: Sequence[str]) -> None:
        if "histexpand" in words or any(word[0] == "-" and "H" in word for word in words):
            self.history = True
        if words[:1] == ["--"]:
            self.put("@", self.listed(" ".join(words[1:])))
            self.arrays["@"] = " ".join(words[1:])
            if len(words) <= _MOST_POSITIONS + 1 and not any(map(_MAY_SPLIT.match, words)):
                for number, word in enumerate(words[1:], 1):
                    self.values[str(number)] = self.value(word)
        elif len(words) > 2 and words[1] == "=":  # csh
            self.put(words[0], self.value(words[2]))
        elif words and words[0][:1] not in "-+":
            named = [word for word in words if word[:1] != "-"]
            if len(named) > 1 and named[0].isidentifier():  # fish, and setenv of csh
                self.put(named[0], self.listed(" ".join(named[1:])))
            for word in words:
                if "=" in word:
                    self.assign(word)

    def _fill(
        self, names: Sequence[str], statement: Statement, given: Value | None, *, lines: bool = False
    ) -> None:
        read = self.given(statement, given)
        origin = self.input
        if any(operator.endswith("<&") for operator, _ in statement.redirections):
            origin = max(origin, COMPUTED if self.coprocess else OWN)  # written there by another command
        if read is not None and read.origin != OUTSIDE:
            origin = max(origin, OWN, read.origin)
            split = "IFS" in self.values or any(word.startswith("IFS=") for word in statement.words)
            if (
                lines
                or (split and len(names) > 1)
                or any(operator == "<" for operator, _ in statement.redirections)
            ):
                origin = COMPUTED  # it went through a file, or is split
            elif names and reads_all(statement.words):
                self.put(names[0], Value(read.text, origin))
                return
            elif reads_letters(statement.words):
                origin = COMPUTED
            elif read.origin == WRITTEN and self.input == OUTSIDE and names:
                line = read.text.replace("\\\n", "").partition("\n")[0]
                fields = line.split(None, len(names) - 1)
                for name, text in zip_longest(names, fields, fillvalue=""):
                    self.put(name, Value(text, OWN))
                return
        for name in names:
            self.put(name, Value(PIECE if origin >= OWN else UNKNOWN, origin))


def _is_longer(name: str, rest: str) -> bool:
    """Whether a variable gets its own value with something appended, joined by nothing or a dot."""
    bare = rest.translate(_WITHOUT_BRACKETS)
    return (
        f"${name}$" in bare
        or f"${name}.$" in bare
        or (bare[:1] == "$" and bare.endswith(f"${name}") and bare[1:] != name)
    )


def _as_integer(value: Value) -> Value:
    """The value of a variable that holds a number."""
    return value if value.text.isdecimal() else A_NUMBER
