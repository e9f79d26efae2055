"""A private PostgreSQL server in a temporary folder, for as long as it is wanted."""

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.services import SYSTEM_PATH, missing, postgres_folders
from tests.services.daemons import Daemons, ServiceError, connects, free_ports

# Nothing here has to survive a power cut.
CARELESS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class Postgres:
    """A server that trusts whoever reaches its unix socket (its folder is closed to others) and asks for a password on loopback."""

    user = "tocsin"

    def __init__(self) -> None:
        self.password = secrets.token_urlsafe(16)
        # PostgreSQL refuses to run as root.
        self._account = _unprivileged() if os.geteuid() == 0 else None

    def start(self) -> Self:
        """Make the cluster, start the server, and return when it answers."""
        if sentence := missing("postgres"):
            raise ServiceError(sentence)
        self._programs = postgres_folders()[0]
        self.folder = Path(tempfile.mkdtemp(prefix="tocsin-postgres-", dir="/tmp"))
        self.daemons = Daemons(self.folder)
        try:
            self._initialise()
            self._serve()
        except BaseException:
            self.stop()
            raise
        return self

    def _initialise(self) -> None:
        if self._account:
            shutil.chown(self.folder, self._account, self._account)
        password = self.folder / "password"
        password.write_text(self.password)
        self._run(
            "initdb",
            f"--pgdata={self.folder / 'data'}",
            f"--username={self.user}",
            f"--pwfile={password}",
            "--auth-local=trust",
            "--auth-host=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
        )
        password.unlink()

    def _serve(self) -> None:
        [self.port] = free_ports(1)
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
            **CARELESS,
        }
        options = [f"-c{name}={value}" for name, value in settings.items()]
        command = [str(self._programs / "postgres"), "-D", str(self.folder / "data"), *options]
        self.daemons.start("postgres", command, self._env, self._account)
        self.daemons.await_ready("postgres", self._answers, 30)

    def _answers(self) -> bool:
        if not connects(self.folder / f".s.PGSQL.{self.port}"):
            return False
        return self._run("psql", *self._client, "-c", "select 1", check=False).returncode == 0

    def stop(self) -> None:
        """End the server and remove its folder."""
        self.daemons.stop(["postgres"])
        shutil.rmtree(self.folder)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def new_database(self) -> str:
        """Create an empty database and return its URL, by the unix socket."""
        name = f"tocsin_{secrets.token_hex(4)}"
        self._run("psql", *self._client, "-c", f"create database {name}")
        return f"postgresql://{self.user}@/{name}?host={self.folder}&port={self.port}"

    def tcp_url(self, url: str) -> str:
        """The URL of the same database over loopback, with the password that asks for."""
        name = url.partition("@/")[2].partition("?")[0]
        return f"postgresql://{self.user}:{self.password}@127.0.0.1:{self.port}/{name}"

    @property
    def _client(self) -> list[str]:
        return [
            "-X",
            "-q",
            f"--host={self.folder}",
            f"--port={self.port}",
            f"--username={self.user}",
            "--dbname=postgres",
        ]

    @property
    def _env(self) -> dict[str, str]:
        return {"PATH": SYSTEM_PATH, "LANG": "C.UTF-8", "TZ": "UTC"}

    def _run(self, program: str, *options: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run(
            [str(self._programs / program), *options],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
            cwd="/",
            env=self._env,
            user=self._account,
            group=self._account,
            extra_groups=[] if self._account else None,
        )
        if check and done.returncode:
            raise ServiceError(f"`{program}` ended with exit code {done.returncode}: {done.stderr.strip()}")
        return done


def _unprivileged() -> str:
    """The account that Debian's package makes; where PostgreSQL came without it, the one that every machine has."""
    return "postgres" if any(account.pw_name == "postgres" for account in pwd.getpwall()) else "nobody"
