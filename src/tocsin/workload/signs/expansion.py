"""What the lines of a shell script expand to: quotes, variables, arrays, pieces and functions.

A command may be put together from pieces that mean nothing alone. Nothing is run for this: only values in the script
itself are known, loops iterate over words written there, and the work is bounded.
"""

import re
from collections.abc import Sequence
from itertools import product

from tocsin.workload.commands import Line
from tocsin.workload.signs.documents import document_ends
from tocsin.workload.signs.parameter_changes import changed, unescaped
from tocsin.workload.signs.printed_text import printf_output

__all__ = ["expanded_lines"]

_HIDES = re.compile(
    r"^(?:(?:do|then|else|exec|nohup|srun|time|if|while|until|!)\s+){0,3}(?:[\"']?\$[\w{@*'(]|eval\s|\{\S{0,200},|[\w./]{0,60}(?:\\\w|''|\"\"))"
    r"|(?:[;&|{(]\s{0,9}|\sdo\s+)(?:\"?\$[\w{@*]|eval\s)"
    r"|\s-(?:[oua]|-?(?:url|user|pool|server|wallet|wal|algo|proxy))[ =]\S{0,200}?(?:\$[{(\w']|''|\"\"|\\\w|\{\w{0,20},)",
    re.MULTILINE,
)
"""A command or a miner's option that is not written out: without any, a script puts nothing together."""
_MAY_SET = re.compile(r"=|^set |-v|<<<")
_PIECES = ("+tcp", "tcp:", "ssl:", "\\x", "\\u0", "\\14", "\\15", "\\16", "stra", "ratum", "xmri", "miner")
"""A miner's command leaves one of these, however it is split or spelled."""
_MATTERS = re.compile(r"\w\]?\+?=(?!=)|^set --|^(?:read|for|while|printf -v|IFS)\b")
"""A line that may set a variable."""
_MOST_STEPS = 3000
_LONGEST = 4096
_MOST_WORDS = 64
_DEEPEST = 4
_STATEMENT = re.compile(
    r"((?>(?:\\.|'[^']*+'|\"(?:[^\"\\]|\\.)*+\"|\$'(?:[^'\\]|\\.)*+'|\$\((?>(?:[^()]|\([^()]*+\))*)\)|\([^()]*+\)|\$\{[^{}]*+\}|[^;&|\n\\'\"])+))"
)
_ASSIGNS = re.compile(
    r"\s*(?:(?:export|local|readonly|typeset|declare)\s+(?:-(?P<kind>\w+)\s+)?)?(?P<name>[A-Za-z_]\w*)(?:\[(?P<key>[^\]]{1,60})\])?(?P<more>\+?)=",
)
_DECLARES = re.compile(r"\s*(?:export|local|readonly|typeset|declare)\b")
_WORD = re.compile(
    r"(?>(?:\\.|'[^']*+'|\"(?:[^\"\\]|\\.)*+\"|\$'(?:[^'\\]|\\.)*+'|\$\((?>(?:[^()]|\([^()]*+\))*)\)|\$\{[^{}]*+\}|[^\s\\'\"])+)",
    re.DOTALL,
)
_FUNCTION = re.compile(r"\s*(?:function\s+)?([\w-]{1,60})\s*\(\s*\)\s*\{?\s*(.*)$")
_PART = re.compile(
    r"\\(?P<escaped>.)|'(?P<single>[^']*+)'|\$'(?P<ansi>(?:[^'\\]|\\.)*+)'|\"(?P<double>(?:[^\"\\]|\\.)*+)\""
    r"|\$\((?P<command>(?>(?:[^()]|\([^()]*+\))*))\)|`(?P<tick>[^`]*+)`|\$\{(?P<braced>[^{}]*+(?:\{[^{}]*+\}[^{}]*+)?)\}|\$(?P<plain>[A-Za-z_]\w*|[@*0-9])",
    re.DOTALL,
)
_IN_DOUBLE = re.compile(
    r"\\(?P<escaped>[\\\"$`])|\$\((?P<command>(?>(?:[^()]|\([^()]*+\))*))\)|`(?P<tick>[^`]*+)`|\$\{(?P<braced>[^{}]*+)\}|\$(?P<plain>[A-Za-z_]\w*|[@*0-9])",
    re.DOTALL,
)
_BRACED = re.compile(
    r"(?P<indirect>!?)(?P<name>[A-Za-z_]\w*|[@*0-9])(?:\[(?P<key>[^\]]{1,60})\])?(?P<rest>.*)$", re.DOTALL
)
_BRACES = re.compile(r"([^\s{}]*)\{([^\s{}]*,[^\s{}]*)\}([^\s{}]*)")
_READ = re.compile(r"\s*(?:IFS=(\S*)\s+)?read\s+(?:-[rsa]+\s+)*([\w ]+?)\s*<<<\s*(.+)$", re.DOTALL)
_MAPFILE = re.compile(r"\s*(?:mapfile|readarray)\s+(?:-t\s+)?(\w+)")
_FOR = re.compile(r"\s*for\s+(\w+)\s+in\s+(.*)$", re.DOTALL)
_SKIPPED = re.compile(r"\s*(?:do|then|else)\s+")


