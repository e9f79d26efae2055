"""Events: everyone who keeps up gets each one once, and whoever does not is cut off without slowing others."""

import asyncio
from pathlib import Path

import pytest

from tocsin.app.app import App
from tocsin.app.feed import position_of
from tocsin.core.decision import Decision, NewCase
from tocsin.core.stages import Stage
from tocsin.core.verdict import Level, Verdict
from tocsin.serve import broadcast, event_stream
from tocsin.serve.broadcast import Broadcast
from tocsin.serve.event_stream import EventStream
from tocsin.serve.identity.protocol import ABORT
from tocsin.serve.principal import Principal, Role
from tocsin.store.decisions import record
from tocsin.store.feed import Position

AT = 1767600000


def verdicts(app: App, *numbers: int, user: str = "ada") -> None:
    given = [
        Verdict(job=f"lab:{n}@{AT}", stage=Stage.SUBMIT, at=AT, known_until=AT, level=Level.OK, user=user)
        for n in numbers
    ]
    record(app.store, Decision(verdicts=given))


class Client:
    """What a server would do with a stream: its messages are kept."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[bytes] = asyncio.Queue()
        self.gone = asyncio.Event()
        self.blocked = asyncio.Event()
        self.blocked.set()

    async def receive(self) -> dict[str, object]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, object]) -> None:
        await self.blocked.wait()
        if body := message.get("body"):
            assert isinstance(body, bytes)
            await self.sent.put(body)

    def rest(self) -> str:
        """What was sent and not looked at yet."""
        return b"".join(self.sent.get_nowait() for _ in range(self.sent.qsize())).decode()

    async def jobs(self, number: int) -> list[str]:
        """The jobs of the next events."""
        found: list[str] = []
        while len(found) < number:
            async with asyncio.timeout(30):
                text = (await self.sent.get()).decode()
            found += [
                line.split('"job":"')[1].split('"')[0]
                for line in text.splitlines()
                if line.startswith("data")
            ]
        return found


def test_each_event_comes_once_whether_it_was_stored_before_or_after(tmp_path: Path) -> None:
    async def run(app: App) -> None:
        source = Broadcast(app)
        reading = asyncio.create_task(source.run())
        verdicts(app, *range(5))
        client = Client()
        stream = EventStream(source, Principal("olga", Role.OPERATOR, "test"), Position(2, 0))
        task = asyncio.create_task(stream({}, client.receive, client.send))  # type: ignore[arg-type]  # plain dicts
        assert await client.jobs(3) == [f"lab:{n}@{AT}" for n in (2, 3, 4)]
        await asyncio.to_thread(verdicts, app, 5, 6)
        source.wake()
        assert await client.jobs(2) == [f"lab:{n}@{AT}" for n in (5, 6)]
        client.gone.set()
        await asyncio.wait_for(task, 30)
        assert source.clients == 0
        reading.cancel()

    with App(folder=str(tmp_path)) as app:
        asyncio.run(run(app))


def test_users_get_the_verdicts_on_their_own_jobs_and_no_cases(tmp_path: Path) -> None:
    async def run(app: App) -> None:
        source = Broadcast(app)
        new = NewCase("a cause", f"lab:1@{AT}", AT, {"user": "ada"})
        record(app.store, Decision(cases=[new]))
        verdicts(app, 1, user="bob")
        verdicts(app, 2, user="ada")
        client = Client()
        stream = EventStream(source, Principal("ada", Role.USER, "test"), Position())
        task = asyncio.create_task(stream({}, client.receive, client.send))  # type: ignore[arg-type]  # plain dicts
        assert await client.jobs(1) == [f"lab:2@{AT}"]
        client.gone.set()
        await asyncio.wait_for(task, 30)

    with App(folder=str(tmp_path)) as app:
        asyncio.run(run(app))


def test_a_client_that_does_not_keep_up_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broadcast, "QUEUED", 10)

    async def run(app: App) -> None:
        lost: list[str] = []
        source = Broadcast(app, counted=lost.append)
        reading = asyncio.create_task(source.run())
        slow, quick = Client(), Client()
        start = await asyncio.to_thread(source.last)
        tasks = [
            asyncio.create_task(
                EventStream(source, Principal("olga", Role.OPERATOR, "test"), start)(
                    {}, one.receive, one.send
                )  # type: ignore[arg-type]
            )
            for one in (slow, quick)
        ]
        await asyncio.to_thread(verdicts, app, 0)
        source.wake()
        assert await slow.jobs(1) == await quick.jobs(1)
        slow.blocked.clear()
        for first in range(1, 31, 5):
            await asyncio.to_thread(verdicts, app, *range(first, first + 5))
            source.wake()
            assert await quick.jobs(5) == [f"lab:{n}@{AT}" for n in range(first, first + 5)]
        assert lost == ["lost"]
        assert source.clients == 1
        slow.blocked.set()
        await asyncio.wait_for(tasks[0], 30)
        quick.gone.set()
        await asyncio.wait_for(tasks[1], 30)
        reading.cancel()

    with App(folder=str(tmp_path)) as app:
        asyncio.run(run(app))


def test_a_client_that_stops_reading_is_disconnected_and_nothing_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "STALLED", 0.05)

    async def run(app: App) -> None:
        source, client, cut = Broadcast(app), Client(), asyncio.Event()
        verdicts(app, *range(5))
        stream = EventStream(source, Principal("olga", Role.OPERATOR, "test"), Position())
        task = asyncio.create_task(stream({ABORT: cut.set}, client.receive, client.send))  # type: ignore[arg-type]  # plain dicts
        await client.jobs(5)
        client.blocked.clear()
        reading = asyncio.create_task(source.run())
        await asyncio.to_thread(verdicts, app, 5)
        source.wake()
        await asyncio.wait_for(task, 30)
        assert cut.is_set()
        assert source.clients == 0
        reading.cancel()

    with App(folder=str(tmp_path)) as app:
        asyncio.run(run(app))


def test_a_stream_ends_so_that_its_client_is_identified_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A revoked token kept its stream for as long as the client stayed."""
    monkeypatch.setattr(event_stream, "LONGEST", 0.0)

    async def run(app: App) -> None:
        verdicts(app, 1, 2)
        client, source, olga = Client(), Broadcast(app), Principal("olga", Role.OPERATOR, "test")
        for number in (1, 2):  # a stream that has lasted too long sends only one of the stored events
            stream = EventStream(source, olga, Position(number - 1, 0))
            await asyncio.wait_for(stream({}, client.receive, client.send), 30)  # type: ignore[arg-type]  # plain dicts
            assert await client.jobs(1) == [f"lab:{number}@{AT}"]
            assert "data" not in client.rest()

    with App(folder=str(tmp_path)) as app:
        asyncio.run(run(app))


def test_a_client_that_got_no_event_misses_none_when_its_stream_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "LONGEST", 0.0)

    async def run(app: App) -> None:
        verdicts(app, 1)
        client, source, ada = Client(), Broadcast(app), Principal("ada", Role.USER, "test")
        stream = EventStream(source, ada, await asyncio.to_thread(source.last))
        await asyncio.wait_for(stream({}, client.receive, client.send), 30)  # type: ignore[arg-type]  # plain dicts
        lines = client.rest().splitlines()
        assert not any(line.startswith("data") for line in lines)
        verdicts(app, 2)  # before the client is back
        resumed = position_of([line.removeprefix("id: ") for line in lines if line.startswith("id: ")][-1])
        stream = EventStream(source, ada, resumed)
        await asyncio.wait_for(stream({}, client.receive, client.send), 30)  # type: ignore[arg-type]  # plain dicts
        assert await client.jobs(1) == [f"lab:2@{AT}"]

    with App(folder=str(tmp_path)) as app:
        asyncio.run(run(app))
