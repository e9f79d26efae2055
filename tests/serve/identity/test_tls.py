"""Over real TLS: secrets are accepted, cookies are secure, and a relay trusts the service's certificate only."""

import datetime
import ipaddress
import os
import signal
import ssl
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.serve.identity.conftest import new_token
from tests.serve.identity.kit import ANN, gated, serving
from tests.serve.identity.test_tokens import bearer
from tests.services.daemons import await_true, connects
from tocsin.app.app import App
from tocsin.app.credentials import Credentials
from tocsin.serve.identity.sessions import Sessions


class Certificate(NamedTuple):
    file: Path
    key: Path

    @property
    def options(self) -> dict[str, str]:
        return {"ssl_certfile": str(self.file), "ssl_keyfile": str(self.key)}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """Of 127.0.0.1, signed by itself."""
    folder = tmp_path_factory.mktemp("tls")
    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tocsin")]),
    )
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    found = Certificate(folder / "cert.pem", folder / "key.pem")
    found.file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    found.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, *private))
    return found


def test_the_kernel_and_the_server_agree_that_it_is_tls(app: App, certificate: Certificate) -> None:
    context = ssl.create_default_context(cafile=str(certificate.file))
    with (
        serving(gated(app), **certificate.options) as url,
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
    with serving(gated(app), **certificate.options) as url:
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
