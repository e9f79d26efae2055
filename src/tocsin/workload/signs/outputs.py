"""What commands print, by the origin of their input.

Nothing is run. The output of a program is from outside only if it is on a list of harmless ones and gets nothing of the
the script's own text.
"""

import re
from abc import abstractmethod
from collections.abc import Sequence

from tocsin.workload.signs.file_kinds import FILE_NAME
from tocsin.workload.signs.printed_text import carries, format_of, formatted, writes_text
from tocsin.workload.signs.printing_programs import (
    ASK_SERVERS,
    CODE,
    DECODERS,
    ECHOES,
    FILTERS,
    HARMLESS,
    KEEPS,
    NUMBERS,
    PATHS,
    REVEALS,
    SEARCHES,
    SHELL_STATE,
    STARTERS,
)
from tocsin.workload.signs.reserved_words import RESERVED, program_of
from tocsin.workload.signs.statements import Statement, statements
from tocsin.workload.signs.values import (
    A_NUMBER,
    CHANGED,
    COMPUTED,
    FROM_OUTSIDE,
    FROM_SERVER,
    ITSELF,
    OUTSIDE,
    OWN,
    OWN_PIECE,
    PERHAPS,
    PIECE,
    UNKNOWN,
    WRITTEN,
    Value,
    base,
    is_itself,
)
from tocsin.workload.signs.word_filters import keeps_words
from tocsin.workload.signs.word_parts import ESCAPES
from tocsin.workload.signs.word_values import ALNUM, DEEPEST, MOST_WORK, Words

__all__ = ["Outputs"]

_NUMERIC_FORMAT = re.compile(r"%[-+ #0-9.*]*[dfgeEi]")
_CHANGES = re.compile(r"%[-+ #0-9*]*(?:[boxXucq(aA]|\.[\d*]*[sbq])")
"""A format that prints its argument in another form, or only part of it."""
_LIKE_ADDRESS = re.compile(r"[\"']?\d{10,12}[\"']?$")
"""A number that is an address if its thousands are separated by dots."""
_JOINS_LINES = re.compile(r"tr -d\S* \S*(?:\\n|\\012)|paste -\w*s\w* ?(?:-d ?)?(?:''|\"\"|'?\\0)")
_DIGITS_ONLY = re.compile(r"(?:\\d|\[0-9\])(?:[+*]|\\\+|\{[\d,]*\})?(?:\(\?=[^)]*\))?[$\"']*$")
_JOINS_WITH_DOT = re.compile(r"(?:-S|--separator=)?[\"']?\.[\"']?$")
_WITHOUT_BRACKETS = str.maketrans("", "", "[]\"'")
_HOST_NAMES = frozenset({"hostname", "hostnames"})
"""What `scontrol show` derives from the list of nodes."""
_PRINTERS = HARMLESS | ECHOES | FILTERS | KEEPS | SEARCHES | PATHS | DECODERS | SHELL_STATE


