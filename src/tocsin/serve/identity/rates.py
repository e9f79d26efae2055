"""Rate limits: a token bucket per client, filled at a steady rate."""

import time
from collections.abc import Callable

__all__ = ["Buckets"]

_MOST = 10_000


class Buckets:
    """Each key may take `per_minute` a minute, and a sixth of that at once; 0: unlimited."""

    def __init__(self, per_minute: int, *, now: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._most = per_minute / 60, max(1.0, per_minute / 6)
        self._now = now
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, key: str) -> float:
        """Take one token; returns the seconds to wait if there is none, else 0."""
        if not self._rate:
            return 0.0
        now = self._now()
        left, at = self._left.get(key, (self._most, now))
        left = min(self._most, left + (now - at) * self._rate)
        if left < 1:
            return (1 - left) / self._rate
        if len(self._left) >= _MOST:
            self._forget(now)
        self._left[key] = (left - 1, now)
        return 0.0

    def _forget(self, now: float) -> None:
        """Drop buckets that are full again; if none is, drop half of them, to bound memory."""
        full = {key for key, (left, at) in self._left.items() if left + (now - at) * self._rate >= self._most}
        for key in full or list(self._left)[: _MOST // 2]:
            del self._left[key]
