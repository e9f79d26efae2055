"""Sends new verdicts and cases from the store to every listening client; a slow client does not delay others."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from tocsin.app.app import App
from tocsin.app.feed import events_after, last_position
from tocsin.core.errors import StoreError

__all__ = ["Broadcast", "Listener", "Sent"]

QUEUED = 1000
"""Events queued for one client; with more, it is disconnected."""
LOOK_EVERY = 1.0
"""Seconds between two looks into the store; the watch of this process wakes it sooner."""


class Sent(NamedTuple):
    """An event with its position and its JSON."""

    position: Any
    kind: str
    document: dict[str, Any]


class Listener:
    """The queue of one client."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Sent | None] = asyncio.Queue(QUEUED + 1)
        self.lost = False
        """The client did not keep up, or the service ends."""

    def put(self, event: Sent) -> None:
        if self.lost:
            return
        if self._queue.qsize() >= QUEUED:
            self.end()
            return
        self._queue.put_nowait(event)

    def end(self) -> None:
        self.lost = True
        with suppress(asyncio.QueueFull):
            self._queue.put_nowait(None)

    async def get(self, seconds: float) -> Sent | None:
        """The next event; None if none came in time, or the listener is lost."""
        try:
            async with asyncio.timeout(seconds):
                return await self._queue.get()
        except TimeoutError:
            return None


class Broadcast:
    """Reads the store once for all clients. `run` is a task of the server's event loop."""

    def __init__(self, app: App, *, counted: Callable[[str], None] = lambda _what: None) -> None:
        self._app, self._counted = app, counted
        self._listeners: set[Listener] = set()
        self._wake: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._position: Any = None
        self._ended = False

    @property
    def clients(self) -> int:
        return len(self._listeners)

    def last(self) -> Any:
        """The position of the newest event."""
        return last_position(self._app)

    def after(self, position: Any) -> list[Sent]:
        """The next events after a position, from the store."""
        return [Sent(*event) for event in events_after(self._app, position)]

    def wake(self) -> None:
        """Wake the loop because there may be news; callable from any thread."""
        loop, wake = self._loop, self._wake
        if loop is not None and wake is not None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(wake.set)

    @contextmanager
    def listening(self) -> Iterator[Listener]:
        listener = Listener()
        if self._ended:
            listener.end()
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.discard(listener)

    async def run(self) -> None:
        """Run until cancelled."""
        self._loop, self._wake = asyncio.get_running_loop(), asyncio.Event()
        try:
            while True:
                with suppress(StoreError):  # locked or unreachable: the next look catches up
                    await self._look()
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_EVERY):
                        await self._wake.wait()
                self._wake.clear()
        finally:
            self._ended = True
            for listener in list(self._listeners):
                listener.end()

    async def begin(self) -> None:
        """Nothing is missed from here on: a new listener reads the store up to a later moment."""
        if self._position is None:
            last = await asyncio.to_thread(self.last)
            self._position = self._position or last

    async def _look(self) -> None:
        if not self._listeners:
            self._position = None  # a new listener starts from the store
            return
        await self.begin()
        while events := await asyncio.to_thread(self.after, self._position):
            self._position = events[-1].position
            self._send(events)

    def _send(self, events: Sequence[Sent]) -> None:
        for listener in list(self._listeners):
            for event in events:
                listener.put(event)
            if listener.lost:
                self._listeners.discard(listener)
                self._counted("lost")
