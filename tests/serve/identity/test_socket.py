"""On a real unix socket the kernel says who is asking."""

import asyncio
import grp
import json
import os
import pwd
import subprocess
import tempfile
from pathlib import Path

import httpx2
import pytest

from tests.conftest import unavailable
from tests.serve.identity.conftest import MakeApp
from tests.serve.identity.kit import gated, serving
from tocsin.app.app import App
from tocsin.app.roles import RoleLists
from tocsin.core.settings import ServiceSettings
from tocsin.serve.identity.authenticators import Socket
from tocsin.serve.identity.peer import Peer
from tocsin.serve.identity.request import Request
from tocsin.serve.principal import Role

_CLIENT = """
import socket, sys
client = socket.socket(socket.AF_UNIX)
client.connect(sys.argv[1])
client.sendall(b"GET /api/v1/me HTTP/1.1\\r\\nHost: x\\r\\nX-Forwarded-User: root\\r\\nConnection: close\\r\\n\\r\\n")
reply = b""
while data := client.recv(65536):
    reply += data
print(reply.decode().partition("\\r\\n\\r\\n")[2])
"""
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where every user can get at it."""
    for folder in [tmp_path, *tmp_path.parents]:
        if folder == Path(tempfile.gettempdir()):
            break
        folder.chmod(0o755)
    return tmp_path / "s"


def asked_by(user: str, path: Path, python: str) -> dict[str, str]:
    done = subprocess.run(
        [python, "-I", "-S", "-c", _CLIENT, str(path)],
        user=user,
        group=pwd.getpwnam(user).pw_gid,
        extra_groups=[],
        cwd="/",
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    reply = json.loads(done.stdout)
    return reply.get("who") or reply


def test_the_user_who_runs_the_service_is_its_administrator(app: App, path: Path) -> None:
    with (
        serving(gated(app), path) as url,
        httpx2.Client(transport=httpx2.HTTPTransport(uds=str(path)), base_url=url) as client,
    ):
        found = client.get("/api/v1/me").json()["who"]
        again = client.get("/api/v1/me", headers={"X-Forwarded-User": "ann"}).json()["who"]
    me = pwd.getpwuid(os.geteuid()).pw_name
    assert found == again == {"user": me, "role": "ADMIN", "method": "socket"}


@needs_root
@pytest.mark.parametrize(
    ("settings", "role"),
    [
        ("", "USER"),
        ("operators = 'nobody'", "OPERATOR"),
        ("operators = '@nogroup'", "OPERATOR"),
        ("operators = 'nobody'\nadmins = '@nogroup'", "ADMIN"),
        ("operators = '@nobody'\nadmins = 'nogroup'", "USER"),
    ],
)
def test_another_user_is_who_the_kernel_says_whatever_the_headers_say(
    make_app: MakeApp, path: Path, settings: str, role: str
) -> None:
    python = "/usr/bin/python3"
    if not Path(python).exists():
        unavailable("no Python that every user may run")
    with serving(gated(make_app(settings)), path):
        assert asked_by("nobody", path, python) == {"user": "nobody", "role": role, "method": "socket"}


def test_over_tcp_a_uid_is_not_taken_from_anywhere(app: App) -> None:
    with serving(gated(app)) as url:
        assert httpx2.get(f"{url}/api/v1/me", headers={"X-Forwarded-For": "127.0.0.1"}).status_code == 401


def test_forwarded_headers_do_not_make_a_plain_connection_secure(app: App) -> None:
    with serving(gated(app)) as url:
        reply = httpx2.get(f"{url}/healthz", headers={"X-Forwarded-Proto": "https"})
    assert "strict-transport-security" not in reply.headers


def test_a_uid_without_a_name_is_refused(app: App) -> None:
    from tests.serve.identity.kit import ask
    from tocsin.serve.identity.peer import Peer

    reply = ask(gated(app), peer=Peer(uid=3_999_999_999))
    assert reply.status_code == 401
    assert "3999999999" in reply.json()["detail"]


def test_roles_come_from_names_and_groups_and_are_looked_up_once_a_minute() -> None:
    looked_up, now = list[str](), 0.0

    def groups(user: str) -> frozenset[str]:
        looked_up.append(user)
        return frozenset({"wheel"} if user == "ann" else {"users"})

    roles = RoleLists(
        ServiceSettings(admins="@wheel", operators="olga, @ops"), groups_of=groups, now=lambda: now
    )
    assert [roles.role(user) for user in ("ann", "olga", "bob", "wheel", "@wheel", "ops")] == [
        "admin",
        "operator",
        *["user"] * 4,
    ]
    roles.role("ann")
    assert looked_up.count("ann") == 1
    now = 61.0
    roles.role("ann")
    assert looked_up.count("ann") == 2


def test_the_groups_of_this_host_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    from tocsin.app.roles import unix_groups

    me = pwd.getpwuid(os.geteuid())
    assert grp.getgrgid(me.pw_gid).gr_name in unix_groups(me.pw_name)
    assert unix_groups("no such user") == frozenset()


def test_who_a_uid_is_is_looked_up_again_after_some_seconds() -> None:
    looked_up, clock, role = [], [0.0], ["user"]

    class Roles(RoleLists):
        def role_of_uid(self, uid: int, user: str) -> str:
            looked_up.append((uid, user))
            return role[0]

    way = Socket(Roles(ServiceSettings()), now=lambda: clock[0])
    request = Request(Peer(uid=os.geteuid()), "GET", "/", [])

    def asked() -> Role:
        return asyncio.run(way.principal(request)).role

    assert [asked(), asked()] == [Role.USER, Role.USER]
    assert len(looked_up) == 1
    role[0] = "operator"
    clock[0] = 4.9
    assert asked() is Role.USER
    clock[0] = 5.1
    assert asked() is Role.OPERATOR
