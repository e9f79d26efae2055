"""A user's Slurm token: what is refused before Slurm is asked, what Slurm's answer must be, and how long it holds."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import jwt
import pytest

from tests.serve.identity.kit import FAR, FAR_TLS, LOCAL, ask, echo, who
from tocsin.app.roles import RoleLists
from tocsin.app.slurm_check import SlurmCheck
from tocsin.core.errors import ClusterError
from tocsin.core.settings import ServiceSettings
from tocsin.serve.identity.gate import Gate
from tocsin.serve.identity.identification import Identification
from tocsin.serve.identity.peer import Peer
from tocsin.serve.identity.slurm_token import SlurmToken

KEY = "k" * 32
NOW = 1_800_000_000


def token(user: str = "alice", *, lives: int = 600, **claims: object) -> str:
    return jwt.encode({"sun": user, "iat": NOW, "exp": NOW + lives, **claims}, KEY, algorithm="HS256")


def headers(name: str, text: str) -> dict[str, str]:
    return {"X-SLURM-USER-NAME": name, "X-SLURM-USER-TOKEN": text, "Host": "127.0.0.1"}


class Slurm:
    """Stands in for slurmrestd: accepts what was signed with the key, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked, self.now = 0, float(NOW)
        self.down = False

    def __call__(self, user: str, token: str) -> bool:
        self.asked += 1
        if self.down:
            raise ClusterError("slurmrestd does not answer")
        try:
            jwt.decode(token, KEY, algorithms=["HS256"], options={"verify_exp": False, "verify_iat": False})
        except jwt.InvalidTokenError:
            return False
        return True

    def gate(self) -> Gate:
        roles = RoleLists(ServiceSettings(operators="olga"))
        way = SlurmToken(self, roles, now=lambda: self.now, clock=lambda: self.now)
        return Gate(echo, Identification([way], []))


@pytest.fixture
def stand_in() -> Slurm:
    return Slurm()


def test_a_token_that_slurm_accepts_is_its_user(stand_in: Slurm) -> None:
    gate = stand_in.gate()
    assert who(ask(gate, headers=headers("alice", token()))) == ("alice", "USER", "slurm token")
    assert who(ask(gate, headers=headers("olga", token("olga")))) == ("olga", "OPERATOR", "slurm token")


def test_slurm_is_asked_once_a_minute_and_no_longer_than_the_token_lives(stand_in: Slurm) -> None:
    gate, good, short = stand_in.gate(), headers("alice", token()), headers("alice", token(lives=100))
    for _ in range(3):
        ask(gate, headers=good)
    assert stand_in.asked == 1
    stand_in.now += 59
    ask(gate, headers=good)
    assert stand_in.asked == 1
    stand_in.now += 1
    ask(gate, headers=good)
    assert stand_in.asked == 2
    assert ask(gate, headers=short).status_code == 200
    stand_in.now += 40
    assert ask(gate, headers=short).status_code == 401


def test_the_name_must_be_the_one_in_the_token(stand_in: Slurm) -> None:
    reply = ask(stand_in.gate(), headers=headers("root", token("alice")))
    assert (reply.status_code, stand_in.asked) == (401, 0)
    assert "belongs to another user than root" in reply.json()["detail"]


def test_a_token_that_holds_for_one_name_is_not_remembered_for_another(stand_in: Slurm) -> None:
    gate, text = stand_in.gate(), token()
    assert ask(gate, headers=headers("alice", text)).status_code == 200
    assert ask(gate, headers=headers("bob", text)).status_code == 401


def test_altered_expired_unsigned_and_foreign_tokens_are_refused(stand_in: Slurm) -> None:
    good = token()
    head, claims, signature = good.split(".")
    of_root = token("root").split(".")[1]
    foreign = jwt.encode(
        {"sun": "root", "exp": NOW + 60}, "another key of thirty-two bytes!", algorithm="HS256"
    )
    unsigned = jwt.encode({"sun": "root", "exp": NOW + 60}, None, algorithm="none")
    gate = stand_in.gate()
    for name, text in (
        ("root", f"{head}.{of_root}.{signature}"),
        ("alice", good[:-2]),
        ("alice", f"{head}.{claims}."),
        ("alice", token(lives=-1)),
        ("alice", jwt.encode({"sun": "alice"}, KEY, algorithm="HS256")),
        ("root", foreign),
        ("root", unsigned),
        ("alice", "no.token.here"),
        ("alice", "no-token-at-all"),
        ("alice", "." * 20_000),
        ("alice", jwt.encode({"sun": ["alice"], "exp": NOW + 9}, KEY, algorithm="HS256")),
    ):
        reply = ask(gate, headers=headers(name, text))
        assert reply.status_code == 401, text[:40]
        assert text not in reply.text


def test_half_a_credential_is_refused(stand_in: Slurm) -> None:
    for name in ("X-SLURM-USER-NAME", "X-SLURM-USER-TOKEN"):
        assert ask(stand_in.gate(), headers={name: "alice"}).status_code == 401


