"""Reads small files of the kernel as a whole, with as few system calls as possible."""

import os

__all__ = ["flat_keyed", "number", "read"]

_MOST = 1 << 20  # /proc/stat of a node with a thousand CPUs has about 100 KB


def read(path: str) -> bytes | None:
    """The content, or None if it cannot be read: jobs, CPUs and threads vanish at any time."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        content = os.read(handle, _MOST)
        if len(content) < 4096:  # one read is enough: the kernel fills at least a page if there is more
            return content
        parts = [content]
        while part := os.read(handle, _MOST):
            parts.append(part)
        return b"".join(parts)
    except OSError:
        return None
    finally:
        os.close(handle)


def number(path: str) -> int | None:
    """A file that holds one number; None for `max` and for anything else."""
    content = read(path)
    if content is None:
        return None
    try:
        return int(content)
    except ValueError:
        return None


def flat_keyed(content: bytes | None) -> dict[bytes, int]:
    """Lines of `key number`, as in memory.stat and cpu.stat; other lines are skipped."""
    values: dict[bytes, int] = {}
    for line in (content or b"").splitlines():
        key, _, value = line.partition(b" ")
        if value.isdigit():
            values[key] = int(value)
    return values
