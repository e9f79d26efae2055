"""Verdicts as a list, and a feed of new verdicts and cases."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tocsin.app.app import App
from tocsin.core.errors import InputError

if TYPE_CHECKING:
    from tocsin.store.feed import Event, Position

__all__ = ["events_after", "last_position", "list_verdicts", "position_of", "position_text"]

MOST_EVENTS = 100
"""Rows per read: a slow client holds this many in memory, and there may be many such clients."""


def list_verdicts(
    app: App,
    *,
    levels: Sequence[str] = (),
    stages: Sequence[str] = (),
    users: Sequence[str] = (),
    clusters: Sequence[str] = (),
    before: int | None = None,
    size: int = 50,
) -> list[tuple[int, dict[str, Any]]]:
    """The newest verdicts with the numbers of their rows; with `before`, only older ones."""
    from tocsin.store.feed import VerdictFilter, newest_verdicts

    which = VerdictFilter(levels=levels, stages=stages, users=users, clusters=clusters)
    return newest_verdicts(app.store, which, before=before, limit=size)


def last_position(app: App) -> "Position":
    """The position for a reader who wants only new events."""
    from tocsin.store import feed

    return feed.last_position(app.store)


def events_after(app: App, position: "Position") -> "list[Event]":
    """The next verdicts and cases, at most 100 of each."""
    from tocsin.store import feed

    return feed.events_after(app.store, position, MOST_EVENTS)


def position_text(position: "Position") -> str:
    """The position as the id of an event."""
    return f"{position.verdict}-{position.case}"


def position_of(text: str) -> "Position":
    """The position in the id of an event."""
    from tocsin.store.feed import Position

    parts = text.split("-")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts):
        raise InputError(f'"{text[:60]}" is not the id of an event, such as 1200-3')
    return Position(int(parts[0]), int(parts[1]))
