"""Notifies systemd that the service answers, and keeps its watchdog alive; does nothing without systemd."""

import os
import socket
from collections.abc import Mapping
from contextlib import suppress

__all__ = ["ALIVE", "READY", "notify_systemd"]

READY = "READY=1"
ALIVE = "WATCHDOG=1"


def notify_systemd(message: str, environ: Mapping[str, str] = os.environ) -> None:
    """Send one message of sd_notify(3) to the socket in NOTIFY_SOCKET; errors are ignored."""
    path = environ.get("NOTIFY_SOCKET", "")
    if not path.startswith(("/", "@")):
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sender:
        sender.connect(f"\0{path[1:]}" if path.startswith("@") else path)
        sender.send(message.encode())