def expanded_lines(lines: Sequence[Line], text: str) -> list[Line]:
    """The lines that change when expanded, with the number of the original line."""
    low = text.lower()
    if not any(piece in low for piece in _PIECES) or not _HIDES.search(text):
        return []
    return _Shell(lines).run()


class _Shell:
    """Tracks values of variables and functions, line by line."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines
        self.values: dict[str, str] = {}
        self.lists: dict[str, list[str]] = {}
        self.bodies: dict[str, list[str]] = {}
        self.steps = _MOST_STEPS
        self.found: dict[tuple[int, str], None] = {}

    def run(self) -> list[Line]:
        bare = [line for _, line in self.lines]
        ends = document_ends(bare)
        place = 0
        while place < len(bare) and self.steps > 0:
            number, line = self.lines[place]
            end = ends.get(place)
            if end is not None and (into := _MAPFILE.match(line)):
                self.lists[into[1]] = bare[place + 1 : min(end, place + 1 + _MOST_WORDS)]
            function = _FUNCTION.match(line) if "(" in line else None
            if function:
                place = self._define(function, bare, place)
                continue
            if (loop := _FOR.match(line)) and "do" not in re.split(r"[;\s]", loop[2])[:-1]:
                place = self._loop(loop, bare, place)
                continue
            if _MATTERS.search(line) or line.partition(" ")[0] in self.bodies or _HIDES.search(line):
                self._line(line, number, 0)
            place = place + 1
        return list(self.found)

    def _define(self, function: re.Match[str], bare: Sequence[str], place: int) -> int:
        """Store the body of a function; returns the line after it."""
        if function[2].rstrip(" ;").endswith("}"):
            self.bodies[function[1]] = [function[2].rstrip(" ;")[:-1]]
            return place + 1
        body = [function[2]]
        after = place + 1
        while after < len(bare) and bare[after] != "}" and len(body) < _MOST_WORDS:
            body.append(bare[after])
            after += 1
        self.bodies[function[1]] = body
        return place + 1  # its lines are also read in place

    def _loop(self, loop: re.Match[str], bare: Sequence[str], place: int) -> int:
        """A loop of several lines over words written there."""
        after = place + 1
        while after < len(bare) and not re.match(r"done\b", bare[after]) and after - place < _MOST_WORDS:
            after += 1
        for word in self._words(loop[2].removesuffix("do").rstrip("; "))[:_MOST_WORDS]:
            self.values[loop[1]] = word
            for inside in range(place + 1, min(after, len(bare))):
                self._line(_SKIPPED.sub("", bare[inside]), self.lines[inside][0], 0)
        return after

    def _line(self, line: str, number: int, depth: int) -> None:
        """Apply what a line sets, and keep what it expands to."""
        if (
            one := re.match(r"\s*for\s+(\w+)\s+in\s+([^;]*);\s*do\s+(.*?);?\s*done", line)
        ) and depth < _DEEPEST:
            for word in self._words(one[2])[:_MOST_WORDS]:
                self.values[one[1]] = word
                self._line(one[3], number, depth + 1)
            return
        for statement in _STATEMENT.findall(line):
            self.steps -= 1
            if self.steps <= 0:
                return
            statement = _SKIPPED.sub("", statement.strip())
            if not statement or (_MAY_SET.search(statement) and self._sets(statement)):
                continue
            if depth or statement.partition(" ")[0] in self.bodies or _HIDES.search(statement):
                self._keep(statement, number, depth)

    def _keep(self, statement: str, number: int, depth: int) -> None:
        words = self._words(statement)
        if words and words[0] == "eval":
            words = words[1:]
        become = " ".join(words)[:_LONGEST]
        if words and words[0] in self.bodies and depth < _DEEPEST:
            before = self.lists.get("@")
            self.lists["@"] = words[1:]
            for row in self.bodies[words[0]]:
                self._line(row, number, depth + 1)
            self.lists["@"] = before or []
        elif become != statement:
            self.found.setdefault((number, become))
            if depth < _DEEPEST and (";" in become or "$" in become) and become != statement:
                self._line(become, number, depth + 1)

    def _sets(self, statement: str) -> bool:
        """Whether a statement only assigns a variable."""
        if statement.startswith("set -- "):
            self.lists["@"] = self._words(statement[7:])
            return True
        if statement.startswith("printf -v "):
            if words := self._words(statement[10:]):
                self.values[words[0]] = printf_output(words[1:])
            return True
        if "<<<" in statement and (read := _READ.match(statement)):
            names, line = read[2].split(), self._word(read[3])
            separator = (read[1] or self.values.get("IFS", "")).strip("\"'")[:1] or None
            self.values.update(zip(names, line.split(separator, len(names) - 1), strict=False))
            self.lists[names[-1]] = line.split(separator)
            return True
        found = _ASSIGNS.match(statement) if "=" in statement else None
        return found is not None and self._assigns(found, statement[found.end() :])

    def _assigns(self, found: re.Match[str], rest: str) -> bool:
        name, more, kind = found["name"], found["more"], found["kind"] or ""
        if rest.startswith("("):
            words = self._words(rest[1:].rstrip().removesuffix(")"))[:_MOST_WORDS]
            for word in words:
                if entry := re.match(r"\[([^\]]{1,60})\]=(.*)", word, re.DOTALL):
                    self.values[f"{name}[{entry[1]}]"] = entry[2]
            self.lists[name] = (self.lists.get(name, []) if more else []) + words
            return True
        first = _WORD.match(rest)
        beyond = rest[first.end() :].strip() if first else ""
        if beyond and not beyond.startswith("#"):
            if not _DECLARES.match(found[0]):
                return False  # a value for one command
            self._sets(beyond)
        value = self._word(first[0]) if first else ""
        if "n" in kind:
            value = self._value(value, None)
        if "l" in kind:
            value = value.lower()
        place = name if found["key"] is None else f"{name}[{self._word(found['key'])}]"
        self.values[place] = ((self.values.get(place, "") if more else "") + value)[:_LONGEST]
        return True

    def _words(self, text: str) -> list[str]:
        """The words of a text, expanded; unquoted text is split again."""
        found: list[str] = []
        for raw in _WORD.findall(text):
            self.steps -= 1
            if len(found) > _MOST_WORDS or self.steps <= 0 or raw[0] == "#":
                break
            if raw in ('"$@"', '"${@}"') or re.fullmatch(r"\"\$\{\w+\[@\]\}\"", raw):
                found += self._list(raw.strip('"${}').removesuffix("[@]"))
                continue
            word = self._word(raw)
            found += word.split() if "$" in raw and raw[:1] not in "\"'" else [word]
        return found

    def _list(self, name: str) -> list[str]:
        return self.lists.get(name, [])[:_MOST_WORDS]

    def _word(self, text: str) -> str:
        if "{" in text and "," in text and (braces := _BRACES.match(text)) and not braces[1].endswith("$"):
            parts = product([braces[1]], braces[2].split(","), [braces[3]])
            return " ".join("".join(part) for part in parts)
        return _PART.sub(self._part, text)[:_LONGEST]

    def _part(self, part: re.Match[str]) -> str:
        kind = part.lastgroup
        inside = part[kind] if kind else ""
        self.steps -= 1
        if self.steps <= 0:
            return part[0]
        match kind:
            case "escaped":
                return "" if inside == "\n" else inside
            case "ansi":
                return unescaped(inside)
            case "double":
                return _IN_DOUBLE.sub(self._part, inside)
            case "command" | "tick":
                return self._output(inside)
            case "braced":
                return self._braced(inside)
            case "plain":
                return self._value(inside, None)
        return inside

    def _output(self, command: str) -> str:
        """The output of a command that prints only its words."""
        words = self._words(command)
        match words[:1]:
            case ["echo"]:
                given = " ".join(word for word in words[1:] if word not in ("-n", "-e"))
                return unescaped(given) if "-e" in words[1:2] else given
            case ["printf"]:
                return printf_output(words[1:])
            case [name] if name in self.bodies and len(self.bodies[name]) == 1:
                body = self.bodies[name][0].strip(" ;")
                return self._output(body) if body.startswith(("echo ", "printf ")) else ""
        return ""

    def _value(self, name: str, key: str | None) -> str:
        if key in ("@", "*") or name in ("@", "*"):
            return ("" if self.values.get("IFS") == "" else " ").join(self._list(name if key else "@"))
        if name.isdigit():
            key, name = str(int(name) - 1), "@"
        if key is not None:
            key = self._word(key)
            if f"{name}[{key}]" in self.values:
                return self.values[f"{name}[{key}]"]
            listed = self._list(name)
            return listed[int(key)] if key.isdigit() and int(key) < len(listed) else ""
        return self.values.get(name) or (self._list(name) or [""])[0]

    def _braced(self, inside: str) -> str:
        found = _BRACED.match(inside)
        if not found:
            return ""
        value = self._value(found["name"], found["key"])
        if found["indirect"]:
            value = self._value(value, None) if value.isidentifier() else ""
        rest = found["rest"]
        if not rest:
            return value
        return changed(value, rest, self._word)
