"""The catalogue of kinds of causes: one TOML file each, both shipped ones and a site's own."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from tocsin.causes.numbers import ERRNO, EXIT, SIGNAL
from tocsin.causes.patterns import SHORTEST, Pattern, alternatives, parse_pattern
from tocsin.causes.presence import Pieces
from tocsin.core.errors import SettingsError
from tocsin.core.toml import parse_toml

__all__ = ["Catalogue", "Kind", "Rule", "load_catalogue"]

_HARMLESS = "harmless.toml"
_MOST_FILES = 200
_MOST_PATTERNS = 200
_LARGEST = 1 << 16
_KIND = {
    "name": str,
    "title": str,
    "meaning": str,
    "rank": int,
    "advice": str,
    "certain": list,
    "likely": list,
    "vague": list,
    "ending": list,
    "consequence": list,
    "except": list,
    "about": list,
    "yields": bool,
    "signals": list,
    "exits": list,
    "errnos": list,
    "numbers": str,
    "examples": list,
}
_NEEDED = ("name", "title", "rank", "advice", "examples")
_NUMBERS = {"signals": SIGNAL, "exits": EXIT, "errnos": ERRNO}
_LATER, _LAST, _AFTER_ALL = 20, 500, 1000
"""Added to the rank of a kind if a line is vague, if it counts only as the last words, and if it only reports that
something else failed."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One pattern of a kind."""

    kind: str
    pattern: Pattern
    rank: int
    """Of several causes found, the one with the smallest rank is the root of the others."""
    certain: bool
    """Such a line is fatal wherever it is; others count only near the end of the output."""
    excepted: tuple[Pattern, ...] = ()

    def of(self, other: "Kind", own: "Kind") -> "Rule":
        """The same rule of another kind, as strong there as it is here."""
        rank = other.rank + self.rank - own.rank
        return replace(self, kind=other.name, rank=rank, excepted=other.excepted)

    @property
    def ending(self) -> bool:
        """Whether such a line counts only among the very last lines."""
        return _LAST < self.rank < _AFTER_ALL


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of cause."""

    name: str
    title: str
    meaning: str
    """When to choose this kind and no other, for people who label an output."""
    advice: str
    examples: tuple[str, ...]
    rank: int
    excepted: tuple[Pattern, ...] = ()
    about: tuple[Pattern, ...] = ()
    """Words that name what this kind is about."""
    yields: bool = False
    """Whether a line of this kind is of another one if it has a word of `about` there."""


@dataclass(frozen=True)
class Catalogue:
    kinds: Mapping[str, Kind]
    rules: tuple[Rule, ...]
    numbers: Mapping[tuple[str, int], Rule]
    """Exit codes, signals and errno values that indicate a kind."""
    harmless: tuple[Pattern, ...]
    """A line with one of these says nothing about the job's end."""
    success: tuple[Pattern, ...]
    """Lines above a line with one of these did not end the job, unless they are certain."""

    def subject(self, rule: Rule, line: str) -> Rule:
        """The rule, or the same one of the kind that the line is about: a daemon of containers that cannot be reached."""
        own = self.kinds[rule.kind]
        if own.yields and rule.rank < _AFTER_ALL:
            for other in self._subjects:
                if other is not own and any(pattern.matches(line) for pattern in other.about):
                    return rule.of(other, own)
        return rule

    @cached_property
    def _subjects(self) -> tuple[Kind, ...]:
        return tuple(kind for kind in self.kinds.values() if kind.about)

    @cached_property
    def certain(self) -> "Index":
        """Rules for the whole output."""
        return Index(rule for rule in self.rules if rule.certain)

    @cached_property
    def likely(self) -> "Index":
        """Rules for lines near the end."""
        return Index(rule for rule in self.rules if not rule.certain and not rule.ending)

    @cached_property
    def endings(self) -> "Index":
        """Rules for the very last lines."""
        return Index(rule for rule in self.rules if rule.ending)


class Index:
    """Rules by the key of their pattern: each key that can occur in a text is searched for once."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._keys: dict[str, list[Rule]] = {}
        for rule in rules:
            self._keys.setdefault(rule.pattern.key, []).append(rule)
        self._pieces = Pieces(self._keys)

    def candidates(self, text: str) -> Iterator[tuple[str, list[Rule]]]:
        """Keys that may occur in a text, with their rules, in the order of the catalogue."""
        possible = self._pieces.possible(text)
        return ((key, rules) for key, rules in self._keys.items() if key in possible)


def load_catalogue(folder: Path | None = None) -> Catalogue:
    """The shipped kinds, and those in a site's folder; one with the name of a shipped kind replaces it."""
    shipped = _shipped()
    if folder is None:
        return shipped
    documents = dict(_documents(folder))
    kinds, rules, numbers = dict(shipped.kinds), list(shipped.rules), dict(shipped.numbers)
    own: set[str] = set()
    for place, document in documents.items():
        kind, found = _kind(document, place)
        if kind.name in own:
            raise SettingsError(f'{place}: there are two files for "{kind.name}"; join them')
        own.add(kind.name)
        rules = [rule for rule in rules if rule.kind != kind.name] + found
        numbers = {number: rule for number, rule in numbers.items() if rule.kind != kind.name}
        numbers |= _numbers(document, place)
        kinds[kind.name] = kind
    return Catalogue(kinds, tuple(rules), numbers, shipped.harmless, shipped.success)


