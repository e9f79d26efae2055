"""API tokens: created by an administrator, shown once, stored as a hash, scoped, and revoked at once."""

import json
import os
import stat
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.kits.command_line import Tocsin
from tests.serve.identity.conftest import new_token
from tests.serve.identity.kit import FAR, FAR_TLS, ask, gated, who
from tocsin.app import tokens as app_tokens
from tocsin.app.app import App
from tocsin.app.tokens import TokenRequest, create_token, revoke_token
from tocsin.core.errors import Forbidden, InputError
from tocsin.store import audit
from tocsin.store.tokens import Token, TokenKind, find, issue, use_up


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_a_token_is_its_user_with_its_role(app: App) -> None:
    token = new_token(app, "grafana", role="operator")
    assert who(ask(gated(app), headers=bearer(token))) == ("grafana", "OPERATOR", "api token")


def test_the_store_keeps_the_hash_and_never_the_secret(app: App) -> None:
    secret = new_token(app)
    with app.store.reading() as connection:
        rows = [
            str(row)
            for table in ("tokens", "audit")
            for row in connection.execute(sa.text(f"SELECT * FROM {table}"))
        ]
    assert rows
    assert not any(secret in row or secret.removeprefix("tocsin_api_") in row for row in rows)
    assert [entry.what for entry in audit.read(app.store)] == ["api token created"]


@pytest.mark.parametrize(
    "change", [lambda t: t[:-1], lambda t: t + "x", lambda t: t.swapcase(), lambda t: ""]
)
def test_an_altered_token_is_refused(app: App, change: object) -> None:
    token = new_token(app)
    reply = ask(gated(app), headers=bearer(change(token)))  # type: ignore[operator]
    assert reply.status_code == 401
    assert token not in reply.text


def test_an_expired_token_is_refused(app: App) -> None:
    token = Token(
        kind=TokenKind.API, label="x", user="x", role="user", created=1000, created_by="root", expires=2000
    )
    _, secret = issue(app.store, token)
    assert find(app.store, secret, {TokenKind.API}, at=1999)
    assert find(app.store, secret, {TokenKind.API}, at=2000) is None
    assert ask(gated(app), headers=bearer(secret)).status_code == 401


def test_a_revoked_token_is_refused_at_once(app: App) -> None:
    token, secret = create_token(app, TokenRequest(label="program"))
    gate = gated(app)
    assert ask(gate, headers=bearer(secret)).status_code == 200
    revoke_token(app, token.number)
    assert ask(gate, headers=bearer(secret)).status_code == 401


def test_a_token_is_refused_where_others_could_read_it(app: App) -> None:
    token = new_token(app)
    url = {"Host": "127.0.0.1"}
    assert ask(gated(app), peer=FAR, headers=bearer(token) | url).status_code == 401
    assert ask(gated(app), peer=FAR_TLS, headers=bearer(token) | url).status_code == 200


def test_a_read_only_token_may_check_a_script_but_changes_nothing(app: App) -> None:
    token = bearer(new_token(app, role="admin", read_only=True))
    gate = gated(app)
    assert ask(gate, "/api/v1/check", method="POST", headers=token).status_code == 200
    reply = ask(gate, "/api/v1/cases/1/feedback", method="POST", headers=token)
    assert reply.status_code == 403
    assert "read-only" in reply.json()["detail"]


def test_a_session_or_a_login_code_is_no_api_token(app: App) -> None:
    for kind in (TokenKind.SESSION, TokenKind.LOGIN):
        token = Token(
            kind=kind, label="x", user="x", role="admin", created=1, created_by="x", expires=9_000_000_000
        )
        assert ask(gated(app), headers=bearer(issue(app.store, token)[1])).status_code == 401


def test_of_two_who_use_a_one_time_token_one_gets_it(app: App) -> None:
    token = Token(
        kind=TokenKind.LOGIN, label="x", user="x", role="user", created=1, created_by="x", expires=300
    )
    _, secret = issue(app.store, token)
    assert use_up(app.store, secret, TokenKind.LOGIN, at=5, who="x")
    assert use_up(app.store, secret, TokenKind.LOGIN, at=5, who="x") is None


def test_nobody_makes_a_token_with_more_rights_than_their_own(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_tokens, "_administrator", lambda app: ("olga", "operator"))
    with pytest.raises(Forbidden, match="cannot create a token with the role admin"):
        create_token(app, TokenRequest(label="x", role="admin"))


def test_a_user_of_this_host_who_is_no_administrator_manages_no_tokens(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.home.prepare()
    monkeypatch.setattr(os, "geteuid", lambda: 12_345_678)
    monkeypatch.setattr("tocsin.store.home.Home._check", lambda home: None)  # which would refuse them before
    for attempt in (
        lambda: create_token(app, TokenRequest(label="x")),
        lambda: app_tokens.list_tokens(app),
        lambda: revoke_token(app, 1),
    ):
        with pytest.raises(Forbidden, match="managed by administrators"):
            attempt()


@pytest.mark.parametrize("label", ["a b", "x'; DROP TABLE tokens;--", "../x", "", "ä"])
def test_a_name_that_is_none_is_refused(app: App, label: str) -> None:
    with pytest.raises(InputError):
        create_token(app, TokenRequest(label=label))


def test_the_command_writes_a_new_private_file_and_never_prints_the_token(
    tocsin: Tocsin, tmp_path: Path
) -> None:
    file = tmp_path / "grafana.token"
    done = tocsin("tokens", "create", "grafana", "--role", "operator", "--read-only", "--out", file)
    assert done.code == 0, done.err
    secret = file.read_text().strip()
    assert secret.startswith("tocsin_api_")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert secret not in done.out + done.err

    again = tocsin("tokens", "create", "other", "--out", file)
    assert again.code == 1
    assert "name a new file" in again.err
    assert file.read_text().strip() == secret, "an existing file is left alone"

    listed = json.loads(tocsin("tokens", "list", "--json").out)
    assert [(t["name"], t["role"], t["read_only"]) for t in listed] == [("grafana", "operator", True)]
    assert secret not in json.dumps(listed)


def test_the_command_shows_a_token_once_and_revokes_it(tocsin: Tocsin) -> None:
    secret = tocsin("tokens", "create", "grafana").out.strip()
    assert secret.startswith("tocsin_api_")
    assert secret not in tocsin("tokens").out
    assert tocsin("tokens", "revoke", 1).code == 0
    assert tocsin("tokens", "revoke", 1).code == 1
    assert "grafana" not in tocsin("tokens", "list").out
    assert "grafana" in tocsin("tokens", "list", "--all").out


def test_a_relay_token_takes_neither_user_nor_read_only(tocsin: Tocsin) -> None:
    assert tocsin("tokens", "create", "login1", "--relay", "--user", "ann").code == 2
