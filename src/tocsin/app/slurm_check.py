"""Ask slurmrestd whether it accepts a token."""

import threading
import time
from collections.abc import Callable

from tocsin.app.app import App
from tocsin.app.clusters import rest_client
from tocsin.core.errors import ClusterError, SettingsError
from tocsin.core.settings import ClusterSettings
from tocsin.sources.rest_http import RestHttp, json_object

__all__ = ["SlurmCheck", "diag_path", "slurm_check"]

_SECONDS = 3.0
_AT_ONCE = 4
_TRUSTED = 3600.0  # seconds until a name is tried with a forged token again
_MOST = 10_000


class SlurmCheck:
    """Calls `/diag` of slurmrestd, which asks slurmctld; `/ping` of 24.11 accepts altered tokens.

    `diag_path` finds the path with the service's own credentials, once. On a unix socket, rest_auth/local accepts any
    token of the user who runs slurmrestd, so there each name is first tried with a forged one.
    """

    def __init__(
        self,
        url: str,
        diag_path: Callable[[], str],
        *,
        seconds: float = _SECONDS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url, self._diag_path, self._seconds, self._now = url, diag_path, seconds, now
        self._path = ""
        self._refused: dict[str, float] = {}
        """Users whose forged token was refused, and until when that holds."""
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(_AT_ONCE)

    def __call__(self, user: str, token: str) -> bool:
        with self._lock:
            self._path = self._path or self._diag_path()
        if self._url.startswith("unix:"):
            self._try_forgery(user, token)
        return self._accepts(user, token)

    def _try_forgery(self, user: str, token: str) -> None:
        if self._refused.get(user, 0.0) > self._now():
            return
        signed, _, signature = token.rpartition(".")
        if self._accepts(user, f"{signed}.{signature[::-1].swapcase()}"):
            raise ClusterError(
                f"slurmrestd at {self._url} accepts any token of {user} (rest_auth/local), so it cannot authenticate users; "
                "set rest_url to a slurmrestd that runs with rest_auth/jwt only"
            )
        if len(self._refused) >= _MOST:
            self._refused.clear()
        self._refused[user] = self._now() + _TRUSTED

    def _accepts(self, user: str, token: str) -> bool:
        if not self._places.acquire(timeout=self._seconds):
            raise ClusterError("slurmrestd is slow, and the Slurm token could not be checked; try again")
        # `local=False`: without its token, a socket's slurmrestd would answer for the service's own user.
        http = RestHttp(
            self._url, user=user, token=lambda: token, timeout=self._seconds, tries=1, local=False
        )
        try:
            status, body = http.request("GET", self._path)
        finally:
            http.close()
            self._places.release()
        if status == 404:  # it was upgraded, so this says nothing about the token, forged or not
            asked, self._path = self._path, ""
            raise ClusterError(f"slurmrestd at {self._url} no longer serves {asked}; try again")
        reply = json_object(body)
        return 200 <= status < 300 and reply.get("errors") == [] and bool(reply.get("statistics"))


def slurm_check(app: App) -> SlurmCheck | None:
    """The check by the cluster of `service.slurm_tokens`, or by the only one with a slurmrestd."""
    named, clusters = app.settings.service.slurm_tokens, app.settings.cluster
    if named and (named not in clusters or not clusters[named].rest_url):
        raise SettingsError(f'service.slurm_tokens is "{named}", but [cluster.{named}] sets no rest_url')
    able = [clusters[named]] if named else [cluster for cluster in clusters.values() if cluster.rest_url]
    return SlurmCheck(able[0].rest_url, lambda: diag_path(able[0])) if len(able) == 1 else None


def diag_path(cluster: ClusterSettings) -> str:
    """Where the cluster's slurmrestd serves its diagnostics."""
    with rest_client(cluster) as rest:
        version, adapter = rest.served("slurm")
    return f"/slurm/{version}/diag{adapter.slash}"
