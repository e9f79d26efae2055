"""`tocsin serve` with a certificate: its port speaks TLS and its unix socket does not."""

import os
import re
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import jwt
import pytest

from tests.conftest import unavailable
from tests.kits.certificates import Certificate, self_signed
from tests.kits.service import Process
from tests.serve.identity.conftest import new_token
from tocsin.app.app import App
from tocsin.core.errors import SettingsError
from tocsin.serve.tls import tls_context

IN_THE_CLEAR = "over a connection that others can read"


def address_of_this_host() -> str:
    """One that is not its loopback; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            unavailable("this host has no address but its loopback")
        return str(probe.getsockname()[0])


@pytest.fixture(scope="module")
def address() -> str:
    return address_of_this_host()


@pytest.fixture(scope="module")
def certificate(address: str, tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return self_signed(tmp_path_factory.mktemp("tls"), "127.0.0.1", address)


def listening(home: Path, address: str, **settings: str) -> Process:
    """A service on an address that other hosts reach, which they know by that address."""
    given = {"listen": f"{address}:0", "public_url": f"https://{address}", **settings}
    return Process(
        home, "--no-watch", environ={f"TOCSIN_SERVICE__{name.upper()}": given[name] for name in given}
    ).ready()


def url_of(process: Process) -> str:
    found = re.search(r"https?://[\w.]+:\d+", process.text)
    assert found, process.text
    return found[0]


def slurm_token() -> dict[str, str]:
    claims = {"sun": "ann", "exp": int(time.time()) + 600}
    token = jwt.encode(claims, "a key of at least thirty-two bytes", algorithm="HS256")
    return {"X-SLURM-USER-NAME": "ann", "X-SLURM-USER-TOKEN": token}


@pytest.fixture(scope="module")
def secure(
    address: str, certificate: Certificate, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Process]:
    files = {"tls_certificate_file": str(certificate.file), "tls_key_file": str(certificate.key)}
    with listening(tmp_path_factory.mktemp("secure") / "home", address, **files) as process:
        yield process


def test_secrets_are_accepted_from_other_hosts(secure: Process, certificate: Certificate) -> None:
    with App(folder=str(secure.home), environ=dict(os.environ)) as app:
        token = new_token(app)
    context = ssl.create_default_context(cafile=str(certificate.file))
    with httpx2.Client(base_url=url_of(secure), verify=context) as client:
        reply = client.get("/api/v1/me", headers={"Authorization": f"Bearer {token}"})
        assert reply.status_code == 200, reply.text
        assert reply.headers["strict-transport-security"]
        by_slurm = client.get("/api/v1/me", headers=slurm_token())
    assert "no cluster has a rest_url" in by_slurm.json()["detail"], "the connection was not the reason"
    assert secure.get("/api/v1/me")["role"] == "admin", "the unix socket knows its owner as before"


def test_secrets_are_refused_in_the_clear(address: str, tmp_path: Path) -> None:
    with listening(tmp_path / "home", address) as process:
        reply = httpx2.get(f"{url_of(process)}/api/v1/me", headers=slurm_token())
    assert reply.status_code == 401
    assert IN_THE_CLEAR in reply.json()["detail"]


def test_a_client_without_tls_gets_no_answer(secure: Process) -> None:
    with pytest.raises(httpx2.HTTPError):
        httpx2.get(url_of(secure).replace("https", "http") + "/healthz")


def test_a_client_that_does_not_trust_the_certificate_sends_nothing(secure: Process) -> None:
    with pytest.raises(httpx2.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        httpx2.get(f"{url_of(secure)}/healthz")


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"tls_certificate_file": "cert.pem"}, "service.tls_key_file is not; TLS needs both"),
        ({"tls_key_file": "key.pem"}, "service.tls_certificate_file is not; TLS needs both"),
        ({"tls_certificate_file": "cert.pem", "tls_key_file": "open.pem"}, "world-readable"),
        ({"tls_certificate_file": "key.pem", "tls_key_file": "key.pem"}, "both must be PEM files"),
        ({"tls_certificate_file": "cert.pem", "tls_key_file": "other.pem"}, "both must be PEM files"),
        ({"tls_certificate_file": "none.pem", "tls_key_file": "key.pem"}, "No such file"),
    ],
)
def test_files_that_cannot_be_used_are_named(tmp_path: Path, files: dict[str, str], reason: str) -> None:
    self_signed(tmp_path, "127.0.0.1")
    (tmp_path / "open.pem").write_bytes((tmp_path / "key.pem").read_bytes())
    (tmp_path / "open.pem").chmod(0o644)
    (tmp_path / "more").mkdir()
    self_signed(tmp_path / "more", "127.0.0.1").key.rename(tmp_path / "other.pem")
    environ = {f"TOCSIN_SERVICE__{name.upper()}": str(tmp_path / file) for name, file in files.items()}
    with (
        App(folder=str(tmp_path / "home"), environ=environ) as app,
        pytest.raises(SettingsError, match=reason),
    ):
        tls_context(app)
