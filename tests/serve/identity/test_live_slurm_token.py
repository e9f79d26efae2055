"""A real slurmrestd decides which Slurm tokens hold."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import jwt
import pytest

from tests.serve.identity.kit import application, ask, gated, who
from tests.serve.identity.test_slurm_token import headers
from tests.services.slurm import SlurmLab
from tocsin.app.app import App
from tocsin.app.private_data import PrivateData
from tocsin.app.slurm_check import SlurmCheck, diag_path
from tocsin.core.errors import ClusterError
from tocsin.serve.identity import asgi


@pytest.fixture(params=["tcp", "socket"])
def app(request: pytest.FixtureRequest, slurm: SlurmLab, tmp_path: Path) -> Iterator[App]:
    url = slurm.rest_url if request.param == "tcp" else f"unix:{slurm.rest_socket}"
    lines = [f"[cluster.{slurm.cluster}]", f"rest_url = '{url}'", "rest_user = 'root'"]
    lines += [f"rest_token_file = '{slurm.token_file}'"]
    with application(tmp_path, "operators = 'bob'\n" + "\n".join(lines)) as opened:
        yield opened


@pytest.fixture
def gate(app: App) -> asgi.App:
    return gated(app)


@pytest.fixture
def alice(slurm: SlurmLab, tmp_path: Path) -> str:
    return slurm.new_token("alice", tmp_path / "alice.jwt", lifespan=600)


def test_users_are_who_their_tokens_say(slurm: SlurmLab, gate: asgi.App, alice: str, tmp_path: Path) -> None:
    bob = slurm.new_token("bob", tmp_path / "bob.jwt")
    assert who(ask(gate, headers=headers("alice", alice))) == ("alice", "USER", "slurm token")
    assert who(ask(gate, headers=headers("bob", bob))) == ("bob", "OPERATOR", "slurm token")


def test_altered_tokens_are_refused_by_slurm(gate: asgi.App, alice: str) -> None:
    head, claims, signature = alice.split(".")
    read = json.loads(base64.urlsafe_b64decode(claims + "=="))

    def claiming(**more: object) -> str:
        text = json.dumps(read | more).encode()
        return ".".join([head, base64.urlsafe_b64encode(text).rstrip(b"=").decode(), signature])

    foreign = jwt.encode(read | {"sun": "root"}, "another key of thirty-two bytes!", algorithm="HS256")
    for name, token in (
        ("root", claiming(sun="root")),
        ("alice", claiming(exp=read["exp"] + 9999)),
        ("alice", alice[:-4] + ("AAAA" if not alice.endswith("AAAA") else "BBBB")),
        ("root", foreign),
        ("bob", alice),
        ("root", alice),
    ):
        reply = ask(gate, headers=headers(name, token))
        assert reply.status_code == 401, (name, reply.text)
        assert token not in reply.text


def test_an_expired_token_is_refused_by_slurm_itself(slurm: SlurmLab, app: App, tmp_path: Path) -> None:
    from tests.services.daemons import await_true
    from tocsin.app.slurm_check import slurm_check

    check = slurm_check(app)
    assert check is not None
    short = slurm.new_token("alice", tmp_path / "short.jwt", lifespan=2)
    await_true("the token still holds", lambda: not check("alice", short), 30, every=0.2)


@pytest.mark.parametrize("app", ["tcp"], indirect=True)
def test_a_slurmrestd_that_trusts_its_socket_vouches_for_nobody(
    slurm: SlurmLab, app: App, alice: str
) -> None:
    """rest_auth/local accepts any token of the user who runs it, which must not count."""
    forged = jwt.encode(
        {"sun": "alice", "exp": 9_999_999_999}, "another key of thirty-two bytes!", algorithm="HS256"
    )
    diagnostics = diag_path(app.settings.cluster[slurm.cluster])
    with slurm.local_rest("alice") as path:
        for token in (forged, alice, "a.b.c"):
            check = SlurmCheck(f"unix:{path}", lambda: diagnostics)
            with pytest.raises(ClusterError, match="cannot authenticate users"):
                check("alice", token)
            assert not check("root", token)


@pytest.mark.parametrize("app", ["tcp"], indirect=True)
def test_while_slurmrestd_is_down_nobody_gets_in(slurm: SlurmLab, gate: asgi.App, alice: str) -> None:
    slurm.stop_rest()
    try:
        assert ask(gate, headers=headers("alice", alice)).status_code == 503
    finally:
        slurm.start_rest()
    assert ask(gate, headers=headers("alice", alice)).status_code == 200


def test_what_slurm_hides_is_read_from_its_configuration(
    slurm: SlurmLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in slurm.env.items():
        monkeypatch.setenv(name, value)
    assert PrivateData()() == frozenset()


def test_private_data_is_hidden_while_slurm_cannot_be_asked() -> None:
    answers: list[bytes | ClusterError] = [
        ClusterError("down"),
        b"PrivateData             = jobs,nodes\n",
        ClusterError("down"),
    ]
    now = 0.0

    def run(command: list[str], timeout: float, env: dict[str, str]) -> bytes:
        answer = answers.pop(0)
        if isinstance(answer, ClusterError):
            raise answer
        return answer

    private = PrivateData(run=run, now=lambda: now)
    assert private() == {"nodes", "usage"}
    now = 301.0
    assert private() == {"jobs", "nodes"}
    now = 602.0
    assert private() == {"jobs", "nodes"}, "the last answer holds"


def test_what_one_of_several_clusters_hides_is_hidden() -> None:
    hides = {"/big/slurm.conf": b"PrivateData = usage\n", "/small/slurm.conf": b"PrivateData = none\n"}

    def run(command: list[str], timeout: float, env: dict[str, str]) -> bytes:
        return hides[env["SLURM_CONF"]]

    assert PrivateData(list(hides), run=run)() == {"usage"}
