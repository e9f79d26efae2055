"""The home folder: database, models, windows, scripts, spool and cache."""

import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tocsin.core.errors import StoreError

__all__ = ["SERVICE_HOME", "SERVICE_USER", "Home", "user_name"]

SERVICE_USER = "tocsin"
SERVICE_HOME = Path("/var/lib/tocsin")


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
            for folder in (self.models, self.windows, self.scripts, self.spool, self.cache):
                folder.mkdir(mode=mode, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"cannot create the home folder {self.root} ({error.strerror}); "
                "set TOCSIN_HOME to a folder that you may write to"
            ) from None
        return self


def user_name() -> str:
    """The name of the user whose rights this process has."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a uid without a name, as in containers
        return str(os.geteuid())
