"""The log of verdicts: one line of JSON each, in a file that is rotated and that only its owner may read."""

import io
import json
import logging
import os
from collections.abc import Iterable
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from tocsin.core.errors import StoreError
from tocsin.core.verdict import Verdict

__all__ = ["VerdictLog"]


class VerdictLog:
    """Writes verdicts; a disk that is full stops no watch: it is said once until a line is written again."""

    def __init__(self, path: Path, *, largest: int, files: int) -> None:
        try:
            self._handler = _OwnersFile(
                path, maxBytes=largest, backupCount=files, encoding="utf-8", delay=False
            )
        except OSError as error:
            raise StoreError(
                f"the log {path} cannot be opened ({error.strerror}); change workload.log_file in the settings"
            ) from None

    def write(self, verdicts: Iterable[Verdict]) -> str | None:
        """Add a line for each; returned is what went wrong, if anything did."""
        for verdict in verdicts:
            line = json.dumps(verdict.to_json(), ensure_ascii=False, allow_nan=False)
            self._handler.emit(logging.LogRecord("tocsin", logging.INFO, "", 0, line, None, None))
        trouble, self._handler.trouble = self._handler.trouble, None
        return trouble

    def close(self) -> None:
        self._handler.close()

    def __enter__(self) -> "VerdictLog":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _OwnersFile(RotatingFileHandler):
    """Scripts and names of users are in the log: nobody else reads them."""

    trouble: str | None = None

    def _open(self) -> io.TextIOWrapper:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(self.baseFilename, flags, 0o600)
        return io.open(file, "a", encoding=self.encoding, errors="replace")  # noqa: UP020  # the handler's own type

    def handleError(self, record: Any) -> None:  # noqa: ARG002  # the handler's own name and argument
        import sys

        error = sys.exc_info()[1]
        self.trouble = f"the log {self.baseFilename} cannot be written: {error}"