class Outputs(Words):
    """The output of a script's commands, in addition to the values of its words."""

    def substituted(self, inside: str) -> Value:
        self.work += 1 + len(inside) // 100
        if self.depth > DEEPEST or self.work > MOST_WORK:
            return CHANGED
        text = inside.strip()
        if text[:1] == "<" and text[1:2] != "<":
            return self.read([text[1:].strip()])
        self.depth += 1
        try:
            return self.output(statements(inside).found)
        finally:
            self.depth -= 1

    def output(self, found: Sequence[Statement]) -> Value:
        """What a list of commands prints."""
        printed: list[Value] = []
        given: Value | None = None
        looped = False
        for statement in found:
            place = program_of(statement.words)
            name = statement.words[place] if place < len(statement.words) else ""
            if name in RESERVED or (not name and statement.words):
                self.take(statement, given)
                looped = looped or name in ("for", "done")
                given = given if statement.pipes else None
                continue
            given = self.printed(statement, given if statement.piped else None)
            if not statement.pipes:
                printed.append(given)
        if not printed:
            return given or FROM_OUTSIDE
        origin = max(value.origin for value in printed)
        if (len(printed) > 1 or looped) and origin in (WRITTEN, OWN):
            origin = COMPUTED if looped else max(origin, OWN)  # one after the other, without separators
        return Value(printed[0].text if len(printed) == 1 else PIECE, origin)

    def given(self, statement: Statement, given: Value | None) -> Value | None:
        """What a command reads: from a pipe, a file or a here-document."""
        for operator, target in statement.redirections:
            if operator == "<<<":
                given = self.value(target)
            elif operator == "<<":
                given = self.document(target)
            elif operator == "<<'":
                given = Value(target, WRITTEN)
            elif operator == "<" and given is None:
                given = self.read([target])
        return given

    def printed(self, statement: Statement, given: Value | None) -> Value:
        """What a command prints, given the input from a pipe."""
        words = statement.words
        place = program_of(words)
        given = self.given(statement, given)
        if place >= len(words):
            return given or FROM_OUTSIDE
        name, arguments = base(words[place]), words[place + 1 :]
        if name in STARTERS and arguments and arguments[0] not in ("-v", "-V"):
            at = next((at for at, word in enumerate(arguments) if base(word) in _PRINTERS), None)
            if at is not None:
                name, arguments = base(arguments[at]), arguments[at + 1 :]
        if name in self.functions:
            return CHANGED
        if self.files.get(name) and words[place] != name:  # a program that the script wrote
            return CHANGED
        if name in ECHOES:
            return self.echoed(name, arguments)
        if name == "seq" and any(word[:2] == "-s" for word in arguments):
            return A_NUMBER
        if name == "bc" and given is not None and '"' in given.text:
            return CHANGED  # text in quotes is printed
        if name == "xargs" and "printf" in arguments and given is not None and given.origin != OUTSIDE:
            return CHANGED
        if name in NUMBERS:
            return A_NUMBER if given and given.origin != OUTSIDE else FROM_OUTSIDE
        if name in KEEPS or name in FILTERS or name in SEARCHES:
            return self._filtered(name, arguments, given)
        if CODE.match(name):
            own = (
                writes_text(arguments)
                or (given is not None and given.origin != OUTSIDE)
                or any(self.files.get(base(word)) for word in arguments[:3])
            )
            return CHANGED if own else FROM_OUTSIDE
        if name == "openssl" and arguments[:1] == ["rand"]:
            return FROM_OUTSIDE
        if name in PATHS:
            return self._path(name, arguments)
        if name in ASK_SERVERS:
            return FROM_SERVER
        values = [self.value(word) for word in arguments]
        if name in DECODERS or any(
            value.origin == COMPUTED and not (name in HARMLESS and FILE_NAME.search(value.text))
            for value in values
        ):
            return CHANGED
        if given is not None and given.origin != OUTSIDE and given.text:
            return CHANGED
        own = any(self.files.get(base(value.text)) for value in values if ALNUM.search(value.text))
        if name not in HARMLESS and name not in SHELL_STATE:
            return CHANGED if own or any(map(carries, arguments)) else PERHAPS
        assigned = any("=" in word for word in words[:place])  # the zone of a clock may be any word
        return self._of_harmless(name, arguments, values, own=own or assigned)

    def _of_harmless(
        self, name: str, arguments: Sequence[str], values: Sequence[Value], *, own: bool
    ) -> Value:
        """What a harmless program prints; `own`: it gets a file that the script wrote."""
        if name == "expr" and any(
            value.origin != OUTSIDE and re.search(r"[A-Za-z]{3}", value.text) for value in values
        ):
            return CHANGED
        if (form := format_of(name, arguments)) is not None:
            return Value(form, OWN)
        if name == "mktemp" and values:
            return Value(re.sub(r"X{3,}", UNKNOWN, values[-1].text), max(OUTSIDE, values[-1].origin))
        if (name == "tput" and "TERMINFO" in self.values) or (
            name == "nodeset" and any(map(_JOINS_WITH_DOT.match, arguments))
        ):
            return CHANGED
        if name == "scontrol" and "hostnames" in arguments and "[" in values[-1].text:
            return Value(values[-1].text.translate(_WITHOUT_BRACKETS), values[-1].origin)
        if name == "pwd":
            return self.variable("PWD")
        if name in SHELL_STATE:
            return CHANGED
        if name in ("ls", "find") and (
            file := next(filter(None, map(self.matching, arguments or ["*"])), "")
        ):
            return Value(file, OWN)
        reveals = name in REVEALS and not (name == "scontrol" and not _HOST_NAMES.isdisjoint(arguments))
        if own or reveals:
            return OWN_PIECE
        return PERHAPS if name == "ls" and self.files else FROM_OUTSIDE

    def is_unknown(self, name: str) -> bool:
        """Whether the output of a program is unknown."""
        name = base(name)
        return (
            name not in _PRINTERS
            and name not in NUMBERS
            and not CODE.match(name)
            and name not in self.functions
        )

    def _filtered(self, name: str, arguments: Sequence[str], given: Value | None) -> Value:
        if given is None:
            given = self.read(arguments)
        if name in KEEPS:
            return given
        if name in SEARCHES and not any(
            word[:1] == "-" and "o" in word and word[:2] != "--" for word in arguments
        ):
            return given
        if given.text == PIECE and _JOINS_LINES.search(f"{name} {' '.join(arguments)}"):
            return CHANGED
        if given.origin == OUTSIDE and not ALNUM.search(given.text):
            return CHANGED if CODE.match(name) and writes_text(arguments) else given
        if name in SEARCHES and arguments and _DIGITS_ONLY.search(" ".join(arguments)):
            return A_NUMBER
        if given.origin != COMPUTED and keeps_words(name, arguments) and not self._reads_itself(arguments):
            return OWN_PIECE
        return CHANGED

    def _reads_itself(self, arguments: Sequence[str]) -> bool:
        """Whether a program reads the script, so that it may print even a comment."""
        return self.input >= OWN or any(
            is_itself(word) or self.value(word).text == ITSELF for word in arguments
        )

    def _path(self, name: str, arguments: Sequence[str]) -> Value:
        values = [self.value(word) for word in arguments if word[:1] != "-"]
        if not values:
            return FROM_OUTSIDE
        if name in ("readlink", "realpath") and any(self.files.get(base(value.text)) for value in values):
            return OWN_PIECE
        text = values[0].text
        if name == "dirname":
            text = text.rpartition("/")[0] or text
        elif name == "basename":
            text = base(text.rstrip("/"))
            text = text.removesuffix(values[1].text) if len(values) > 1 else text
        return Value(text, max(value.origin for value in values))

    def echoed(self, name: str, arguments: Sequence[str]) -> Value:
        values = [self.value(word) for word in arguments]
        origin = max((value.origin for value in values), default=WRITTEN)
        texts = [value.text for value in values]
        if name == "printf" and texts:
            texts = texts[1:] if texts[0] == "--" else texts
            form = (texts or [""])[0].replace("\\n", "\n").replace("\\t", "\t")
            if ESCAPES.search(form) or _CHANGES.search(form):
                return CHANGED
            if "%'" in form and any(map(_LIKE_ADDRESS.match, texts[1:])):
                return CHANGED
            if origin == OWN and " " not in form and any("[@]" in word or "$@" in word for word in arguments):
                return CHANGED  # all of them, without separators
            if _NUMERIC_FORMAT.search(form) and origin == OUTSIDE:
                return Value(_NUMERIC_FORMAT.sub(UNKNOWN, form).replace("%s", UNKNOWN), OUTSIDE)
            return Value(formatted(form, texts[1:]), origin)
        if texts and texts[0][:1] == "-" and not texts[0][1:].strip("neE"):
            if "e" in texts[0] and any(map(ESCAPES.search, texts)):
                return CHANGED
            texts = texts[1:]
        return Value(" ".join(texts), origin)

    def read(self, arguments: Sequence[str]) -> Value:
        """The contents of files with these names."""
        origin = OUTSIDE
        files = [word for word in arguments if word[:1] != "-"]
        names = [base(self.value(word).text) for word in files]
        if names and all(name in self.contents for name in names):
            worst = max(self.files.get(name, OWN) for name in names)
            return Value("".join(self.contents[name] for name in names), max(OWN, worst))
        for word in files:
            value = self.value(word)
            own = (value.origin >= OWN and value.text[:1] == PIECE) or value.text == ITSELF
            origin = max(origin, OWN if own or is_itself(word) else self.files.get(base(value.text), OUTSIDE))
            if word[:2] == "<(":
                origin = max(origin, OWN if value.origin == WRITTEN else value.origin)
        return Value(PIECE if origin > OUTSIDE else UNKNOWN, origin)

    @abstractmethod
    def take(self, statement: Statement, given: Value | None) -> None:
        """Record what a statement sets and writes."""
