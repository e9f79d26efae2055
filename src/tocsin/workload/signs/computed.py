"""Commands that a script computes from its own text: the program's name, what a shell runs, or an argument of a program.

Other rules read text that is written out, and text from elsewhere is not in the script. In between is text that is here
in another form: a script that computes such text and runs it, or passes it to an unknown program, is shown to people.
So is one that gives such a program the address of a server.
"""

import re
from collections.abc import Sequence

from tocsin.workload.signs.computed_kinds import BUILT, ENDPOINT, RUNS, TOO_MUCH, UNCLEAR, Found
from tocsin.workload.signs.effort import Effort
from tocsin.workload.signs.file_kinds import is_file
from tocsin.workload.signs.foreign import makes_text, runs_unwritten
from tocsin.workload.signs.given_files import given_files
from tocsin.workload.signs.host_and_port import may_name_host_and_port, names_host_and_port
from tocsin.workload.signs.host_names import names_host, strings_of
from tocsin.workload.signs.inert_code import is_inert
from tocsin.workload.signs.job_request import note_request
from tocsin.workload.signs.launchers import HOOKS
from tocsin.workload.signs.many_words import ManyWords
from tocsin.workload.signs.mining_names import NAMES, OTHER_FORMS, WORDS
from tocsin.workload.signs.printing_programs import CODE
from tocsin.workload.signs.program_signs import IDLE, MORE_HOOKS, NEED_SERVERS, RUN_OTHERS, ProgramSigns
from tocsin.workload.signs.programs import (
    ENDS,
    EXECUTORS,
    MAKERS,
    NETWORK,
    NO_PROGRAM,
    SHELLS,
    is_known_path,
)
from tocsin.workload.signs.reserved_words import DECLARES, PREFIXES, program_of
from tocsin.workload.signs.server_addresses import (
    addresses,
    has_address,
)
from tocsin.workload.signs.server_arguments import names_server
from tocsin.workload.signs.statements import Statement, statements
from tocsin.workload.signs.values import ITSELF_MARKS, OWN, OWN_PIECE, Value, base, is_itself
from tocsin.workload.signs.word_values import MOST_WORK

__all__ = ["computed_commands"]

_NAMES = ManyWords([name.encode() for name in (*WORDS, *OTHER_FORMS)])
_DIRECTIVE = re.compile(r"^#(?:SBATCH|PBS|BSUB|\$|COBALT|OAR|PJM|FLUX|BB|DW)\s[^\n]*", re.MULTILINE)
_OUTPUT = re.compile(
    r"^#\w{1,6}\s+(?:-o|--output)[ =]+\S+\.(?:json|sh|conf|cfg|ini|toml|ya?ml|py)\b", re.MULTILINE
)
_INTERPRETER = re.compile(r"#!\s*(?:\S*/env\s+(?:-\S+\s+)*(?:\w+=\S*\s+)*)?(\S+)")
_BEFORE_TEST = frozenset("if elif while until !".split())  # noqa: SIM905
_TESTS = frozenset("[ test".split())  # noqa: SIM905
"""Comparisons; their substitutions are examined before."""
_SETS_NOTHING = IDLE - {"mkdir", "cp", "mv"}
_WRITE = frozenset("tee sponge dd cp install sort".split())  # noqa: SIM905
_TAKEN = (
    RUN_OTHERS
    | EXECUTORS
    | ENDS
    | NO_PROGRAM
    | DECLARES
    | PREFIXES
    | frozenset(
        """read mapfile readarray printf alias cp mv install ln touch mkdir tee sed find tar git nc ncat socat telnet
        netcat shift""".split()  # noqa: SIM905  # lists of words read best so
    )
)
"""Words for which a command is examined even if all its words are plain."""
_CAPTURED = re.compile(r"(?:\$\(|`|<\()\s*([\w.:-]+)")
_COMMENT = re.compile(r"\n[ \t]*#(?!SBATCH|PBS|BSUB|\$|BB |DW )[^\n]*")
_DIRECTIVE_LINE = re.compile(r"\n#(?:SBATCH|PBS|BSUB|\$|COBALT|OAR|PJM|FLUX|BB|DW)\s[^\n]*")
"""Each begins with a literal character, which makes the search ten times as fast."""
_RUNS_LATER = ("trap", "PROMPT_COMMAND", "BASH_ENV", "BASH_ALIASES")
_PROMPT = re.compile(r"\bPS[0-4]=")
_LOOPS = re.compile(r"\bdo\b|\$\{?0\b|BASH_SOURCE")
_FISH = re.compile(r"#!.*\bfish\b")
_MOST_STATEMENTS = 4000


