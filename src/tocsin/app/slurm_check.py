"""Ask slurmrestd whether it accepts a token."""

import threading
from collections.abc import Callable

from tocsin.app.app import App
from tocsin.app.clusters import rest_client
from tocsin.core.errors import ClusterError, SettingsError
from tocsin.core.settings import ClusterSettings
from tocsin.sources.rest_http import RestHttp, json_object

__all__ = ["SlurmCheck", "slurm_check"]

_SECONDS = 3.0
_AT_ONCE = 4


class SlurmCheck:
    """`/diag` of a slurmrestd, which asks slurmctld; `/ping` of 24.11 accepts altered tokens.

    `diag_path` finds the path with the service's own credentials, once.
    """

    def __init__(self, url: str, diag_path: Callable[[], str], *, seconds: float = _SECONDS) -> None:
        self._url, self._diag_path, self._seconds = url, diag_path, seconds
        self._path = ""
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(_AT_ONCE)

    def __call__(self, user: str, token: str) -> bool:
        with self._lock:
            self._path = self._path or self._diag_path()
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
        if status == 404:  # slurmrestd was upgraded
            self._path = ""
        reply = json_object(body)
        return 200 <= status < 300 and reply.get("errors") == [] and bool(reply.get("statistics"))


def slurm_check(app: App) -> SlurmCheck | None:
    """The check by the cluster of `service.slurm_tokens`, or by the only one with a slurmrestd."""
    named, clusters = app.settings.service.slurm_tokens, app.settings.cluster
    if named and (named not in clusters or not clusters[named].rest_url):
        raise SettingsError(
            f'service.slurm_tokens is "{named}", and there is no rest_url in [cluster.{named}]'
        )
    able = [clusters[named]] if named else [cluster for cluster in clusters.values() if cluster.rest_url]
    return SlurmCheck(able[0].rest_url, lambda: _diag_path(able[0])) if len(able) == 1 else None


def _diag_path(cluster: ClusterSettings) -> str:
    with rest_client(cluster) as rest:
        version, adapter = rest.served("slurm")
    return f"/slurm/{version}/diag{adapter.slash}"
