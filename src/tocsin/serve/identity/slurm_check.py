"""Ask slurmrestd whether it accepts a token."""

import threading
from collections.abc import Callable

from tocsin.core.errors import ClusterError
from tocsin.sources.rest_http import RestHttp, json_object

__all__ = ["SlurmCheck"]

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
