"""The home folder: database, models, windows, confirmed regions, scripts, spool and cache."""

import os
import pwd
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tocsin.core.errors import StoreError

__all__ = ["SERVICE_HOME", "SERVICE_USER", "Home", "followed", "open_private", "user_name"]

SERVICE_USER = "tocsin"
SERVICE_HOME = Path("/var/lib/tocsin")
_PRIVATE = 0o640


@dataclass(frozen=True, slots=True)
class Home:
    """The folder and its parts; nothing is created before `prepare`."""

    root: Path

    @property
    def database(self) -> Path:
        return self.root / "tocsin.db"

    @property
    def url(self) -> str:
        """URL of the SQLite database."""
        return f"sqlite:///{self.database}"

    @property
    def models(self) -> Path:
        return self.root / "models"

    @property
    def windows(self) -> Path:
        return self.root / "windows"

    @property
    def scripts(self) -> Path:
        return self.root / "scripts"

    @property
    def regions(self) -> Path:
        """Windows of jobs that were confirmed as bad, kept beyond the retention of traces."""
        return self.root / "regions"

    @property
    def spool(self) -> Path:
        return self.root / "spool"

    @property
    def cache(self) -> Path:
        return self.root / "cache"

    @classmethod
    def default(cls, environ: Mapping[str, str], user: str | None = None) -> "Home":
        """`TOCSIN_HOME`; else the service's folder for the service's user; else the user's data folder.

        Root uses the service's folder if it exists, so that an administrator sees the same data.
        """
        if moved := environ.get("TOCSIN_HOME"):
            return cls(Path(moved).expanduser().absolute())
        user = user_name() if user is None else user
        if user == SERVICE_USER or (user == "root" and SERVICE_HOME.is_dir()):
            return cls(SERVICE_HOME)
        data = Path(environ.get("XDG_DATA_HOME") or "")
        if not data.is_absolute():  # XDG: ignore a relative path
            data = Path(environ.get("HOME") or Path.home()) / ".local" / "share"
        return cls(data / "tocsin")

    def prepare(self) -> "Home":
        """Create missing folders, readable by the owner only; the service's folder also by its group."""
        mode = 0o750 if self.root == SERVICE_HOME else 0o700
        try:
            if not self.root.is_dir():
                self.root.mkdir(mode=mode, parents=True, exist_ok=True)
            self._check()
            for folder in (self.models, self.windows, self.scripts, self.regions, self.spool, self.cache):
                folder.mkdir(mode=mode, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"cannot use the home folder {self.root} ({error.strerror}); "
                "set TOCSIN_HOME to a folder that you may write to"
            ) from None
        return self

    def give_back(self) -> None:
        """Give what root made in the service's home to the service, which could not use it otherwise."""
        if os.geteuid() != 0:
            return
        with suppress(OSError):
            owner = self.root.stat()
            if user_name(owner.st_uid) == SERVICE_USER:
                for _, folders, files, folder in os.fwalk(self.root.resolve()):
                    for name in (*folders, *files):
                        _give(name, folder, owner)

    def _check(self) -> None:
        """Anybody who can write here can replace the models and the database."""
        found = self.root.stat()
        owner = user_name(found.st_uid)
        if found.st_uid not in (0, os.geteuid()) and owner != SERVICE_USER:
            raise StoreError(
                f"the home folder {self.root} belongs to {owner}; run tocsin as {owner}, or set TOCSIN_HOME to a "
                "folder of your own"
            )
        if found.st_mode & stat.S_IWOTH:
            raise StoreError(
                f"everybody may write to the home folder {self.root}, so it is not used; run: chmod o-w {self.root}"
            )


def _give(name: str, folder: int, owner: os.stat_result) -> None:
    """Give away a file of root that has no other name, or a folder.

    What is looked at is what is changed: the owner of the folder could put a link to another file in its place.
    """
    with suppress(OSError):  # it has gone, or this file system has no owners
        if os.stat(name, dir_fd=folder, follow_symlinks=False).st_uid != 0:
            return
        descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            found = os.fstat(descriptor)
            alone = stat.S_ISREG(found.st_mode) and found.st_nlink == 1
            if found.st_uid == 0 and (alone or stat.S_ISDIR(found.st_mode)):
                os.chown(f"/proc/self/fd/{descriptor}", owner.st_uid, owner.st_gid)
        finally:
            os.close(descriptor)


def followed(path: Path) -> Path:
    """Where a file is that may be a link. A link of somebody else is followed only to a file of theirs."""
    if path.is_symlink():
        link, target = path.lstat().st_uid, Path(os.path.realpath(path))  # as it is if it leads in a circle
        if link not in (0, os.geteuid()) and not (target.exists() and target.stat().st_uid == link):
            raise StoreError(
                f"{path} is a link of {user_name(link)} to a file that is not theirs, so it is not followed; "
                f"run tocsin as {user_name(link)}, or replace the link"
            )
        return target
    return path


def open_private(path: Path, flags: int, mode: int = _PRIVATE) -> int:
    """Open or create a file that at most its owner may write and its group read, whatever the umask.

    A link is refused: in a home from somebody else, it could name any file, whose mode would be changed.
    """
    descriptor = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    found = stat.S_IMODE(os.fstat(descriptor).st_mode)
    if found & ~_PRIVATE:
        with suppress(PermissionError):  # owned by another user
            os.fchmod(descriptor, found & _PRIVATE)
    return descriptor


def user_name(uid: int | None = None) -> str:
    """The user who runs this process, or the user with another uid; unlike LOGNAME, it cannot be forged."""
    uid = os.geteuid() if uid is None else uid
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:  # a uid without a name, as in containers
        return str(uid)
