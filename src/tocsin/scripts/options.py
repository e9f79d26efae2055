"""Tables of submit options: their names, whether they take a value, and which field they set."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tocsin.scripts.text import shortened
from tocsin.scripts.words import Place, Word, join_words

__all__ = [
    "Directive",
    "Locate",
    "Option",
    "OptionTable",
    "option_table",
    "options_before_script",
    "read_options",
]


class Option(NamedTuple):
    """One line of a table."""

    name: str
    values: int
    """Number of words in its value; 0 for a flag."""
    optional: bool
    """It has a value only if attached (`--exclusive=user`); an empty one counts as none."""
    field: str | None
    per: str
    """What the value is counted per: job, node, cpu, task, gpu; "no" for a flag that negates."""


@dataclass(frozen=True, slots=True)
class OptionTable:
    """All options of a submit command."""

    options: dict[str, Option]
    double: bool
    """Long names have two dashes (getopt); otherwise every option has one dash, as in bsub."""
    matched: dict[str, Option | None] = field(default_factory=dict)

    def find(self, name: str) -> Option | None:
        """Look up an option; like getopt_long, accept a unique prefix of a long name."""
        exact = self.options.get(name)
        if exact or not name.startswith("--") or len(name) < 4:
            return exact
        if name not in self.matched and len(self.matched) < 1000:
            near = {option for long, option in self.options.items() if long.startswith(name)}
            self.matched[name] = near.pop() if len(near) == 1 else None
        return self.matched.get(name)

    def unknown(self, name: str) -> str:
        """Why `find` does not know it."""
        near = sorted({option.name for long, option in self.options.items() if long.startswith(name)})
        if len(name) < 4 or len(near) < 2:
            return f'unknown option "{shortened(name)}"'
        return f'"{shortened(name)}" is ambiguous; write {", ".join(near[:-1])} or {near[-1]}'


def option_table(text: str, *, double: bool = True) -> OptionTable:
    """A table from its lines: names, then `=` (a value), `=2` (two words), `?` (an optional value), then field/per.

    Names of one option are separated by blanks, options of the same form by commas.

    >>> option_table("-t --time = time_limit").options["-t"].field
    'time_limit'
    """
    options: dict[str, Option] = {}
    for line in filter(None, text.split("\n")):
        *others, last = line.split(",")
        words = last.split()
        names = [word for word in words if word.startswith("-")]
        rest = words[len(names) :]
        arity = rest.pop(0) if rest and rest[0][0] in "=?" else ""
        target, _, per = rest[0].partition("/") if rest else ("", "", "")
        values = int(arity[1:] or 1) if arity else 0
        for same in (*(other.split() for other in others), names):
            long = next((name for name in same if name.startswith("--")), same[0])
            options |= dict.fromkeys(same, Option(long, values, arity == "?", target or None, per))
    return OptionTable(options, double)


class Directive(NamedTuple):
    """One option in a script; a list such as `-l nodes=1,walltime=60` makes several."""

    line: int
    """Line of the script (from 1); 0 is the command line."""
    option: str
    value: str | None
    field: str | None = None
    per: str = ""
    place: Place | None = None
    """Where the value is, if in one piece."""
    whole: Place | None = None
    """Where option and value are, if in one piece."""
    word: Word | None = None
    """The value with its columns."""
    source: str = ""
    """The environment variable that set it."""

    @property
    def origin(self) -> str:
        """Where it was given, as a user would look for it."""
        return f"line {self.line}" if self.line else self.source or "command line"


Locate = Callable[[int, int], Place | None]
"""From columns of a joined line to a place in one physical line."""


def read_options(
    words: Sequence[Word], table: OptionTable, line: int, locate: Locate, errors: list[str]
) -> Iterator[Directive]:
    """Read options as the submit command would; refused ones are added to `errors`."""
    i = 0
    while i < len(words):
        word = words[i]
        i += 1
        if not word.text.startswith("-") or len(word.text) < 2:
            errors.append(_stray(word.text))
            continue
        for option, value in _options_of(word, table, errors):
            if option.values and value is None and not option.optional:
                if len(words) - i < option.values:
                    errors.append(f"{option.name} has no value")
                    return
                value = join_words(words[i : i + option.values])
                i += option.values
            elif option.values > 1 and value is not None:
                more = words[i : i + option.values - 1]
                value = join_words([value, *more])
                i += len(more)
            yield _directive(option, word, value, line, locate)


def options_before_script(words: list[Word], table: OptionTable) -> list[Word]:
    """The words of a submit command line before the name of the script."""
    given, remaining = [], 0
    for word in words:
        if not remaining and (not word.text.startswith("-") or word.text == "--"):
            break
        if remaining:
            remaining -= 1
        else:
            remaining = _value_words(word.text, table)
        given.append(word)
    return given


def _value_words(text: str, table: OptionTable) -> int:
    """How many of the following words are the value of this option."""
    if not table.double or text.startswith("--"):
        option = table.find(text.partition("=")[0]) if table.double else table.find(text)
        return 0 if option is None or option.optional or ("=" in text and table.double) else option.values
    for j, letter in enumerate(text[1:], 1):
        option = table.find("-" + letter)
        if option and option.values:
            return 0 if option.optional or text[j + 1 :] else option.values
    return 0


def _options_of(word: Word, table: OptionTable, errors: list[str]) -> Iterator[tuple[Option, Word | None]]:
    """The options in one word, each with its attached value."""
    text = word.text
    if not table.double:
        option = table.find(text)
        if option:
            yield option, None
            return
        option = table.find(text[:2])  # bsub -n4
        if option and option.values:
            yield option, word.part(2)
        else:
            errors.append(f'unknown option "{shortened(text)}"')
        return
    if text.startswith("--"):
        name, value = word.partition("=")
        option = table.find(name.text)
        if not option:
            errors.append(table.unknown(name.text))
        elif value is not None and not option.values:
            errors.append(f"{option.name} takes no value")
        else:
            yield option, None if option.optional and value is not None and not value.text else value
        return
    for j in range(1, len(text)):
        option = table.find("-" + text[j])
        if not option:
            errors.append(f'unknown option "{shortened("-" + text[j:])}"')
            return
        if option.values:
            attached = word.part(j + 1)
            # getopt reads `-t=60` as the value "=60", which sbatch and qsub refuse
            yield option, attached if attached.text else None
            return
        yield option, None


def _directive(option: Option, name: Word, value: Word | None, line: int, locate: Locate) -> Directive:
    place = whole = None
    if value is not None and value.text:
        columns = value.columns
        if columns[-1] - columns[0] == len(columns) - 1:
            place = locate(columns[0], columns[-1] + 1)
        whole = locate(name.columns[0], max(columns[-1], name.columns[-1]) + 1)
    text = None if value is None else value.text
    return Directive(line, option.name, text, option.field, option.per, place, whole, value)


def _stray(text: str) -> str:
    if text.startswith(("–", "—", "−", "‐", "‑")):
        return f'"{shortened(text)}" starts with a typographic dash, so it is not read as an option; use "-"'
    return f'"{shortened(text)}" is not an option'
