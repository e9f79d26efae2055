"""The tasks of a service on disk, so that a restart does not forget them."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tocsin.store.home import open_private

__all__ = ["TaskFiles"]


class TaskFiles:
    """One JSON file per task. Files that cannot be written or read are skipped: they are a convenience."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, document: Mapping[str, Any]) -> None:
        """Replace the file of this task atomically."""
        path = self._path(document["id"])
        partial = path.with_suffix(".part")
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(open_private(partial, os.O_WRONLY | os.O_TRUNC), "w", encoding="utf-8") as file:
                json.dump(document, file)
            partial.replace(path)

    def remove(self, number: str) -> None:
        with suppress(OSError):
            self._path(number).unlink()

    def read(self) -> Iterator[dict[str, Any]]:
        """Oldest first."""
        found = []
        for path in self._folder.glob("*.json"):
            with suppress(OSError, ValueError, KeyError, TypeError):
                document = json.loads(path.read_text("utf-8"))
                if document["id"] == path.stem:
                    found.append((int(document["created"]), document["id"], document))
        return (document for _, _, document in sorted(found, key=lambda each: each[:2]))

    def _path(self, number: str) -> Path:
        return self._folder / f"{number}.json"
