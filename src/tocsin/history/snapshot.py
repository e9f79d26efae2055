"""The ledger on disk: saved in the cache with its watermark, and restored at the next start.

The cache may be deleted at any time; the ledger is then rebuilt from the store.
"""

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from tocsin.history import recipe
from tocsin.history.group import Group
from tocsin.history.ledger import FORGET, Ledger
from tocsin.history.nodes import NodeHistory

__all__ = ["open_ledger", "save_ledger"]

FILE = "history.json.z"
SCHEMA = 4
MOST_BYTES = 1 << 30
"""A longer text is not read: a few megabytes can unpack to more than the memory of the host."""
LATE = 7 * 86400
"""Seconds: records that reach the store this long after their instant still count after a restart."""

Load = Callable[[int], pl.DataFrame]
"""Loads the jobs that were alive at this instant or later; 0: all."""


def open_ledger(folder: Path, load: Load, fingerprint: Callable[[int], str]) -> Ledger:
    """The saved ledger, brought up to date, or one rebuilt from the store.

    `fingerprint` identifies the content of the store up to an instant. If it has changed (an older log was imported,
    jobs were pruned), the saved ledger is not used.
    """
    saved = _read(folder / FILE)
    if saved is not None and saved["fingerprint"] == fingerprint(saved["known_until"]):
        ledger = _restore(saved)
        ledger.learn(load(saved["known_until"] - LATE))
    else:
        ledger = Ledger()
        ledger.learn(load(0))
    return ledger


def save_ledger(folder: Path, ledger: Ledger, fingerprint: Callable[[int], str]) -> None:
    """Save the ledger; readers see the old file until the new one is complete."""
    state = {
        "schema": SCHEMA,
        "recipe": _recipe(),
        "known_until": ledger.known_until,
        "fingerprint": fingerprint(ledger.known_until),
        "counted": [
            [list(key), events, last]
            for key, (events, last) in ledger.counted().items()
            if not events & 4 or last >= ledger.known_until - FORGET  # the others are never reported again
        ],
        "groups": [
            [[list(name), group.to_json()] for name, group in groups.items()] for groups in ledger.groups
        ],
        "nodes": ledger.nodes.to_json(),
    }
    partial = folder / f".{FILE}.new"
    partial.write_bytes(zlib.compress(json.dumps(state, separators=(",", ":")).encode(), 1))
    partial.replace(folder / FILE)


def _recipe() -> list[str]:
    """Keys and statistics: a ledger with others cannot be used."""
    return [
        *(f"{key.name}:{','.join(key.fields)}" for key in recipe.KEYS),
        *(s.name for s in recipe.STATISTICS),
    ]


def _read(path: Path) -> dict[str, Any] | None:
    try:
        unpacked = zlib.decompressobj()
        text = unpacked.decompress(path.read_bytes(), MOST_BYTES)
        state = json.loads(text) if unpacked.eof else None
    except (OSError, ValueError, RecursionError, zlib.error):
        return None  # only a cache: it is rebuilt
    good = isinstance(state, dict) and state.get("schema") == SCHEMA and state.get("recipe") == _recipe()
    return state if good else None


def _restore(state: dict[str, Any]) -> Ledger:
    ledger = Ledger()
    ledger.known_until = state["known_until"]
    ledger.learned = {tuple(key): (events, last) for key, events, last in state["counted"]}
    ledger.nodes = NodeHistory.from_json(state["nodes"])
    for groups, saved in zip(ledger.groups, state["groups"], strict=True):
        groups.update((tuple(name), Group.from_json(values)) for name, values in saved)
    return ledger
