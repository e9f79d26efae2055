"""No secret is in a log, an answer or an error, whatever goes wrong."""

import logging
import time
from pathlib import Path

import httpx2
import jwt
import pytest

from tests.serve.identity.conftest import MakeApp, new_token
from tests.serve.identity.kit import gated, serving
from tests.serve.identity.test_login import link_code
from tocsin.serve.identity import asgi


async def broken(scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
    if scope["type"] == "http":
        raise RuntimeError("a defect in the application")


def test_refusals_and_crashes_log_and_answer_no_secret(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    app = make_app("[cluster.lab]\nrest_url = 'http://127.0.0.1:1'\nrest_token_file = '/nonexistent'")
    api, relay = new_token(app), new_token(app, "login1", relay=True)
    slurm = jwt.encode({"sun": "ann", "exp": int(time.time()) + 600}, "k" * 32, algorithm="HS256")
    code = link_code(gated(app))
    session = "tocsin_session_" + "s" * 43
    requests = [
        {"headers": {"Authorization": f"Bearer {api}"}},
        {"headers": {"Authorization": f"Bearer {api}x"}},
        {"headers": {"Authorization": f"Basic {api}"}},
        {"headers": {"Authorization": f"Bearer {relay}", "X-Tocsin-Relay-User": "ann"}},
        {"headers": {"X-SLURM-USER-NAME": "ann", "X-SLURM-USER-TOKEN": slurm}},
        {"headers": {"X-SLURM-USER-NAME": "bob", "X-SLURM-USER-TOKEN": slurm}},
        {"headers": {"Cookie": f"tocsin_session={session}"}},
        {"url": "/login", "params": {"code": code + "x"}, "method": "POST"},
        {
            "url": "/login",
            "data": {"code": code + "x"},
            "method": "POST",
            "headers": {"Sec-Fetch-Site": "none"},
        },
        {"url": "/login/oidc/callback", "params": {"code": code, "state": code}},
    ]
    answers = ""
    with (
        caplog.at_level(logging.DEBUG),
        serving(gated(app, inner=broken), lifespan="off") as url,
        httpx2.Client(base_url=url) as client,
    ):
        for request in requests:
            reply = client.request(**{"method": "GET", "url": "/api/v1/me", **request})  # type: ignore[arg-type]
            answers += f"{reply.status_code} {reply.headers} {reply.text}\n"
    printed = capfd.readouterr()
    log = "\n".join(
        record.getMessage() + (record.exc_text or "")
        for record in caplog.records
        if not record.name.startswith(("httpx2", "httpcore2"))  # the client of this test
    )
    assert "a defect in the application" in log, "the crash itself is logged"
    for secret in (api, relay, slurm, session, code):
        for text in (answers, log, printed.out, printed.err):
            assert secret not in text


def test_a_secret_file_that_others_can_read_is_refused_before_the_relay_starts(tmp_path: Path) -> None:
    from tocsin.core.errors import SettingsError
    from tocsin.core.settings import ServiceSettings
    from tocsin.serve.identity.run_relay import run_relay

    file = tmp_path / "token"
    file.write_text("tocsin_relay_secret")
    file.chmod(0o644)
    with pytest.raises(SettingsError, match="chmod 600") as refusal:
        run_relay("https://x", str(file), str(tmp_path / "s"), ca_file=None, settings=ServiceSettings())
    assert "tocsin_relay_secret" not in str(refusal.value)
