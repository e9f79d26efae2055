"""A trusted proxy names the user; anybody else who tries is refused."""

import os
import pwd

import pytest

from tests.serve.identity.conftest import MakeApp
from tests.serve.identity.kit import FAR, FAR_TLS, LOCAL, ask, gated, who
from tocsin.core.errors import SettingsError
from tocsin.serve.identity.peer import Peer

ME = pwd.getpwuid(os.geteuid()).pw_name
SETTINGS = f"proxy_header = 'X-Remote-User'\nproxy_from = 'unix:{ME}, 192.0.2.0/24'\noperators = 'olga'"
ANN = {"X-Remote-User": "ann", "Host": "127.0.0.1"}


def test_the_proxy_names_the_user_and_the_settings_the_role(make_app: MakeApp) -> None:
    gate = gated(make_app(SETTINGS))
    on_socket = Peer(uid=os.geteuid())
    assert who(ask(gate, peer=on_socket, headers=ANN)) == ("ann", "USER", "proxy")
    assert who(ask(gate, peer=FAR, headers=ANN | {"X-Remote-User": "olga"})) == ("olga", "OPERATOR", "proxy")


@pytest.mark.parametrize("peer", [LOCAL, Peer(address="198.51.100.1"), Peer(uid=65534)])
def test_the_header_of_anybody_else_is_refused_and_not_ignored(make_app: MakeApp, peer: Peer) -> None:
    reply = ask(gated(make_app(SETTINGS)), peer=peer, headers=ANN)
    assert reply.status_code == 401
    assert "service.proxy_from" in reply.json()["detail"]


def test_a_proxy_that_names_nobody_is_not_taken_for_its_own_user(make_app: MakeApp) -> None:
    gate = gated(make_app(SETTINGS))
    assert ask(gate, peer=Peer(uid=os.geteuid())).status_code == 401
    assert ask(gate, peer=Peer(uid=os.geteuid()), headers={"X-Remote-User": ""}).status_code == 401
    assert ask(gate, peer=FAR_TLS, headers={"Host": "127.0.0.1"}).status_code == 401


@pytest.mark.parametrize("name", ["a b", "ann,bob", "x' OR 1=1 --", "../root", "a" * 65, "-rf"])
def test_a_name_that_is_none_is_refused(make_app: MakeApp, name: str) -> None:
    reply = ask(gated(make_app(SETTINGS)), peer=FAR, headers=ANN | {"X-Remote-User": name})
    assert reply.status_code == 401
    assert name not in reply.text


def test_two_names_are_refused(make_app: MakeApp) -> None:
    headers = [*ANN.items(), ("x-remote-user", "root")]
    assert ask(gated(make_app(SETTINGS)), peer=FAR, headers=headers).status_code == 401


@pytest.mark.parametrize("origin", ["127.0.0.1", "::1", "0.0.0.0/0", "nonsense", ""])
def test_a_setting_that_would_trust_everybody_is_refused(make_app: MakeApp, origin: str) -> None:
    with pytest.raises(SettingsError, match="unix:"):
        gated(make_app(f"proxy_header = 'X-Remote-User'\nproxy_from = '{origin}'"))
