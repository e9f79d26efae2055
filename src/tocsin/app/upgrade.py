"""Migrate the store to the schema of this version."""

from dataclasses import dataclass

from tocsin.app.app import App

__all__ = ["Upgraded", "upgrade_store"]


@dataclass(frozen=True, slots=True)
class Upgraded:
    store: str
    found: str | None
    """The schema before; None: the store was new."""
    schema: str


def upgrade_store(app: App) -> Upgraded:
    """Every command migrates an older store when it opens it; this one does only that, and reports it."""
    from tocsin.store.migrations import HEAD

    store = app.store
    return Upgraded(store.place, store.found, HEAD)
