"""Browsers: a one-time link becomes a session, which no other site can use."""

import json
import os
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from tests.kits.command_line import Tocsin
from tests.serve.identity.conftest import MakeApp, new_token
from tests.serve.identity.kit import ANN, FAR, LOCAL, URL, ask, gated, serving, who
from tests.serve.identity.test_tokens import bearer
from tocsin.app.app import App
from tocsin.app.credentials import Credentials
from tocsin.serve.identity import asgi
from tocsin.serve.identity.peer import Peer
from tocsin.serve.identity.sessions import Sessions
from tocsin.store import audit

ME = Peer(uid=os.geteuid())
SAME = {"Origin": URL}


def link_code(gate: asgi.App) -> str:
    reply = ask(gate, "/api/v1/login-links", method="POST", peer=ME)
    assert reply.status_code == 201, reply.text
    url = urlsplit(reply.json()["url"])
    assert (url.netloc, url.path, reply.json()["valid_seconds"]) == ("127.0.0.1:8642", "/login", 300)
    return parse_qs(url.query)["code"][0]


def enter(gate: asgi.App, code: str, **more: object) -> httpx2.Response:
    headers = {**SAME, **more.pop("headers", {})}  # type: ignore[dict-item]
    return ask(gate, "/login", method="POST", headers=headers, data={"code": code}, **more)  # type: ignore[arg-type]


def session(gate: asgi.App) -> dict[str, str]:
    reply = enter(gate, link_code(gate))
    return {"Cookie": reply.headers["set-cookie"].partition(";")[0]}


def test_a_link_becomes_a_session_of_the_user_who_asked_for_it(app: App) -> None:
    gate, code = gated(app), None
    code = link_code(gate)
    page = ask(gate, "/login", params={"code": code})
    assert page.status_code == 200
    assert code in page.text, "the form carries the code"
    reply = enter(gate, code)
    assert reply.status_code == 200
    cookie = {"Cookie": reply.headers["set-cookie"].partition(";")[0]}
    assert who(ask(gate, headers=cookie))[1:] == ("ADMIN", "session")


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(make_app: MakeApp) -> None:
    app = make_app("public_url = 'https://tocsin.site'\nsession_hours = 2")
    gate, sessions = gated(app), Sessions(Credentials(app), hours=2)
    plain = enter(gate, sessions.link(ANN)).headers["set-cookie"]
    assert re.fullmatch(r"tocsin_session=\S+; Path=/; Max-Age=7200; HttpOnly; SameSite=Strict", plain), (
        "on this host without TLS"
    )
    behind = {"Host": "tocsin.site", "Origin": "https://tocsin.site"}
    for reply in (
        enter(gate, sessions.link(ANN), headers=behind),
        enter(gate, sessions.link(ANN), peer=Peer(address="192.0.2.1", tls=True), headers=behind),
    ):
        secure = reply.headers["set-cookie"]
        assert re.fullmatch(
            r"__Host-tocsin=\S+; Path=/; Max-Age=7200; HttpOnly; SameSite=Strict; Secure", secure
        )


def test_a_visit_does_not_use_the_link_up_and_a_second_use_is_refused(app: App) -> None:
    gate = gated(app)
    code = link_code(gate)
    for _ in range(3):
        assert ask(gate, "/login", params={"code": code}).status_code == 200
    assert enter(gate, code).status_code == 200
    replay = enter(gate, code)
    assert replay.status_code == 401
    assert "set-cookie" not in replay.headers


def test_a_link_is_valid_for_five_minutes_and_a_session_for_its_hours(app: App) -> None:
    now = 1000.0
    sessions = Sessions(Credentials(app, now=lambda: now), hours=1)
    code, other = sessions.link(ANN), sessions.link(ANN)
    now = 1299.0
    user, secret = sessions.enter(code)
    assert user == "ann"
    now = 1300.0
    with pytest.raises(Exception, match="5 minutes"):
        sessions.enter(other)
    from tocsin.store.tokens import TokenKind, find

    assert find(app.store, secret, {TokenKind.SESSION}, at=1299 + 3599)
    assert find(app.store, secret, {TokenKind.SESSION}, at=1299 + 3600) is None


@pytest.mark.parametrize("code", ["", "x", "' OR 1=1 --", "tocsin_login_" + "A" * 43])
def test_a_made_up_code_is_refused(app: App, code: str) -> None:
    reply = enter(gated(app), code)
    assert reply.status_code == 401
    assert "set-cookie" not in reply.headers


def test_a_session_that_was_planted_before_the_login_is_worth_nothing_after_it(app: App) -> None:
    gate = gated(app)
    planted = {"Cookie": "tocsin_session=tocsin_session_planted"}
    reply = enter(gate, link_code(gate), headers=planted)
    assert "planted" not in reply.headers["set-cookie"]
    assert ask(gate, headers=planted).status_code == 401

    old = session(gate)
    assert enter(gate, link_code(gate), headers=old).status_code == 200
    assert ask(gate, headers=old).status_code == 401, "the browser's former session ends with a new login"


