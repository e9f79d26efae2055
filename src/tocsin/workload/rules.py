"""A site's own operations by rule: words and phrases in a TOML file, matched literally, so that no rule can be slow."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tocsin.core.errors import InputError
from tocsin.core.toml import parse_toml
from tocsin.workload.normal import Commands
from tocsin.workload.words import joined_words, plain_words

__all__ = ["OPERATION", "Rule", "read_rules"]

OPERATION = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
"""Valid operation names; the name becomes the kind of findings."""
_MOST = 1000
_LARGEST = 1024**2  # bytes
_KEYS = {"words", "phrases"}


@dataclass(frozen=True, slots=True)
class Rule:
    """An operation is detected in a line that has one of the words, or one of the phrases anywhere."""

    operation: str
    words: frozenset[str] = frozenset()
    phrases: tuple[str, ...] = ()

    def matching_lines(self, script: Commands) -> list[int]:
        """The lines that match."""
        return [
            number
            for number, line in zip(script.numbers, script.lines, strict=True)
            if not self.words.isdisjoint(plain_words(line) | joined_words(line))
            or any(phrase in line.lower() for phrase in self.phrases)
        ]


def read_rules(path: Path) -> list[Rule]:
    """Tables `[NAME]` with `words = [...]` and `phrases = [...]`; case is ignored."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise ValueError(f"it has more than {_LARGEST:,} bytes")
        document = parse_toml(content.decode("utf-8-sig"))
    except OSError as error:
        raise InputError(f"the rules {path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"the rules {path} cannot be read: {str(error)[:200]}") from None
    if not document:
        raise InputError(f"the rules {path} name no operation; write a table [NAME] with words or phrases")
    return [_rule(name, table, path) for name, table in document.items()]


def _rule(name: str, table: Any, path: Path) -> Rule:
    if not OPERATION.fullmatch(name):
        raise InputError(
            f'{path}: "{name[:80]}" is not a valid name for an operation; use lower-case letters, digits and _'
        )
    if not isinstance(table, dict) or not table or table.keys() - _KEYS:
        raise InputError(f'{path}: [{name}] must hold words = ["…"] or phrases = ["…"], and nothing else')
    words = _texts(table.get("words", []), name, path)
    phrases = _texts(table.get("phrases", []), name, path)
    if not words and not phrases:
        raise InputError(f"{path}: [{name}] lists no word and no phrase, so nothing would ever be {name}")
    for word in words:
        if word not in plain_words(word) | joined_words(word):
            raise InputError(f'{path}: [{name}]: no line has the word "{word[:80]}"; put it under phrases')
    return Rule(name, frozenset(words), tuple(phrases))


def _texts(values: Any, name: str, path: Path) -> Sequence[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) and value.strip() for value in values):
        raise InputError(f"{path}: [{name}] must list texts that are not empty")
    if len(values) > _MOST:
        raise InputError(f"{path}: [{name}] lists {len(values):,} texts; {_MOST:,} are the most")
    return [value.strip().lower() for value in values]
