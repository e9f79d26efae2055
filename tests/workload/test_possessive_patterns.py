"""Patterns mean the same for every Python that tocsin runs on.

Before 3.11.5 (Debian 12 has 3.11.2), a group that is repeated possessively ends too early where one of its branches fails after
a repetition of its own. An atomic group around the repetition is right in all of them: `(?>(?:…)+)` instead of `(?:…)++`.
"""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import tocsin.scripts
import tocsin.workload

_parser: Any = re._parser  # type: ignore[attr-defined]  # the only way to see a pattern as Python does
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")


def patterns() -> Iterator[tuple[str, str, int]]:
    for room in (tocsin.workload, tocsin.scripts):
        for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            for name, value in vars(importlib.import_module(found.name)).items():
                many = value.values() if isinstance(value, dict) else value
                for each in many if isinstance(many, list | tuple | type({}.values())) else [value]:
                    if isinstance(each, re.Pattern) and isinstance(each.pattern, str):
                        yield f"{found.name}.{name}", each.pattern, each.flags


def parts(tree: Any) -> Iterator[tuple[str, Any]]:
    """Every operation of a parsed pattern with its arguments."""
    if isinstance(tree, _parser.SubPattern):
        for operation, arguments in tree:
            yield str(operation), arguments
            yield from parts(arguments)
    elif isinstance(tree, list | tuple):
        for each in tree:
            yield from parts(each)


def is_unsafe(pattern: str, flags: int) -> bool:
    for operation, arguments in parts(_parser.parse(pattern, flags & ~re.UNICODE)):
        if operation == "POSSESSIVE_REPEAT":
            inner = [name for name, _ in parts(arguments[2])]
            if len(inner) > 1 and any(name in _REPEATS for name in inner):
                return True
    return False


def test_no_group_with_repetitions_is_repeated_possessively() -> None:
    found = list(patterns())
    assert len(found) > 100
    assert [name for name, pattern, flags in found if is_unsafe(pattern, flags)] == []


def test_such_a_group_would_be_noticed() -> None:
    assert is_unsafe(r"x=((?:'[^']*'|[^'(]+(?!\())++)", 0)
    assert not is_unsafe(r"x=((?>(?:'[^']*'|[^'(]+(?!\())+))", 0)
    assert not is_unsafe(r"[ab]*+(?:[cd]|\\.)*+", 0)
