"""A private mosquitto on loopback, which can be stopped and started again on the same port."""

import hashlib
import os
import shutil
import tempfile
from base64 import b64encode
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.services import SYSTEM_PATH, missing
from tests.services.daemons import Daemons, ServiceError, connects, free_ports


class Mosquitto:
    """An MQTT 5 broker; with a `password`, it takes only the user `tocsin`. What is retained outlives a restart."""

    user = "tocsin"

    def __init__(self, password: str | None = None) -> None:
        self.password = password

    def start(self) -> Self:
        if sentence := missing("mosquitto"):
            raise ServiceError(sentence)
        self.folder = Path(tempfile.mkdtemp(prefix="tocsin-mosquitto-", dir="/tmp"))
        self.daemons = Daemons(self.folder)
        [self.port] = free_ports(1)
        lines = [
            f"listener {self.port} 127.0.0.1",
            "persistence true",
            f"persistence_location {self.folder}/",
            f"allow_anonymous {'false' if self.password else 'true'}",
            "user root",  # else it becomes the user mosquitto, who cannot write to the folder
        ]
        if self.password:
            lines.append(f"password_file {self._password_file()}")
        (self.folder / "mosquitto.conf").write_text("\n".join(lines) + "\n")
        try:
            self.resume()
        except BaseException:
            self.stop()
            raise
        return self

    def _password_file(self) -> Path:
        salt = os.urandom(12)
        digest = hashlib.pbkdf2_hmac("sha512", str(self.password).encode(), salt, 101)
        file = self.folder / "passwords"
        file.write_text(f"{self.user}:$7$101${b64encode(salt).decode()}${b64encode(digest).decode()}\n")
        return file

    def resume(self) -> None:
        """Start the broker, and return when it answers."""
        program = shutil.which("mosquitto", path=SYSTEM_PATH)
        assert program is not None, "missing() would have said so"
        command = [program, "-c", self.folder / "mosquitto.conf"]
        self.daemons.start("mosquitto", command, {"PATH": SYSTEM_PATH})
        self.daemons.await_ready("mosquitto", lambda: connects(("127.0.0.1", self.port)), 10)

    def pause(self) -> None:
        """End the broker; what is retained is kept."""
        self.daemons.stop(["mosquitto"])

    def stop(self) -> None:
        self.pause()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
