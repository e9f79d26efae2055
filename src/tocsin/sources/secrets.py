"""Reads secrets from files that others can neither read nor write."""

import stat
from pathlib import Path

from tocsin.core.errors import SettingsError

__all__ = ["read_secret"]

_MOST = 65_536


def read_secret(path: str | Path) -> str:
    """The stripped text of a secret file; an empty file is refused, and one that others can read or write."""
    try:
        with Path(path).open("rb") as file:
            mode = Path(path).stat().st_mode
            data = file.read(_MOST + 1)
    except FileNotFoundError:
        raise SettingsError(f"the secret file {path} does not exist; create it with mode 600") from None
    except IsADirectoryError:
        raise SettingsError(f"{path} is a directory; name the file that holds the secret") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SettingsError(f"the secret in {path} cannot be read: {reason}") from None
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise SettingsError(f"others may write to the secret in {path}; run: chmod 600 {path}")
    if mode & stat.S_IROTH:
        raise SettingsError(f"the secret in {path} is world-readable; run: chmod 600 {path}")
    if len(data) > _MOST:
        raise SettingsError(f"{path} is too long for a secret; name the file that holds only the secret")
    secret = data.decode("utf-8", "replace").strip()
    if not secret:
        raise SettingsError(f"the secret in {path} is empty; write it there")
    return secret
