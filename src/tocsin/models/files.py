"""Model files: only regular files are read, and files are written atomically."""

import fcntl
import hashlib
import json
import math
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NoReturn

from tocsin.core.errors import ModelError

__all__ = [
    "MALFORMED",
    "MOST_BYTES",
    "discard",
    "hashes",
    "locked",
    "parse_json",
    "read_document",
    "read_file",
    "read_json",
    "replace_file",
    "scratch",
    "settle",
]

_NEW = ".new-"
_CHUNK = 1 << 20
_MOST_FILES = 10_000  # a folder with more is not a model
MOST_BYTES: Final = 256 << 20
"""Size limit of a model's file."""
MALFORMED: Final = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
)
"""Errors raised by reading a document of another form."""


def hashes(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file below, by its path in the folder. Links, pipes and devices are errors."""
    found: dict[str, str] = {}
    for root, folders, names in os.walk(folder, onerror=_raise):
        folders.sort()
        for name in sorted([*names, *(f for f in folders if (Path(root) / f).is_symlink())]):
            path = Path(root) / name
            if len(found) == _MOST_FILES:
                raise ModelError(f"{folder} has more than {_MOST_FILES:,} files, so it is not a model")
            digest = hashlib.sha256()
            with os.fdopen(_open_file(path), "rb") as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
            found[path.relative_to(folder).as_posix()] = digest.hexdigest()
    return found


def read_file(path: Path, *, most: int) -> bytes:
    """The bytes of a regular file of bounded size."""
    with os.fdopen(_open_file(path), "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ModelError(f"{path} is refused: it is larger than {most:,} bytes")
    return content


def read_json(path: Path) -> Any:
    """The value in a JSON file of bounded size."""
    return parse_json(read_file(path, most=MOST_BYTES))


def parse_json(content: bytes) -> Any:
    """The value by strict JSON: without NaN, infinities and duplicate keys."""
    return json.loads(
        content,
        parse_constant=_refuse_constant,
        parse_float=_finite,
        parse_int=_bounded,
        object_pairs_hook=_unique_keys,
    )


def read_document(path: Path, *, version: int, next_step: str) -> dict[str, Any]:
    """A JSON object of this format version; error messages end with `next_step`."""
    try:
        document = read_json(path)
    except (OSError, *MALFORMED) as error:
        raise ModelError(f"{path} cannot be read: {str(error)[:200]}; {next_step}") from None
    if not isinstance(document, dict) or document.get("version") != version:
        raise ModelError(f"{path} does not have format version {version}; {next_step}")
    return document


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


def _finite(text: str) -> float:
    if math.isinf(number := float(text)):
        raise ValueError(f"{text[:40]} is too large a number")
    return number


def _bounded(text: str) -> int:
    if len(text) > 20:
        raise ValueError(f"{text[:40]} is too large a number")
    return int(text)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("a key occurs twice")
    return document


def replace_file(path: Path, content: bytes, *, beside: Path) -> None:
    """Write a new file in the folder `beside` and rename it, so that readers see the old or the new content."""
    partial = beside / f"{_NEW}{secrets.token_hex(8)}"
    try:
        with partial.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        _sync(path.parent)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Exclusive access to the folder, among users of this lock; removes leftovers of killed writers."""
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o660)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        for left in folder.glob(f"{_NEW}*"):
            _clear(left)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def scratch(beside: Path) -> Iterator[Path]:
    """An empty folder in `beside`, removed at the end unless it was renamed.

    A writer locks its folder; the kernel drops the lock when the writer dies.
    """
    with locked(beside):
        folder = beside / f"{_NEW}{secrets.token_hex(8)}"
        folder.mkdir()
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        os.close(descriptor)
        shutil.rmtree(folder, ignore_errors=True)


def settle(folder: Path, name: str) -> None:
    """Sync a scratch folder to disk, then rename it: it appears completely or not at all."""
    for root, _, names in os.walk(folder, onerror=_raise):
        for file in names:
            _sync(Path(root) / file)
        _sync(Path(root))
    target = folder.parent / name
    folder.rename(target)
    _sync(folder.parent)


def discard(folder: Path) -> None:
    """Remove a folder under its parent's lock: it disappears at once, and the next process to lock clears the rest."""
    left = folder.rename(folder.with_name(f"{_NEW}{secrets.token_hex(8)}"))
    _clear(left)


def _clear(left: Path) -> None:
    """Remove an unfinished file or folder, unless its writer is alive; files are written under the caller's lock."""
    with suppress(OSError):
        descriptor = os.open(left, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink()
        finally:
            os.close(descriptor)


def _open_file(path: Path) -> int:
    """Open a regular file; a link is not followed and a pipe does not block."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise ModelError(f"{path} is missing; restore it from a backup or train again") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be opened ({error.strerror})") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ModelError(f"{path} is refused: it is not a regular file")
    return descriptor


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _raise(error: OSError) -> None:
    raise error
