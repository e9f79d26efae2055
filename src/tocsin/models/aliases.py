"""Which versions of a detector's models are in use at which stage and cluster: the file aliases.json."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tocsin.core.errors import ModelError
from tocsin.core.stages import Stage
from tocsin.models.files import read_file, replace_file

__all__ = [
    "ALIASES",
    "BUILTIN",
    "VERSION",
    "Aliases",
    "Place",
    "is_shipped",
    "read_aliases",
    "shipped_name",
    "write_aliases",
]

ALIASES = "aliases.json"
BUILTIN = "builtin"
"""The shipped version; a detector with several stages has it for `submit`, `builtin-start` for the next, and so on."""
VERSION = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)
_SHIPPED = re.compile(rf"{BUILTIN}(-[a-z]{{1,16}})?", re.ASCII)
_ALL = "*"  # in the file: for all clusters
_MOST_BYTES = 64 << 20

Place = tuple[Stage, str | None]
"""A stage and a cluster; None: all clusters without a champion of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aliases:
    """The named versions at one place; `previous` are the earlier champions, the last one last."""

    champion: str | None = None
    challenger: str | None = None
    previous: tuple[str, ...] = ()
    held: bool = False
    """A person rolled back: no training promotes a model automatically until a person promotes one."""

    def versions(self) -> tuple[str, ...]:
        """Every version that is named here."""
        return (*filter(None, (self.champion, self.challenger)), *self.previous)


def is_shipped(version: str | None) -> bool:
    """Whether it is shipped with tocsin."""
    return version is not None and _SHIPPED.fullmatch(version) is not None


def shipped_name(stage: Stage) -> str:
    return BUILTIN if stage is Stage.SUBMIT else f"{BUILTIN}-{stage}"


def read_aliases(home: Path) -> dict[Place, Aliases]:
    """The aliases at each place, from the folder of a detector."""
    path = home / ALIASES
    if not path.exists():
        return {}
    content = read_file(path, most=_MOST_BYTES)
    try:
        return {
            (stage, None if cluster == _ALL else cluster): _aliases(entry)
            for stage, clusters in [(Stage(name), at) for name, at in json.loads(content).items()]
            for cluster, entry in clusters.items()
        }
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        raise ModelError(
            f"{path} is damaged; remove it, and promote a version again with: "
            f"tocsin models promote {home.name} VERSION"
        ) from None


def write_aliases(home: Path, aliases: Mapping[Place, Aliases]) -> None:
    document: dict[str, dict[str, Any]] = {}
    for (stage, cluster), entry in sorted(
        aliases.items(), key=lambda item: (item[0][0].order, item[0][1] or "")
    ):
        document.setdefault(str(stage), {})[cluster or _ALL] = asdict(entry)
    replace_file(home / ALIASES, (json.dumps(document, indent=1) + "\n").encode(), beside=home)


def _aliases(entry: Any) -> Aliases:
    found = Aliases(**{**entry, "previous": tuple(entry["previous"])})
    if not entry.keys() >= {"champion", "challenger"} or not all(
        is_shipped(name) or VERSION.fullmatch(name) for name in found.versions()
    ):
        raise ValueError("not aliases")
    return found
