"""systemd learns that the service answers, and that it goes on doing so."""

import socket
from pathlib import Path

from tests.kits.service import Process
from tocsin.serve.systemd import READY, notify_systemd


def test_systemd_is_told_that_the_service_is_ready_and_then_that_it_is_alive(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(120)
        with Process(tmp_path / "home", "--no-watch", environ={"NOTIFY_SOCKET": str(tmp_path / "notify")}):
            messages: list[bytes] = []
            while len(messages) < 4:
                messages.append(systemd.recv(100))
    assert messages.count(b"READY=1") == 1
    assert messages.count(b"WATCHDOG=1") == 3


def test_a_socket_with_an_abstract_name_is_reached(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(f"\0{tmp_path}")
        notify_systemd(READY, {"NOTIFY_SOCKET": f"@{tmp_path}"})
        assert systemd.recv(100) == b"READY=1"


def test_without_systemd_nothing_happens(tmp_path: Path) -> None:
    for environ in ({}, {"NOTIFY_SOCKET": str(tmp_path / "nobody")}, {"NOTIFY_SOCKET": "relative"}):
        notify_systemd(READY, environ)
