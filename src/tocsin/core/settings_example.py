"""An example settings file with the description and default of every setting."""

import dataclasses
import json
import textwrap
from collections.abc import Iterator
from typing import Any

from tocsin.core.settings import NAMED_SECTIONS, PLAIN_SECTIONS
from tocsin.core.sink_settings import SINK_KINDS, SinkSettings

__all__ = ["example_settings"]

_WIDTH = 100
_HEAD = """\
# Settings of tocsin: /etc/tocsin/tocsin.toml
#
# This file lists every setting with its default, commented out. To change one, remove the # before it and before the
# [section] above it. These override this file: the user's ~/.config/tocsin/tocsin.toml, the file of
# `tocsin --config`, and the environment (TOCSIN_SECTION__KEY). `tocsin config check` tests the settings,
# `tocsin config show` prints each with its origin.
#
# Secrets are never written here: settings that end in _file name a file with mode 600, or 640 and the group tocsin.
"""
_NAMES = {"cluster": "lab", "rule": "failures"}


def example_settings() -> str:
    """The text of the file. It has no effect as it is; uncommented, each line sets its default."""
    return "\n".join([_HEAD, *_sections()])


def _sections() -> Iterator[str]:
    for section, cls in NAMED_SECTIONS.items():
        if cls is not SinkSettings:
            yield _section(f"{section}.{_NAMES[section]}", cls)
            continue
        for kind, sink in SINK_KINDS.items():
            yield _section(f"{section}.{kind}", sink, kind=kind)
    for section, cls in PLAIN_SECTIONS.items():
        yield _section(section, cls)


def _section(name: str, cls: type, **values: str) -> str:
    title = cls.__doc__ or ""
    if title.startswith(f"{cls.__name__}("):  # made by dataclass
        title = ""
    if "kind" in values:
        title = " ".join(filter(None, (f"A sink of the kind {values['kind']}; choose any name.", title)))
    parts = [_comment(title), f"#[{name}]"]
    for field in dataclasses.fields(cls):
        parts += [
            _comment(field.metadata["doc"]),
            f"#{field.name} = {_toml(values.get(field.name, field.default))}",
        ]
    return "\n".join(parts) + "\n"


def _comment(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)


def _toml(value: Any) -> str:
    """Strings, integers and booleans are the same in JSON and TOML."""
    return json.dumps(value, ensure_ascii=False)
