"""Job scripts as files named by their SHA-256, so that equal scripts are stored once."""

import hashlib
import os
import re
import threading
from pathlib import Path

from tocsin.core.errors import NotFound, StoreError
from tocsin.store.home import open_private

__all__ = ["read_script", "save_script", "saved_scripts"]

_NAME = re.compile(r"[0-9a-f]{64}", re.ASCII)


def save_script(folder: Path, text: str) -> str:
    """Store a script atomically; returns the reference for the job's field `script`."""
    content = text.encode("utf-8", "surrogateescape")
    name = hashlib.sha256(content).hexdigest()
    path = folder / name
    partial = folder / f".new-{name}-{os.getpid()}-{threading.get_ident()}"
    try:
        if path.exists():
            os.utime(path)  # in use again: `prune` keeps recent files
        else:
            with os.fdopen(open_private(partial, os.O_WRONLY | os.O_TRUNC), "wb") as file:
                file.write(content)
            partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise StoreError(
            f"cannot store a script in {folder} ({error.strerror}); check free space and permissions"
        ) from None
    return name


def read_script(folder: Path, name: str) -> str:
    """Read a script by its reference."""
    if not _NAME.fullmatch(name):
        raise NotFound(f'"{name[:80]}" is not a script reference (64 hexadecimal digits)')
    try:
        return (folder / name).read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        raise NotFound(f"the script {name} is not in {folder}; was it pruned?") from None


def saved_scripts(folder: Path) -> dict[str, Path]:
    """Paths of all scripts by reference."""
    if not folder.is_dir():
        return {}
    return {path.name: path for path in folder.iterdir() if _NAME.fullmatch(path.name)}
