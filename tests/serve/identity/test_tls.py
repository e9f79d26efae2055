"""Over real TLS: secrets are accepted, cookies are secure, and a relay trusts the service's certificate only."""

import os
import signal
import ssl
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.kits.certificates import Certificate, self_signed
from tests.serve.identity.conftest import new_token
from tests.serve.identity.kit import ANN, gated, serving
from tests.serve.identity.test_tokens import bearer
from tests.services.daemons import await_true, connects
from tocsin.app.app import App
from tocsin.app.credentials import Credentials
from tocsin.serve.identity.sessions import Sessions


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return self_signed(tmp_path_factory.mktemp("tls"), "127.0.0.1")


def options(certificate: Certificate) -> dict[str, str]:
    return {"ssl_certfile": str(certificate.file), "ssl_keyfile": str(certificate.key)}


def test_the_kernel_and_the_server_agree_that_it_is_tls(app: App, certificate: Certificate) -> None:
    context = ssl.create_default_context(cafile=str(certificate.file))
    with (
        serving(gated(app), **options(certificate)) as url,
        httpx2.Client(base_url=url, verify=context) as client,
    ):
        reply = client.get("/api/v1/me", headers=bearer(new_token(app)))
        assert reply.status_code == 200
        assert reply.headers["strict-transport-security"]
        code = Sessions(Credentials(app), hours=1).link(ANN)
        entered = client.post("/login", data={"code": code}, headers={"Origin": url})
        assert entered.headers["set-cookie"].startswith("__Host-tocsin=")
        assert entered.headers["set-cookie"].endswith("; Secure")
        assert client.get("/api/v1/me").json()["who"]["user"] == "ann", "the client keeps the cookie"


@pytest.mark.parametrize("trusted", [True, False])
def test_the_relay_command_trusts_the_named_certificate_and_no_other(
    app: App, certificate: Certificate, tmp_path: Path, trusted: bool
) -> None:
    file, path = tmp_path / "relay.token", tmp_path / "s"
    new_token(app, "login1", relay=True, out=str(file))
    with serving(gated(app), **options(certificate)) as url:
        ca = ["--ca-file", str(certificate.file)] if trusted else []
        command = ["relay", "--to", url, "--token-file", str(file), "--socket", str(path), *ca]
        process = subprocess.Popen(
            [sys.executable, "-c", "from tocsin.cli.main import run; run()", *command],
            stderr=subprocess.PIPE,
            env={**os.environ, "HOME": str(tmp_path)},
        )
        try:
            await_true("the relay does not listen", lambda: connects(path), 30)
            with httpx2.Client(transport=httpx2.HTTPTransport(uds=str(path)), base_url="http://t") as client:
                reply = client.get("/api/v1/me")
        finally:
            process.send_signal(signal.SIGTERM)
            _, printed = process.communicate(timeout=30)
    assert reply.status_code == (200 if trusted else 502), reply.text
    assert file.read_text().strip() not in printed.decode()
