"""Recipes of build and workflow tools: whether a command in them is put together."""

import re

__all__ = ["puts_together"]

_AUTOMATIC = re.compile(r"\$\$?[@<^*?+%|!]|\$[({][@<^*?+%][DF]?[)}]")
"""Variables that a tool sets itself."""
_PUTS_TOGETHER = re.compile(
    r"\$[\w({]|\{params\.\w+\}(?=[\w.{:-])|(?<=[\w.}:-])\{params\.\w+\}|\{(?!input|output|threads|wildcards|log|resources|rule|params)[A-Za-z_][\w.]*(?:\[[^\]]*\])?\}|\{\{|\bjoin\b|\breplace\b|\bformat\b|\bREPLACE\b|\bsubst\b"
    r"|[\"']\s?\+|\+\s?[\"']|[\"']\s?%\s?[\w(]"
)


def puts_together(recipe: str) -> bool:
    """Whether a recipe makes text or has variables other than those that the tool sets."""
    return _PUTS_TOGETHER.search(_AUTOMATIC.sub("", recipe)) is not None