def test_two_session_cookies_are_refused(app: App) -> None:
    gate = gated(app)
    cookie = session(gate)["Cookie"]
    reply = ask(gate, headers={"Cookie": f"tocsin_session=tocsin_session_tossed; {cookie}"})
    assert reply.status_code == 401


def test_a_session_over_a_connection_that_others_can_read_is_refused(app: App) -> None:
    gate = gated(app)
    assert ask(gate, peer=FAR, headers=session(gate) | {"Host": "127.0.0.1"}).status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:8642.evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Origin": URL}, 403),
        ({"Origin": URL}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "same-origin", "Origin": URL}, 200),
    ],
)
def test_a_page_of_another_site_changes_nothing(app: App, headers: dict[str, str], status: int) -> None:
    gate = gated(app)
    cookie = session(gate)
    reply = ask(gate, "/api/v1/cases/1/feedback", method="POST", headers=cookie | headers)
    assert reply.status_code == status
    assert ask(gate, "/api/v1/cases", headers=cookie).status_code == 200, "reading needs no Origin"


def test_a_page_of_another_site_changes_nothing_in_the_demo(app: App) -> None:
    demo = gated(app, demo=True)
    evil = {"Origin": "https://evil.example"}
    assert ask(demo, "/api/v1/cases/1/feedback", method="POST", headers=evil).status_code == 403
    assert ask(demo, "/api/v1/cases/1/feedback", method="POST", headers=SAME).status_code == 200


def test_a_page_of_another_site_logs_nobody_in_as_somebody_else(app: App) -> None:
    gate = gated(app)
    reply = enter(gate, link_code(gate), headers={"Origin": "https://evil.example"})
    assert reply.status_code == 403
    assert "set-cookie" not in reply.headers


def test_a_program_with_a_token_needs_no_origin(app: App) -> None:
    token = bearer(new_token(app, role="operator"))
    assert ask(gated(app), "/api/v1/cases/1/feedback", method="POST", headers=token).status_code == 200


def test_a_token_or_a_session_gets_no_login_link(app: App) -> None:
    gate = gated(app)
    token = bearer(new_token(app, role="admin"))
    assert ask(gate, "/api/v1/login-links", method="POST", headers=token).status_code == 403
    cookie = session(gate) | SAME
    assert ask(gate, "/api/v1/login-links", method="POST", headers=cookie).status_code == 403


def test_after_a_logout_the_cookie_is_worth_nothing(app: App) -> None:
    gate = gated(app)
    cookie = session(gate)
    assert ask(gate, "/logout", method="POST", headers=cookie).status_code == 403, "not from another site"
    reply = ask(gate, "/logout", method="POST", headers=cookie | SAME)
    assert "Max-Age=0" in reply.headers["set-cookie"]
    assert ask(gate, headers=cookie).status_code == 401


def test_logins_are_in_the_audit_trail(app: App) -> None:
    session(gated(app))
    [entry] = audit.read(app.store)
    assert (entry.what, entry.detail["label"]) == ("login", "socket")


def test_the_login_page_runs_no_script_of_a_code(app: App) -> None:
    reply = ask(gated(app), "/login", params={"code": '"><script>alert(1)</script>'})
    assert "<script>" not in reply.text


def test_the_command_prints_a_link_that_works_once(
    tocsin: Tocsin, tmp_path: Path, make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app()
    path = tmp_path / "service.sock"
    monkeypatch.setenv("TOCSIN_SERVICE__SOCKET", str(path))
    none = tocsin("login")
    assert none.code == 1
    assert "is tocsin serve or tocsin relay running" in none.err
    gate = gated(app)
    with serving(gate, path):
        printed = tocsin("login")
        again = json.loads(tocsin("login", "--json").out)
    assert printed.code == 0, printed.err
    url = printed.out.strip()
    assert url.startswith(f"{URL}/login?code=")
    assert again["url"] != url
    code = parse_qs(urlsplit(url).query)["code"][0]
    assert [enter(gate, code, peer=LOCAL).status_code for _ in range(2)] == [200, 401]


def test_the_command_finds_the_service_where_other_commands_find_it(
    tocsin: Tocsin, tmp_path: Path, make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user without a home named for tocsin finds the system's socket, or the one that TOCSIN_SERVICE names."""
    path = tmp_path / "system.sock"
    with serving(gated(make_app()), path):
        monkeypatch.setenv("TOCSIN_SERVICE", f"unix:{path}")
        named = tocsin("login")
        monkeypatch.delenv("TOCSIN_SERVICE")
        monkeypatch.delenv("TOCSIN_HOME")
        monkeypatch.setattr("tocsin.app.service_address.SYSTEM_SOCKET", path)
        found = tocsin("login")
    assert named.out.startswith(f"{URL}/login?code="), named.err
    assert found.out.startswith(f"{URL}/login?code="), found.err


def test_the_command_says_where_it_looked_and_that_a_url_is_not_enough(
    tocsin: Tocsin, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOCSIN_SERVICE", "https://tocsin.site")
    none = tocsin("login", "--socket", str(tmp_path / "none.sock"))
    assert none.code == 1
    assert "none.sock; is tocsin serve" in none.err
    none = tocsin("login")
    assert none.code == 1
    assert "run/tocsin.sock" in none.err
    assert "https://tocsin.site" in none.err
