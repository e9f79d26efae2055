"""Tokens for slurmrestd, from a file or from scontrol, renewed before they expire. Never printed."""

import base64
import binascii
import json
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tocsin.core.errors import ClusterError, SettingsError
from tocsin.core.units import format_instant
from tocsin.sources.commands import run, slurm_env
from tocsin.sources.secrets import read_secret

__all__ = ["ScontrolToken", "TokenFile", "expiry"]

_SPARE = 30.0  # seconds of remaining life below which a token is not used
_TOKEN = re.compile(r"[A-Za-z0-9_=.+/-]{1,16384}", re.ASCII)


def expiry(token: str) -> int | None:
    """When a JSON Web Token expires, or None if it has no expiry. The signature is not checked."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        moment = claims.get("exp")
        return int(moment) if isinstance(moment, int | float) else None
    except (ValueError, binascii.Error, AttributeError, OverflowError, RecursionError):
        return None


class TokenFile:
    """A token in a file that others renew; read again when the file changes."""

    def __init__(self, path: str | Path, *, now: Callable[[], float] = time.time) -> None:
        self.path = Path(path)
        self._now = now
        self._seen: tuple[int, int, int] | None = None
        self._token = ""

    def __call__(self) -> str:
        try:
            state = self.path.stat()
        except OSError:
            state = None
        seen = (state.st_ino, state.st_mtime_ns, state.st_size) if state else None
        if seen is None or seen != self._seen:
            self._token = checked_token(read_secret(self.path).removeprefix("SLURM_JWT="), f"in {self.path}")
            self._seen = seen
        end = expiry(self._token)
        if end is not None and end <= self._now():
            raise ClusterError(
                f"the token in {self.path} expired at {format_instant(end)}; "
                f"write a new one there: scontrol token lifespan=86400"
            )
        return self._token


class ScontrolToken:
    """The current user's token from `scontrol token`, renewed when a third of its life is left."""

    def __init__(
        self,
        *,
        lifespan: int = 1800,
        slurm_conf: str = "",
        timeout: float = 30.0,
        now: Callable[[], float] = time.time,
        run: Callable[..., bytes] = run,
    ) -> None:
        self.lifespan, self.timeout = lifespan, timeout
        self._now, self._run = now, run
        self._env = slurm_env(slurm_conf)
        self._token = ""
        self._end = 0.0
        self._lock = threading.Lock()

    def __call__(self) -> str:
        with self._lock:
            left = self._end - self._now()
            if left < self.lifespan / 3:
                try:
                    self._renew()
                except ClusterError:
                    if left < _SPARE:  # the old one is valid until then
                        raise
            return self._token

    def _renew(self) -> None:
        argv = ["scontrol", "token", f"lifespan={self.lifespan}"]
        output = self._run(argv, timeout=self.timeout, env=self._env)
        token = checked_token(
            output.decode("utf-8", "replace").strip().removeprefix("SLURM_JWT="), "from scontrol token"
        )
        self._token, self._end = token, expiry(token) or self._now() + self.lifespan


def checked_token(token: str, place: str) -> str:
    """Check that it can be a token, because it is sent in a header. Errors never quote it."""
    if not _TOKEN.fullmatch(token):
        raise SettingsError(f"the text {place} is not a token: it has blanks or invalid characters")
    return token