def computed_commands(text: str, effort: Effort) -> Found:
    """Line and reason of each such command."""
    if (found := _INTERPRETER.match(text)) and base(found[1]) not in SHELLS:
        lines = [line for line in text.split("\n") if line.lstrip()[:1] != "#"]
        code = "\n".join(lines)
        if (runs_unwritten(code, surely=True) or makes_text(code)) and not is_inert(base(found[1]), code):
            yield 1, RUNS
        if (
            any(addresses(code))
            or names_host(strings_of(code))
            or any(map(names_host_and_port, map(str.split, strings_of(code).split("\n"))))
        ):
            yield 1, ENDPOINT
        return
    if _FISH.match(text):
        text = re.sub(r"(?<=[ \t;])\(", "$(", text)
    read = statements(text)
    if read.unclear is not None:
        yield read.unclear, UNCLEAR
    walk = _Walk(text, effort)
    yield from walk.run(read.found[:_MOST_STATEMENTS])
    if walk.addresses:
        for found in _DIRECTIVE.finditer(text):
            if has_address(found[0]) or names_host(found[0], web=False):
                yield text.count("\n", 0, found.start()) + 1, ENDPOINT


class _Walk(ProgramSigns):
    """One pass over the statements of a script, with what is known of its variables and files."""

    def __init__(self, text: str, effort: Effort) -> None:
        super().__init__(text, effort)
        self.addresses = has_address(text) or _may_name_host(text) or bool(self.fetched)
        self.prints_to_files = self.addresses and _OUTPUT.search(text) is not None
        """Printed text may become a file."""
        self.follows_folder = "PWD" in text or "pwd" in text
        note_request(self.origins, text)

    def run(self, found: Sequence[Statement]) -> Found:
        """All signs of a script with these statements."""
        origins = self.origins
        active = [statement for statement in found if not statement.plain]
        may_call_itself = "0" in self.script and any(mark in self.script for mark in ITSELF_MARKS)
        for statement in active:  # functions may be called, and loops filled, further down
            words = statement.words
            if len(words) > 1 and words[1] == "()":
                origins.functions.add(words[0])
            elif len(words) > 1 and words[0] == "function":
                origins.functions.add(words[1])
            elif may_call_itself and any(map(is_itself, words[1:-1])):
                origins.values["@"] = OWN_PIECE  # it may call itself with arguments
        for statement in active:
            words = statement.words
            if not (statement.pipes or statement.redirections):
                continue
            ends = not words or words[0] in ENDS or words == ["exec"]
            if ends or words[0] in origins.functions:
                self.prints_to_files |= statement.pipes or any(
                    is_file(operator, target) for operator, target in statement.redirections
                )
            if ends and any(operator[:2] == "<<" for operator, _ in statement.redirections):
                origins.input = max(origins.input, OWN)
        if origins.functions and not origins.functions.isdisjoint(_CAPTURED.findall(self.script)):
            self.prints_to_files = True
        if origins.functions or (_may_run_later(self.script) and any(map(_runs_later, found))):
            given: Value | None = None
            for statement in found:  # what they use may be set after them
                if origins.work > MOST_WORK or self.effort.over():
                    break
                if self.is_idle(statement) or (statement.plain and self.is_plain(statement.words[0], ())):
                    given = None
                    origins.notice_files()
                    continue
                given = given if statement.piped else None
                origins.take(statement, given)
                given = self.passed(statement, given)
            origins.settled = True
        yield from self.walk(found)
        if origins.late and not origins.settled and _LOOPS.search(self.script):
            origins.settled = True
            yield from self.walk(found)  # in the next iteration, the last values count
        if origins.work > MOST_WORK or len(found) >= _MOST_STATEMENTS:
            yield found[0].line, TOO_MUCH
        yield from self._built_names()
        built = [(line, text) for line, name, _, text in self.built if base(name) not in NEED_SERVERS]
        if has_address("\n".join(text for _, text in built)):
            yield from ((line, ENDPOINT) for line, text in built if has_address(text))
        yield from self.unnamed_files()
        yield from self.files.addresses()

    def _built_names(self) -> Found:
        """Names of mining in words that are not written out."""
        if _NAMES.are_in("\n".join(text for *_, text in self.built).lower().encode("ascii", "replace")):
            for line, _, word, text in self.built:
                if NAMES.search(text) and not NAMES.search(word):
                    yield line, BUILT

    def passed(self, statement: Statement, given: Value | None) -> Value | None:
        """What is passed to the next command."""
        if not statement.pipes:
            return None
        if statement.words and statement.words[0] in ENDS:
            return OWN_PIECE
        return self.origins.printed(statement, given)

    def walk(self, found: Sequence[Statement]) -> Found:
        origins = self.origins
        given: Value | None = None
        for statement in found:
            if not statement.plain:
                yield from self.substituted(statement)
            if (
                not self.addresses and statement.plain and self.is_plain(statement.words[0], statement.words)
            ) or (not (self.addresses or self.prints_to_files) and self.is_idle(statement)):
                given = None
                origins.notice_files()
                continue
            if origins.work > MOST_WORK or self.effort.over():
                return
            given = given if statement.piped else None
            if statement.words and statement.words[0] in ENDS:
                for operator, target in statement.redirections:
                    if operator == "<" and (origin := origins.read([target]).origin) > origins.input:
                        origins.input, origins.late = origin, True
            yield from self.statement(statement, given)
            origins.take(statement, given)
            if statement.redirections or not _WRITE.isdisjoint(statement.words):
                yield from self.files.note(statement, given)
            given = self.passed(statement, given)

    def is_idle(self, statement: Statement) -> bool:
        """Whether a statement stands alone and only prints, or sets nothing that is followed."""
        words = statement.words
        if len(words) > 1 and words[0] in _BEFORE_TEST and words[1] in _TESTS:
            words = words[1:]
        if words and words[0] in _TESTS and words[0] not in self.origins.functions and words[1:2] != ["()"]:
            return not (statement.piped or statement.pipes or statement.redirections)
        return (
            not (statement.piped or statement.pipes or statement.redirections)
            and bool(words)
            and (
                (words[0] in _SETS_NOTHING and not (self.follows_folder and words[0] == "cd"))
                or (len(words) == 1 and words[0] in ENDS)
            )
            and words[1:2] != ["()"]
            and words[0] not in self.origins.functions
            and (words[0] == "echo" or not any(":" in word for word in words))
        )

    def is_plain(self, name: str, words: Sequence[str]) -> bool:
        """Whether a command with plain words, this one first, sets nothing, writes nothing and runs only itself."""
        return (
            name not in _TAKEN
            and "=" not in name
            and name not in self.origins.functions
            and base(name) not in self.origins.files
            and not CODE.match(base(name))
            and not MAKERS.match(name)
            and not (self.origins.files and any(file in self.origins.files for file in given_files(words)))
        )

    def statement(self, statement: Statement, given: Value | None) -> Found:
        words, line = statement.words, statement.line
        place = program_of(words)
        settings = [word for word in words[:place] if "=" in word]
        for word in settings if place < len(words) else ():
            self.origins.assign(word)
        for word in settings:
            if HOOKS.match(word) or MORE_HOOKS.match(word):
                yield from self.hook(line, word)
        if self.prints_to_files and place < len(words):
            if words[place] in ("printf", "echo"):
                self.files.type_in(line, self.origins.printed_in_loop(statement))
            elif words[place] in self.origins.functions:
                self.files.type_in(
                    line, "".join(self.origins.value(word).text for word in words[place + 1 :])
                )
        if self.addresses:
            name = words[place] if place < len(words) else ""
            known = is_known_path(name) and name not in self.origins.functions and name not in self.renamed
            known = known and not (
                name in NETWORK and (name in self.redefined or self.is_own_client(name, words))
            )
            if names_server(statement, name, known=known, kept=self.prints_to_files):
                yield line, ENDPOINT
        if place >= len(words) or (len(words) > place + 1 and words[place + 1] == "()"):
            if "command_not_found_handle" in words:
                yield line, RUNS
            return
        if words[place] not in NEED_SERVERS:
            self.files.handed.append(words[place + 1 :])
        yield from self.program(statement, words[place:], self.origins.given(statement, given), settings)


def _may_run_later(text: str) -> bool:
    """Whether a script may set what is run after other commands."""
    return any(mark in text for mark in _RUNS_LATER) or ("PS" in text and _PROMPT.search(text) is not None)


def _runs_later(statement: Statement) -> bool:
    """Whether a statement sets what is run after others."""
    return "trap" in statement.words or any(
        HOOKS.match(word) or MORE_HOOKS.match(word) for word in statement.words
    )


def _may_name_host(text: str) -> bool:
    """Whether a script may name a host, by one search over all of it; most name none."""
    code = _COMMENT.sub("\n", f"\n{text}")
    if names_host(code, institutions=True) or may_name_host_and_port(code):
        return True
    return "@" in code and names_host(_DIRECTIVE_LINE.sub("\n", code).replace("@", " "), web=False)
