"""Turns: how many requests of one user are in progress at once, so that a flood delays only its sender."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

__all__ = ["Turns"]


class Turns:
    """Each key may have `most` requests in progress; further ones wait."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[str, tuple[asyncio.Semaphore, int]] = {}
        """For each key, also the number of its requests, waiting ones included."""

    def full(self, key: str) -> bool:
        """Whether another request of this key would wait."""
        return self._open.get(key, (None, 0))[1] >= self._most

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator[None]:
        semaphore, number = self._open.get(key) or (asyncio.Semaphore(self._most), 0)
        self._open[key] = semaphore, number + 1
        try:
            async with semaphore:
                yield
        finally:
            number = self._open[key][1] - 1
            if number:
                self._open[key] = semaphore, number
            else:
                del self._open[key]
