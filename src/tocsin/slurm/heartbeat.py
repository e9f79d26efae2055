"""The heartbeat of the service for the hooks: a file with the current second, written once a second."""

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["heartbeat_file", "write_heartbeat"]


def heartbeat_file(socket: str | Path) -> Path:
    """It is in the folder of the socket of the service, or of its relay."""
    return Path(socket).with_name("heartbeat")


def write_heartbeat(path: Path, now: float) -> None:
    """Call this from the loop that answers requests: if that hangs, so does the heartbeat.

    A full disk is not an error; the hooks then see an old heartbeat, and submit without advice.
    """
    partial = path.with_name(f".{path.name}")
    with suppress(OSError):
        descriptor = os.open(
            partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644
        )
        try:
            os.write(descriptor, f"{int(now)}\n".encode())
        finally:
            os.close(descriptor)
        partial.replace(path)
