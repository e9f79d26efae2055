"""The relay of a login node: its users reach the service under their own names, and under no others."""

import os
import pwd
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

from tests.serve.identity.conftest import MakeApp, new_token
from tests.serve.identity.kit import FAR, LOCAL, ask, gated, serving, who
from tests.serve.identity.test_socket import asked_by, needs_root, path
from tocsin.app.app import App
from tocsin.core.errors import SettingsError
from tocsin.serve.identity.relay import Relay, relay_app
from tocsin.serve.identity.relay_signature import sign

__all__ = ["path"]  # a fixture

ME = pwd.getpwuid(os.geteuid()).pw_name


def relayed(
    token: str, user: str, *, signer: str = "", at: float | None = None, target: str = "/api/v1/me"
) -> dict[str, str]:
    moment = int(time.time() if at is None else at)
    signature = sign(signer or token, at=moment, user=user, method="GET", target=target)
    return {
        "Authorization": f"Bearer {token}",
        "X-Tocsin-Relay-User": user,
        "X-Tocsin-Relay-Signature": signature,
    }


@pytest.fixture
def app(make_app: MakeApp) -> App:
    return make_app(f"operators = 'olga, {ME}, nobody'")


@pytest.fixture
def relay(app: App, path: Path) -> Iterator[httpx2.Client]:
    """A client of a running relay to a running service."""
    token = new_token(app, "login1", relay=True)
    with (
        serving(gated(app)) as url,
        serving(relay_app(Relay(url, token), body_megabytes=4, seconds=30), path, lifespan="on"),
        httpx2.Client(transport=httpx2.HTTPTransport(uds=str(path)), base_url="http://tocsin") as client,
    ):
        yield client


def test_the_user_at_the_socket_is_the_user_at_the_service(relay: httpx2.Client) -> None:
    assert who(relay.get("/api/v1/me")) == (ME, "USER", "relay")


def test_bodies_queries_and_answers_pass(relay: httpx2.Client) -> None:
    assert relay.post("/api/v1/check", content=b"x" * 70_000).json()["body"] == 70_000
    assert relay.get("/api/v1/jobs", params={"user": "a b", "state": "F"}).status_code == 200
    assert relay.get("/api/v1/cases").status_code == 403
    assert relay.get("/nothing").status_code == 404
    assert relay.post("/api/v1/check", content=b"x" * (5 << 20)).status_code == 413
    assert relay.get("/api/v1/events").text.count("data:") == 4


def test_a_login_through_the_relay_is_a_login_of_its_user(relay: httpx2.Client) -> None:
    assert relay.post("/api/v1/login-links").status_code == 201


@needs_root
def test_another_user_of_the_login_node_is_that_user(relay: httpx2.Client, path: Path) -> None:
    found = asked_by("nobody", path, "/usr/bin/python3")
    assert found == {"user": "nobody", "role": "USER", "method": "relay"}


def test_a_client_of_the_relay_cannot_name_somebody_else(relay: httpx2.Client) -> None:
    for headers in (
        {"X-Tocsin-Relay-User": "olga", "X-Tocsin-Relay-Signature": "1:00"},
        {"Authorization": "Bearer x"},
        {"X-SLURM-USER-NAME": "olga", "X-SLURM-USER-TOKEN": "x"},
        {"Cookie": "tocsin_session=x"},
    ):
        assert who(relay.get("/api/v1/me", headers=headers)) == (ME, "USER", "relay")


def test_roles_are_those_of_the_service_up_to_the_scope_of_the_relay(app: App) -> None:
    gate = gated(app)
    low, high = new_token(app, "login1", relay=True), new_token(app, "login2", relay=True, role="operator")
    assert who(ask(gate, headers=relayed(low, "olga"))) == ("olga", "USER", "relay")
    assert who(ask(gate, headers=relayed(high, "olga"))) == ("olga", "OPERATOR", "relay")
    assert who(ask(gate, headers=relayed(high, "ann"))) == ("ann", "USER", "relay")
    root = who(ask(gate, headers=relayed(new_token(app, "l3", relay=True, role="admin"), "root")))
    assert root[1] != "ADMIN", "root of a login node is not root of the service"


def test_a_name_that_the_relay_did_not_sign_for_this_request_now_is_refused(app: App) -> None:
    gate, token = gated(app), new_token(app, "login1", relay=True)
    good = relayed(token, "ann")
    assert ask(gate, headers=good).status_code == 200
    for bad in (
        good | {"X-Tocsin-Relay-User": "olga"},
        good | {"X-Tocsin-Relay-Signature": ""},
        good | {"X-Tocsin-Relay-Signature": "x:y"},
        good | {"X-Tocsin-Relay-Signature": "²:00"},
        relayed(token, "ann", signer="another secret"),
        relayed(token, "ann", at=time.time() - 90),
        relayed(token, "ann", at=time.time() + 90),
        relayed(token, "ann", target="/api/v1/jobs"),
        {"Authorization": f"Bearer {token}"},
    ):
        headers = {name.encode(): value.encode() for name, value in bad.items()}
        assert ask(gate, headers=headers).status_code == 401  # type: ignore[arg-type]


def test_an_api_token_cannot_speak_for_others(app: App) -> None:
    token = new_token(app, "program", role="admin")
    assert ask(gated(app), headers=relayed(token, "olga")).status_code == 401


def test_a_relay_takes_nobody_over_tcp() -> None:
    assert ask(Relay("http://127.0.0.1:1", "t"), peer=LOCAL).status_code == 401
    assert ask(Relay("http://127.0.0.1:1", "t"), peer=FAR).status_code == 401


def test_without_its_service_a_relay_says_so(path: Path) -> None:
    secret = "tocsin_relay_secret"
    with (
        serving(Relay("http://127.0.0.1:1", secret), path, lifespan="on"),
        httpx2.Client(transport=httpx2.HTTPTransport(uds=str(path)), base_url="http://tocsin") as client,
    ):
        reply = client.get("/api/v1/me")
    assert reply.status_code == 502
    assert "does not answer the relay" in reply.json()["detail"]
    assert secret not in reply.text


@pytest.mark.parametrize(
    "url", ["http://tocsin.site:8642", "http://192.0.2.1", "ftp://x", "tocsin.site", "https://x/y", ""]
)
def test_a_relay_sends_its_token_over_tls_or_on_this_host_only(url: str) -> None:
    with pytest.raises(SettingsError, match=r"https://"):
        Relay(url, "t")


def test_a_relay_has_a_heartbeat_while_the_service_answers_it(app: App, path: Path) -> None:
    beats = threading.Semaphore(0)
    service = ExitStack()
    relay = Relay(
        service.enter_context(serving(gated(app))), new_token(app, "login1", relay=True), beat=beats.release
    )
    with serving(relay_app(relay, body_megabytes=4, seconds=30), path, lifespan="on"):
        for _ in range(3):
            assert beats.acquire(timeout=60)
        service.close()
        while beats.acquire(blocking=False):  # those from before it ended
            pass
        assert not beats.acquire(timeout=2.5)
