"""librdkafka's mock cluster in a process of its own, and a proxy in front of it that can be cut.

It is no real Kafka: it speaks the protocol, has topics, consumer groups and idempotent producers, and keeps everything in
memory (about 5 MB for each partition).
"""

import select
import socket
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Any, Self

_BROKER = """
import sys
from confluent_kafka import Producer
broker = Producer({"test.mock.num.brokers": 1, "log_level": 0})
for node in broker.list_topics(timeout=10).brokers.values():
    print(f"{node.host}:{node.port}", flush=True)
sys.stdin.read()  # until the test closes it, or dies
"""


class MockKafka:
    """A broker at `address`; clients that connect to a CutProxy stay behind it."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BROKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()
        assert self.address, "the mock cluster did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


class CutProxy:
    """Forwards TCP connections to a Kafka broker until it is cut; then it refuses and drops them.

    A broker tells clients its own address, so that they would go around the proxy; this one puts its own in place of it.
    """

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = host, int(port)
        self.cuts = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._port = 0
        self.mend()
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()

    def cut(self) -> None:
        """End all connections, and refuse new ones."""
        with self._lock:
            self.cuts += 1
            for each in (self._listener, *self._open):
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        self._thread.join()

    def mend(self) -> None:
        """Accept connections again, at the same address."""
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", self._port))
        self._listener.listen()
        self._port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, args=(self._listener,), daemon=True)
        self._thread.start()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection(self._target)
                with self._lock:
                    self._open |= {client, server}
                threading.Thread(target=self._forward, args=(client, server), daemon=True).start()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        """Requests go through as they are; answers are read whole, for the address may be anywhere in them."""
        theirs = self._target[0].encode() + struct.pack(">i", self._target[1])
        ours = b"127.0.0.1" + struct.pack(">i", self._port)
        assert len(theirs) == len(ours), "else the lengths in the answer would be wrong"
        try:
            while True:
                ready, _, _ = select.select([client, server], [], [])
                if client in ready:
                    data = client.recv(65_536)
                    if not data:
                        return
                    server.sendall(data)
                if server in ready:
                    size = _read(server, 4)
                    answer = _read(server, struct.unpack(">i", size)[0])
                    client.sendall(size + answer.replace(theirs, ours))
        except (OSError, EOFError, ValueError):
            return
        finally:
            with self._lock:
                self._open -= {client, server}
            client.close()
            server.close()


def _read(source: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        part = source.recv(size - len(found))
        if not part:
            raise EOFError
        found += part
    return bytes(found)


def read_all(address: str, topic: str, stop: threading.Event, into: list[Any]) -> None:
    """An independent reader, without a group: every record of a topic from the beginning, until `stop` is set."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    reader = Consumer({"bootstrap.servers": address, "group.id": "reader", "log_level": 0})
    try:
        while not (partitions := reader.list_topics(topic, timeout=10).topics[topic].partitions):
            if stop.wait(0.1):  # nobody has written to it yet
                return
        reader.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
        while not stop.is_set():
            into += [record for record in reader.consume(1000, 0.2) if not record.error()]
    finally:
        reader.close()
