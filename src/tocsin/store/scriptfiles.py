"""Files named by their SHA-256, so that equal ones are stored once: job scripts, windows of confirmed jobs."""

import errno
import hashlib
import os
import re
import threading
from contextlib import suppress
from pathlib import Path

from tocsin.core.errors import NotFound, StoreError
from tocsin.store.home import open_private

__all__ = ["read_script", "save_file", "save_script", "saved_scripts"]

_NAME = re.compile(r"[0-9a-f]{64}", re.ASCII)


def save_script(folder: Path, text: str) -> str:
    """Store a script atomically; returns the reference for the job's field `script`."""
    return save_file(folder, text.encode("utf-8", "surrogateescape"))


def save_file(folder: Path, content: bytes) -> str:
    """Store a file atomically under its SHA-256, which is returned."""
    name = hashlib.sha256(content).hexdigest()
    path = folder / name
    try:
        if path.exists():
            os.utime(path)  # in use again: `prune` keeps recent files
        elif not _write_unnamed(path, content):
            _write_renamed(path, content)
    except OSError as error:
        raise StoreError(
            f"cannot store a file in {folder} ({error.strerror}); check free space and permissions"
        ) from None
    return name


def _write_unnamed(path: Path, content: bytes) -> bool:
    """Write a file that has no name until it is complete, so that a kill leaves nothing; False if that is impossible."""
    try:
        descriptor = os.open(path.parent, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o640)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):  # network file systems
            return False
        raise
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        with suppress(FileExistsError):  # another process has stored the same script
            # with a folder given, Python calls linkat(2), which can follow this link
            os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor, follow_symlinks=True)
    return True


def _write_renamed(path: Path, content: bytes) -> None:
    partial = path.with_name(f".new-{path.name}-{os.getpid()}-{threading.get_ident()}")
    try:
        with os.fdopen(open_private(partial, os.O_WRONLY | os.O_TRUNC), "wb") as file:
            file.write(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


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
