"""A real SMTP server (aiosmtpd) in a process of its own; it writes what it gets to a folder."""

import subprocess
import sys
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Self, cast

from tests.services.daemons import await_true, connects, free_ports

_SERVER = """
import sys
from pathlib import Path
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

folder, port, password = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

class Handler:
    number = 0
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("gone@"):
            return "550 no such user"
        if address.startswith("full@") and not (folder / "emptied").exists():
            return "452 mailbox full"
        envelope.rcpt_tos.append(address)
        return "250 OK"
    async def handle_DATA(self, server, session, envelope):
        self.number += 1
        new = folder / f"{self.number}.new"
        new.write_bytes(envelope.content)
        new.rename(folder / f"{self.number}.eml")
        return "250 OK"

def check(server, session, envelope, mechanism, data):
    return AuthResult(success=data.password.decode() == password, handled=False)

more = {"authenticator": check, "auth_required": True, "auth_require_tls": False} if password else {}
controller = Controller(Handler(), hostname="127.0.0.1", port=port, **more)
controller.start()
sys.stdin.read()  # until the test closes it, or dies
"""


class SmtpServer:
    """Refuses mail to gone@… for ever, and to full@… until `empty_mailbox`."""

    def __init__(self, folder: Path, password: str = "") -> None:
        self._folder, self._password = folder, password
        folder.mkdir(exist_ok=True)

    def __enter__(self) -> Self:
        [self.port] = free_ports(1)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVER, str(self._folder), str(self.port), self._password],
            stdin=subprocess.PIPE,
        )
        await_true("the SMTP server does not answer", lambda: connects(("127.0.0.1", self.port)), 20)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def empty_mailbox(self) -> None:
        (self._folder / "emptied").touch()

    def mails(self) -> list[EmailMessage]:
        """In the order of their arrival."""
        files = sorted(self._folder.glob("*.eml"), key=lambda file: int(file.stem))
        return [read_mail(file) for file in files]


def read_mail(file: Path) -> EmailMessage:
    return cast("EmailMessage", message_from_bytes(file.read_bytes(), policy=policy.default))
