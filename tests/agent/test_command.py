"""`tocsin-agent` on this machine's own kernel: its pages, its errors and its end."""

import json
import re
import signal
import socket
import struct
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

COMMAND = [sys.executable, "-c", "import sys; from tocsin.agent.main import run; sys.exit(run())"]


@pytest.fixture(scope="module")
def agent() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The agent at 5 Hz and the address of its pages, once it has a sample."""
    line = [*COMMAND, "--listen", "127.0.0.1:0", "--interval", "0.2"]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        match = re.search(r"http://\S+?(?=/metrics)", process.stderr.readline())
        assert match
        for _ in range(10_000):
            if _get(f"{match[0]}/healthz")[0] == 200:
                break
        yield process, match[0]
        process.kill()


def _get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=10) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        with error:  # Python 3.14 warns of one that stays open
            return error.code, error.read().decode()


def test_the_rates_of_each_cpu_sum_to_one(agent: tuple[subprocess.Popen[str], str]) -> None:
    status, text = _get(f"{agent[1]}/metrics")
    assert status == 200
    sums: dict[str, float] = {}
    for cpu, rate in re.findall(
        r'^tocsin_cpu_ratio\{cpu="(\d+)",job="\d*",mode="\w+"\} (\S+)$', text, re.MULTILINE
    ):
        sums[cpu] = sums.get(cpu, 0) + float(rate)
    assert sums
    assert all(total == pytest.approx(1, abs=0.01) for total in sums.values())
    for line in text.splitlines():
        assert re.fullmatch(r"# (HELP|TYPE) \w+ .+|\w+(\{[^}]*\})? \S+", line), line


def test_the_window_continues_after_an_instant(agent: tuple[subprocess.Popen[str], str]) -> None:
    first = json.loads(_get(f"{agent[1]}/window")[1])
    last = first["samples"][-1]["at"]
    rest: list[float] = []
    while len(rest) < 2:
        rest = [sample["at"] for sample in json.loads(_get(f"{agent[1]}/window?since={last}")[1])["samples"]]
    assert rest == sorted(rest)
    assert rest[0] > last
    for values in first["samples"][-1]["cpus"].values():
        assert 0 <= sum(values) <= 1.001


@pytest.mark.parametrize(
    ("path", "status"), [("/window?since=nan", 400), ("/window?since=now", 400), ("/etc", 404)]
)
def test_a_wrong_request_is_refused(agent: tuple[subprocess.Popen[str], str], path: str, status: int) -> None:
    assert _get(agent[1] + path)[0] == status


def test_a_client_that_goes_away_or_sends_nonsense_writes_nothing_to_the_journal() -> None:
    line = [*COMMAND, "--listen", "127.0.0.1:0", "--interval", "0.2"]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        match = re.search(r":(\d+)/metrics", process.stderr.readline())
        assert match
        address = ("127.0.0.1", int(match[1]))
        for _ in range(5):
            with socket.create_connection(address, timeout=10) as client:
                client.sendall(b"GET /me")
                # closing sends a reset instead of an end
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with socket.create_connection(address, timeout=10) as client:
            client.sendall(b"GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 400 ")
        process.terminate()
        assert process.stderr.read() == ""


def test_it_ends_at_once_and_in_good_order(agent: tuple[subprocess.Popen[str], str]) -> None:
    agent[0].send_signal(signal.SIGTERM)
    assert agent[0].wait(timeout=30) == 0


def test_an_address_in_use_and_a_missing_proc_are_errors(tmp_path: object) -> None:
    for options, word in (
        (["--proc", f"{tmp_path}"], "--proc"),
        (["--listen", "203.0.113.1:9814"], "listen"),
    ):
        ended = subprocess.run([*COMMAND, *options], capture_output=True, text=True, timeout=60, check=False)
        assert ended.returncode == 1
        assert word in ended.stderr


def test_it_needs_nothing_but_the_standard_library() -> None:
    code = (
        "import sys, tocsin.agent.main; print(*{'numpy', 'polars', 'click', 'sqlalchemy'} & set(sys.modules))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == ""