@pytest.mark.parametrize(("peer", "status"), [(LOCAL, 200), (FAR_TLS, 200), (Peer(uid=7), 200), (FAR, 401)])
def test_a_token_is_taken_on_this_host_or_over_tls_only(stand_in: Slurm, peer: Peer, status: int) -> None:
    assert ask(stand_in.gate(), peer=peer, headers=headers("alice", token())).status_code == status


def test_while_slurm_cannot_be_asked_nobody_new_gets_in(stand_in: Slurm) -> None:
    gate = stand_in.gate()
    assert ask(gate, headers=headers("alice", token())).status_code == 200
    stand_in.down = True
    assert ask(gate, headers=headers("alice", token())).status_code == 200, "remembered"
    assert ask(gate, headers=headers("bob", token("bob"))).status_code == 503
    stand_in.now += 60
    assert ask(gate, headers=headers("alice", token())).status_code == 503


def test_a_flood_of_tokens_does_not_reach_slurm(stand_in: Slurm) -> None:
    gate = stand_in.gate()
    answers = {
        ask(gate, headers=headers("alice", token(jti=str(number)))).status_code for number in range(130)
    }
    assert answers == {200, 503}
    assert stand_in.asked <= 100


def test_where_no_slurmrestd_is_configured_no_slurm_token_is_accepted() -> None:
    gate = Gate(echo, Identification([SlurmToken(None, RoleLists(ServiceSettings()), now=lambda: NOW)], []))
    assert ask(gate, headers=headers("alice", token())).status_code == 401


@contextmanager
def slurmrestd(reply: bytes, *, drip: float = 0.0) -> Iterator[tuple[str, list[bytes]]]:
    """A server that answers every request with these bytes, one each `drip` seconds if that is set."""
    listener = socket.create_server(("127.0.0.1", 0))
    over, asked = threading.Event(), list[bytes]()

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client:
                asked.append(client.recv(65_536))
                try:
                    for piece in [reply] if not drip else [bytes([byte]) for byte in reply]:
                        client.sendall(piece)
                        if drip and over.wait(drip):
                            return
                except OSError:
                    continue

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked
    finally:
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def http(status: str, body: object) -> bytes:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (
        status.encode(),
        len(text),
        text,
    )


GOOD = {"meta": {}, "errors": [], "statistics": {"parts_packed": 1}}


@pytest.mark.parametrize(
    ("reply", "accepted"),
    [
        (http("200 OK", GOOD), True),
        (http("200 OK", GOOD | {"errors": [{"error_number": 1007}]}), False),
        (http("200 OK", {"statistics": {"parts_packed": 1}}), False),
        (http("200 OK", {"errors": []}), False),
        (http("200 OK", {"errors": None, "statistics": {"x": 1}}), False),
        (http("200 OK", b"[]"), False),
        (http("200 OK", b"garbage"), False),
        (http("200 OK", b""), False),
        (http("401 Unauthorized", GOOD), False),
        (http("500 Internal Server Error", GOOD), False),
        (http("511 Network Authentication Required", GOOD), False),
        (http("302 Found", GOOD), False),
    ],
)
def test_only_a_good_diag_counts(reply: bytes, accepted: bool) -> None:
    with slurmrestd(reply) as (url, asked):
        assert SlurmCheck(url, lambda: "/slurm/v0.0.38/diag")("alice", "a.b.c") is accepted
    assert asked[0].startswith(b"GET /slurm/v0.0.38/diag HTTP/1.1\r\n")
    assert b"a.b.c" in asked[0]
    assert len(asked) == 1, "a refusal is not tried again"


def test_a_slurmrestd_that_drips_is_given_up_at_the_deadline() -> None:
    with (
        slurmrestd(http("200 OK", GOOD), drip=0.05) as (url, _),
        pytest.raises(ClusterError, match="does not answer"),
    ):
        SlurmCheck(url, lambda: "/diag", seconds=0.4)("alice", "a.b.c")


def test_no_slurmrestd_is_an_error_and_no_acceptance() -> None:
    with pytest.raises(ClusterError):
        SlurmCheck("http://127.0.0.1:1", lambda: "/diag", seconds=1)("alice", "a.b.c")


def test_a_slurmrestd_that_was_upgraded_says_nothing_about_tokens() -> None:
    """Neither that a token holds, nor that a forged one was refused: the path is found again."""
    paths = iter(["/slurm/v0.0.38/diag", "/slurm/v0.0.45/diag/"])
    with slurmrestd(http("404 Not Found", b"{}")) as (url, asked):
        check = SlurmCheck(url, lambda: next(paths))
        for _ in range(2):
            with pytest.raises(ClusterError, match="try again"):
                check("alice", "a.b.c")
    assert [line.split()[1] for line in asked] == [b"/slurm/v0.0.38/diag", b"/slurm/v0.0.45/diag/"]