@cache
def _shipped() -> Catalogue:
    kinds: dict[str, Kind] = {}
    rules: list[Rule] = []
    numbers: dict[tuple[str, int], Rule] = {}
    lists: Mapping[str, Any] = {}
    for place, document in _documents(files("tocsin.causes") / "kinds"):
        if place.endswith(_HARMLESS):
            lists = document
            continue
        kind, found = _kind(document, place)
        kinds[kind.name] = kind
        rules += found
        numbers |= _numbers(document, place)
    harmless, success = (_patterns(lists, name, _HARMLESS, shortest=2) for name in ("harmless", "success"))
    return Catalogue(kinds, tuple(rules), numbers, harmless, success)


def _documents(folder: Traversable) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        entries = sorted((e for e in folder.iterdir() if e.name.endswith(".toml")), key=lambda e: e.name)
        if len(entries) > _MOST_FILES:
            raise SettingsError(f"{folder} has {len(entries)} kinds of causes, more than {_MOST_FILES}")
        for entry in entries:
            with entry.open("rb") as file:
                content = file.read(_LARGEST + 1)
            if len(content) > _LARGEST:
                raise SettingsError(f"{entry} is larger than {_LARGEST // 1024} KiB")
            try:
                yield str(entry), parse_toml(content.decode())
            except ValueError as error:
                raise SettingsError(f"{entry} is not TOML: {error}") from None
    except OSError as error:
        raise SettingsError(f"{folder} cannot be read: {error.strerror or error}") from None


def _kind(document: Mapping[str, Any], place: str) -> tuple[Kind, list[Rule]]:
    """A checked document; every example in it must match."""
    for key, value in document.items():
        if key not in _KIND:
            raise SettingsError(f'{place}: "{key}" is not known; the keys are {", ".join(_KIND)}')
        if type(value) is not _KIND[key]:
            wanted = {str: "text", int: "a whole number", list: "a list", bool: "true or false"}[_KIND[key]]
            raise SettingsError(f"{place}: {key} must be {wanted}")
    for key in _NEEDED:
        if document.get(key) in (None, "", []):
            raise SettingsError(f"{place}: {key} is missing")
    name = document["name"]
    if not (name.isascii() and name.replace("_", "").isalnum() and name == name.lower() and len(name) <= 40):
        raise SettingsError(f'{place}: the name "{name}" must consist of lower-case letters, digits and _')
    if not 0 < document["rank"] < _LAST:
        raise SettingsError(f"{place}: the rank {document['rank']} is not between 1 and {_LAST - 1}")
    excepted = _patterns(document, "except", place, shortest=1)
    rules = [
        Rule(name, pattern, document["rank"] + later, certain, () if later == _AFTER_ALL else excepted)
        for key, certain, later in (
            ("certain", True, 0),
            ("likely", False, 0),
            ("vague", False, _LATER),
            ("ending", False, _LAST),
            ("consequence", False, _AFTER_ALL),
        )
        for pattern in _patterns(document, key, place)
    ]
    if not rules:
        raise SettingsError(f"{place}: it has no pattern; write some under certain or likely")
    for example in document["examples"]:
        line = str(example).strip().lower()
        if not any(rule.pattern.matches(line) for rule in rules):
            raise SettingsError(f'{place}: no pattern matches the example "{example}"')
    examples = tuple(map(str, document["examples"]))
    kind = Kind(
        name,
        document["title"],
        document.get("meaning", ""),
        document["advice"],
        examples,
        document["rank"],
        excepted,
        _patterns(document, "about", place),
        document.get("yields", False),
    )
    return kind, rules


def _numbers(document: Mapping[str, Any], place: str) -> dict[tuple[str, int], Rule]:
    """The rules for exit codes, signals and errno values; such a line is likely, or only a consequence, never certain."""
    level = document.get("numbers", "likely")
    if level not in ("likely", "consequence"):
        raise SettingsError(f'{place}: numbers must be "likely" or "consequence", not "{level}"')
    rank = document["rank"] + (_AFTER_ALL if level == "consequence" else 0)
    excepted = _patterns(document, "except", place, shortest=1)
    found = {}
    for key, meaning in _NUMBERS.items():
        for value in document.get(key, []):
            if type(value) is not int or not 0 < value < 256:
                raise SettingsError(f"{place}: {key} must be a list of whole numbers between 1 and 255")
            pattern = parse_pattern(f"{meaning} {value}")
            found[meaning, value] = Rule(document["name"], pattern, rank, False, excepted)
    return found


def _patterns(
    document: Mapping[str, Any], key: str, place: str, shortest: int = SHORTEST
) -> tuple[Pattern, ...]:
    found = []
    texts = document.get(key, [])
    if len(texts) > _MOST_PATTERNS:
        raise SettingsError(f"{place}: {key} has {len(texts)} patterns, more than {_MOST_PATTERNS}")
    for text in texts:
        if not isinstance(text, str):
            raise SettingsError(f"{place}: {key} must be a list of texts")
        try:
            found += [parse_pattern(one, shortest) for one in alternatives(text)]
        except ValueError as error:
            raise SettingsError(f'{place}: the pattern "{text}" in {key} cannot be used: {error}') from None
    return tuple(found)
