"""Reads files with another user's permissions and never with more, whoever runs tocsin."""

import errno
import os
import pwd
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from tocsin.core.errors import NotFound

__all__ = ["Refused", "Submitter", "open_as", "read_as", "submitter"]

_MOST_LINKS = 16
_MOST_PARTS = 128
_NO_FILES = frozenset({"proc", "sys", "dev"})
_READ, _ENTER = 4, 1


class Refused(Exception):
    """A file that does not exist, is not a regular file, or may not be read by the submitter; the text says which."""


@dataclass(frozen=True, slots=True)
class Submitter:
    """The user whose permissions apply."""

    uid: int
    gids: frozenset[int]


def submitter(uid: int, gid: int | None = None) -> Submitter:
    """The user with all groups known to this host."""
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        raise NotFound(f"no user of this host has the UID {uid}; its files are not read") from None
    groups = os.getgrouplist(entry.pw_name, entry.pw_gid if gid is None else gid)
    return Submitter(uid, frozenset(groups))


def read_as(who: Submitter, path: str, most: int) -> bytes:
    """At most this many bytes of a regular file, if the submitter may traverse to it and read it."""
    with open_as(who, path) as file:
        content = bytearray()
        while len(content) < most and (piece := os.read(file, most - len(content))):
            content += piece
        return bytes(content)


@contextmanager
def open_as(who: Submitter, path: str) -> Iterator[int]:
    """A regular file, open for reading, if the submitter may traverse to it and read it.

    Every part of the path is opened separately and checked once it is open, so that nothing can be exchanged in
    between; links are resolved here, each part of their target by the same rules. A file with an access list (ACL) is
    read for its owner only: mode bits alone do not show whom else the list admits.
    """
    if "\0" in path or not path.startswith("/"):
        raise Refused("it is not an absolute path")
    file = _walk(who, path)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise Refused("it is not a regular file")
        if not _may(who, found, file, _READ):
            raise Refused("its submitter may not read it")
        yield file
    except OSError as error:
        raise Refused(error.strerror or str(error)) from None
    finally:
        os.close(file)


def _walk(who: Submitter, path: str) -> int:
    """The open file at the end of the path."""
    parts = deque(part for part in path.split("/") if part not in ("", "."))
    above: list[int] = [os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)]
    links = steps = 0
    try:
        while parts:
            steps += 1
            if steps > _MOST_PARTS:
                raise Refused("its path is too long")
            part = parts.popleft()
            if part == "..":
                if len(above) > 1:
                    os.close(above.pop())
                continue
            if len(above) == 1 and part in _NO_FILES:
                raise Refused("it is in a system folder")
            if not _may(who, os.fstat(above[-1]), above[-1], _ENTER):
                raise Refused("its submitter may not enter its folder")
            try:
                link = os.readlink(part, dir_fd=above[-1])
            except OSError as error:
                if error.errno != errno.EINVAL:  # EINVAL: not a link
                    raise
            else:
                links += 1
                if links > _MOST_LINKS:
                    raise Refused("too many links lead to it")
                if link.startswith("/"):
                    while len(above) > 1:
                        os.close(above.pop())
                parts.extendleft(reversed([p for p in link.split("/") if p not in ("", ".")]))
                continue
            if parts:
                folder = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                above.append(os.open(part, folder, dir_fd=above[-1]))
            else:
                plain = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
                _plain(part, above[-1])
                return os.open(part, plain, dir_fd=above[-1])
        raise Refused("it is not a regular file")
    except OSError as error:
        raise Refused(error.strerror or str(error)) from None
    finally:
        for folder in above:
            os.close(folder)


def _plain(part: str, folder: int) -> None:
    """Opening a device or a pipe can have side effects; this check avoids the open, and the one after it decides."""
    if not stat.S_ISREG(os.stat(part, dir_fd=folder, follow_symlinks=False).st_mode):
        raise Refused("it is not a regular file")


def _may(who: Submitter, found: os.stat_result, opened: int, wanted: int) -> bool:
    """As the kernel decides by mode bits: the owner's for the owner, the group's for its members, else others'."""
    if found.st_uid == who.uid:
        return bool(found.st_mode >> 6 & wanted)
    if _has_access_list(opened):
        return False
    if found.st_gid in who.gids:
        return bool(found.st_mode >> 3 & wanted)
    return bool(found.st_mode & wanted)


def _has_access_list(opened: int) -> bool:
    with suppress(OSError):  # ENODATA: none; ENOTSUP: the file system has none
        os.getxattr(f"/proc/self/fd/{opened}", "system.posix_acl_access")
        return True
    return False
