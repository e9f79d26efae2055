"""slurmrestd that is slow, endless or picky about tokens: bounded time and memory, and errors that name the remedy."""

import json
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tocsin.core.errors import ClusterError, NotFound
from tocsin.core.intake import Rejects
from tocsin.sources import rest_http
from tocsin.sources.rest import SlurmRest
from tocsin.sources.waiting import of_slurmrestd, waited

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
SPEC = json.dumps({"paths": {"/slurm/v0.0.42/jobs/": {}, "/slurmdb/v0.0.42/jobs/": {}}}).encode()
Pieces = Callable[[bytes], Iterator[bytes]]


@contextmanager
def serving(pieces: Pieces, path: Path | None = None) -> Iterator[str]:
    """A server that answers each request (its first line and headers) with these pieces."""
    listener = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
    listener.bind(str(path) if path else ("127.0.0.1", 0))
    listener.listen()
    over = threading.Event()

    def answer(client: socket.socket) -> None:
        with client:
            request = client.recv(65_536)
            try:
                for piece in pieces(request):
                    if over.is_set():
                        return
                    client.sendall(piece)
            except OSError:
                return

    def accept() -> None:
        while not over.is_set():
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"unix:{path}" if path else f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def rest_at(url: str, **options: float) -> SlurmRest:
    return SlurmRest(url, user="root", token=lambda: "t", sleep=lambda _: None, **{"tries": 1, **options})


def slowly(data: bytes) -> Iterator[bytes]:
    for byte in data:
        time.sleep(0.05)  # the time that the server takes is what is tested
        yield bytes([byte])


@pytest.mark.parametrize("fast", [b"", OK])
def test_a_reply_that_drips_ends_at_the_deadline(fast: bytes) -> None:
    def drip(_: bytes) -> Iterator[bytes]:
        yield fast
        yield from slowly((OK + SPEC)[len(fast) :] * 20)

    with (
        serving(drip) as url,
        rest_at(url, timeout=0.4, deadline=0.4) as rest,
        pytest.raises(ClusterError, match="does not answer"),
    ):
        rest.served("slurm")


def test_a_dump_has_a_deadline_of_its_own() -> None:
    def drip(request: bytes) -> Iterator[bytes]:
        yield OK
        yield from [SPEC] if b"openapi" in request else slowly(b'{"jobs": [' + b" " * 1000)

    with (
        serving(drip) as url,
        rest_at(url, timeout=0.3, deadline=0.6) as rest,
        pytest.raises(ClusterError, match="does not answer"),
    ):
        rest.queue()


def test_an_endless_specification_is_refused() -> None:
    def endless(_: bytes) -> Iterator[bytes]:
        yield OK
        while True:
            yield b'{"paths": ' * 10_000

    with serving(endless) as url, rest_at(url) as rest, pytest.raises(ClusterError, match="more than 32 MiB"):
        rest.served("slurm")


def test_a_dump_is_read_in_the_memory_of_its_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_http, "MAX_REPLY", 40 * 2**20)
    job = {"job_id": 1, "job_state": ["RUNNING"], "submit_time": 5, "cluster": "lab", "comment": "x" * 2_000}

    def endless(request: bytes) -> Iterator[bytes]:
        yield OK
        if b"openapi" in request:
            yield SPEC
            return
        yield b'{"jobs": ['
        while True:
            yield json.dumps(job).encode() + b","

    with serving(endless) as url, rest_at(url) as rest:
        rest.served("slurm")
        tracemalloc.start()
        try:
            with pytest.raises(ClusterError, match="more than 40 MiB"):
                rest.queue()
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 20 * 2**20


@pytest.mark.parametrize(("status", "number"), [(511, 1007), (500, 1007), (401, 0)])
def test_an_expired_token_names_the_remedy(status: int, number: int) -> None:
    body = json.dumps({"errors": [{"error_number": number, "description": "authentication"}]}).encode()

    def answer(request: httpx2.Request) -> httpx2.Response:
        known = request.url.path == "/openapi/v3"
        return httpx2.Response(200 if known else status, content=SPEC if known else body)

    transport = httpx2.MockTransport(answer)
    with (
        SlurmRest("http://lab", user="ada", token=lambda: "t", transport=transport) as rest,
        pytest.raises(ClusterError, match=r"token of ada.*scontrol token"),
    ):
        rest.queue()


@pytest.mark.parametrize(
    ("status", "reply"),
    [(404, {}), (500, {"errors": [{"error_number": 2017}]}), (200, {"errors": [{"error_number": 2017}]})],
)
def test_an_unknown_job_is_not_found(status: int, reply: dict[str, object]) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        known = request.url.path == "/openapi/v3"
        return httpx2.Response(
            200 if known else status, content=SPEC if known else json.dumps(reply).encode()
        )

    transport = httpx2.MockTransport(answer)
    with (
        SlurmRest("http://lab", user="ada", token=lambda: "t", transport=transport) as rest,
        pytest.raises(NotFound),
    ):
        rest.job_documents(17)


@pytest.mark.parametrize("wants_token", [False, True])
def test_a_socket_is_tried_without_a_token_first(tmp_path: Path, wants_token: bool) -> None:
    requests: list[bytes] = []

    def answer(request: bytes) -> Iterator[bytes]:
        requests.append(request)
        if wants_token and b"user-token" not in request.lower():
            yield OK.replace(b"200 OK", b"401 Unauthorized")
        else:
            yield OK + SPEC

    with serving(answer, tmp_path / "socket") as url, rest_at(url) as rest:
        assert rest.served("slurm").version == "v0.0.42"
    assert [b"user-token" in request.lower() for request in requests] == (
        [False, True] if wants_token else [False]
    )


def test_what_slurmrestd_takes_is_counted_and_what_is_done_with_its_answer_is_not() -> None:
    def pieces(request: bytes) -> Iterator[bytes]:
        yield OK
        if b"openapi" in request:
            yield SPEC
            return
        time.sleep(0.3)
        yield b'{"jobs": [], "errors": [], "warnings": []}'

    with serving(pieces) as url, rest_at(url) as rest:
        rest.served("slurm")
        before = waited()
        rest.queue()
        assert waited() - before > of_slurmrestd(0.25)


def test_a_hang_of_slurmrestd_counts_in_full_and_an_answer_that_it_writes_only_in_part() -> None:
    assert of_slurmrestd(25) == 25
    assert 20 * of_slurmrestd(0.15) < 1
    assert 20 * of_slurmrestd(1.8) > 5


def test_the_queue_does_not_wait_for_a_slurmdbd_that_hangs() -> None:
    asked, over = threading.Event(), threading.Event()

    def pieces(request: bytes) -> Iterator[bytes]:
        yield OK
        if b"openapi" in request:
            yield SPEC
            return
        if b"/slurmdb/" in request:
            asked.set()
            over.wait(60)
        yield b'{"jobs": [], "errors": [], "warnings": []}'

    with serving(pieces) as url, rest_at(url, timeout=60) as rest:
        rest.served("slurm")
        accounting = threading.Thread(target=lambda: rest.accounting(0, 10, rejects=Rejects()), daemon=True)
        accounting.start()
        try:
            assert asked.wait(60)
            assert rest.queue().is_empty()
            assert accounting.is_alive()
        finally:
            over.set()
            accounting.join(60)
