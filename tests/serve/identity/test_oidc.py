"""Login by an identity provider: the code flow against a stand-in issuer that runs in its own process."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from tests.serve.identity.conftest import MakeApp
from tests.serve.identity.kit import FAR, URL, ask, gated, who
from tocsin.core.errors import SettingsError
from tocsin.serve.identity import asgi
from tocsin.serve.identity.oidc import Oidc

ISSUER = Path(__file__).parent / "issuer.py"


@pytest.fixture(scope="module")
def running() -> Iterator[str]:
    with subprocess.Popen([sys.executable, str(ISSUER)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


@pytest.fixture
def issuer(running: str) -> str:
    httpx2.get(f"{running}/fault")
    return running


@pytest.fixture
def gate(make_app: MakeApp, issuer: str, tmp_path: Path) -> asgi.App:
    secret = tmp_path / "secret"
    secret.write_text("hush")
    secret.chmod(0o600)
    return gated(
        make_app(
            f"oidc_issuer = '{issuer}'\noidc_client_id = 'tocsin'\noidc_secret_file = '{secret}'\n"
            "operators = 'ann'"
        )
    )


def begin(gate: asgi.App) -> tuple[httpx2.Response, dict[str, str]]:
    """To the issuer and back: its redirect, and the cookie that this browser keeps."""
    reply = ask(gate, "/login/oidc")
    assert reply.status_code == 303, reply.text
    back = httpx2.get(reply.headers["location"])
    assert back.status_code == 302
    return back, {"Cookie": reply.headers["set-cookie"].partition(";")[0]}


def finish(gate: asgi.App, back: httpx2.Response, cookie: dict[str, str], **more: object) -> httpx2.Response:
    url = urlsplit(back.headers["location"])
    return ask(gate, f"{url.path}?{url.query}", headers=cookie, **more)  # type: ignore[arg-type]


def test_a_browser_becomes_the_user_whom_the_issuer_names_with_the_role_of_the_settings(
    gate: asgi.App,
) -> None:
    back, cookie = begin(gate)
    reply = finish(gate, back, cookie)
    assert reply.status_code == 200, reply.text
    assert "SameSite=Strict" in reply.headers["set-cookie"]
    session = {"Cookie": reply.headers["set-cookie"].partition(";")[0]}
    assert who(ask(gate, headers=session)) == ("ann", "OPERATOR", "session")


def test_the_issuer_is_asked_with_pkce_state_and_nonce(gate: asgi.App, issuer: str) -> None:
    reply = ask(gate, "/login/oidc")
    address = urlsplit(reply.headers["location"])
    query = {name: values[0] for name, values in parse_qs(address.query).items()}
    assert f"{address.scheme}://{address.netloc}" == issuer
    assert query["code_challenge_method"] == "S256"
    assert query["redirect_uri"] == f"{URL}/login/oidc/callback"
    cookie = reply.headers["set-cookie"]
    assert "HttpOnly; SameSite=Lax" in cookie
    state, nonce, verifier = cookie.partition(";")[0].partition("=")[2].split(".")
    assert (query["state"], query["nonce"]) == (state, nonce)
    assert verifier not in reply.headers["location"]


@pytest.mark.parametrize(
    "fault",
    [
        "issuer",
        "audience",
        "audience-of-two",
        "expired",
        "no-expiry",
        "nonce",
        "signature",
        "unknown-key",
        "unsigned",
        "public-key-as-secret",
        "user",
        "no-user",
    ],
)
def test_a_token_that_is_wrong_in_one_way_logs_nobody_in(gate: asgi.App, issuer: str, fault: str) -> None:
    httpx2.get(f"{issuer}/fault?{fault}")
    back, cookie = begin(gate)
    reply = finish(gate, back, cookie)
    assert reply.status_code == 401
    assert "tocsin_session" not in reply.headers.get("set-cookie", "")


@pytest.mark.parametrize("fault", ["keys-elsewhere", "configuration-of-another"])
def test_nothing_is_fetched_outside_the_issuer(gate: asgi.App, issuer: str, fault: str) -> None:
    httpx2.get(f"{issuer}/fault?{fault}")
    reply = ask(gate, "/login/oidc")
    if reply.status_code == 303:
        back = httpx2.get(reply.headers["location"])
        reply = finish(gate, back, {"Cookie": reply.headers["set-cookie"].partition(";")[0]})
    assert reply.status_code == 401


def test_a_code_is_worth_nothing_in_another_browser_or_twice(gate: asgi.App) -> None:
    back, cookie = begin(gate)
    _, other = begin(gate)
    assert finish(gate, back, {}).status_code == 401
    assert finish(gate, back, other).status_code == 401
    assert finish(gate, back, cookie).status_code == 200
    assert finish(gate, back, cookie).status_code == 401


def test_a_code_over_a_connection_that_others_can_read_is_refused(gate: asgi.App) -> None:
    back, cookie = begin(gate)
    assert finish(gate, back, cookie | {"Host": "127.0.0.1"}, peer=FAR).status_code == 401


def test_an_issuer_that_is_down_is_an_answer_and_no_login(make_app: MakeApp) -> None:
    gate = gated(make_app("oidc_issuer = 'http://127.0.0.1:1'\noidc_client_id = 'tocsin'"))
    reply = ask(gate, "/login/oidc")
    assert reply.status_code == 401
    assert "does not answer" in reply.text


def test_without_an_issuer_there_is_no_such_login(make_app: MakeApp) -> None:
    assert ask(gated(make_app()), "/login/oidc").status_code == 401


@pytest.mark.parametrize(
    ("issuer", "client"), [("http://id.site", "tocsin"), ("ftp://id.site", "x"), ("https://id.site", "")]
)
def test_an_issuer_without_tls_or_a_client_without_a_name_is_refused(issuer: str, client: str) -> None:
    with pytest.raises(SettingsError, match="oidc"):
        Oidc(issuer, client, redirect=URL)
