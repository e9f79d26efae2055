"""The allow-list of the settings and the store, and the operations that it may name."""

from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tocsin.app.app import App
from tocsin.core.errors import ModelError

if TYPE_CHECKING:
    from tocsin.judge.allow import AllowBook
    from tocsin.models.registry import Registry

__all__ = ["ALLOW_FILE", "allow_book", "allow_file", "operations"]

ALLOW_FILE = Path("/etc/tocsin/allow.toml")


def allow_file(app: App) -> Path | None:
    """The allow-list file; the default one need not exist, one named in the settings must."""
    named = app.settings.workload.allow_file
    return Path(named) if named else ALLOW_FILE if ALLOW_FILE.exists() else None


def allow_book(app: App) -> "AllowBook":
    """The allow-list in force."""
    from tocsin.judge.allow import AllowBook
    from tocsin.store.allow import entries

    return AllowBook(
        lambda: entries(app.store),
        allow_file(app),
        kept=app.home.prepare().cache / "allow.toml",
        zone=app.zone(),
        operations=lambda: operations(app),
        say=lambda message: app.notify(f"tocsin: {message}"),
    )


def operations(app: App) -> set[str]:
    """Every operation that a model knows: shipped or added by the site, in use or not."""
    found: set[str] = set()
    for version in app.registry.versions("workload"):
        with suppress(ModelError):  # whoever uses that model reports what is wrong with it
            found |= _operations(app.registry, version)
    return found


@cache
def _operations(registry: "Registry", version: str) -> frozenset[str]:
    """Read once: a version never changes, and a site that trains daily has many."""
    return frozenset(registry.card("workload", version).operations)
