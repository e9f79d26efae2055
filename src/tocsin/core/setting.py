"""How one setting is defined: its default and its description, in a field of a section."""

import dataclasses
from typing import Any

__all__ = ["setting"]


def setting(default: Any, doc: str, *, secret: bool = False) -> Any:
    """`secret`: the value is the path of a file with a secret."""
    return dataclasses.field(default=default, metadata={"doc": doc, "secret": secret})
