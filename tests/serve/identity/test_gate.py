"""The gate: what has no credential, role, rate or place here does not get in."""

import pytest

from tests.serve.identity.conftest import MakeApp, new_token
from tests.serve.identity.kit import FAR, LOCAL, ask, echo, gated, who
from tests.serve.identity.test_tokens import bearer
from tocsin.app.app import App
from tocsin.serve.identity.peer import Peer
from tocsin.serve.identity.rates import Buckets

SQL = "x' OR '1'='1'; DROP TABLE tokens; --"


def test_nobody_gets_in_without_a_credential_and_the_answer_says_how(app: App) -> None:
    reply = ask(gated(app))
    assert reply.status_code == 401
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.headers["www-authenticate"].startswith("Bearer")
    assert "tocsin login" in reply.json()["detail"]


def test_a_browser_without_a_session_sees_a_page(app: App) -> None:
    reply = ask(gated(app), "/", headers={"Accept": "text/html,application/xhtml+xml"})
    assert (reply.status_code, reply.headers["content-type"]) == (401, "text/html; charset=utf-8")
    assert "tocsin login" in reply.text


def test_pages_of_the_login_have_the_style_of_the_others_and_fit_a_narrow_screen(app: App) -> None:
    html = {"Accept": "text/html"}
    for path in ("/", "/login?code=x", "/nothing"):
        page = ask(gated(app), path, headers=html).text
        assert '<link rel="stylesheet" href="/static/tocsin.css">' in page
        assert '<meta name="viewport" content="width=device-width' in page


def test_an_address_with_nothing_is_a_page_for_a_browser_and_a_problem_for_a_program(app: App) -> None:
    page = ask(gated(app), "/nothing", headers={"Accept": "text/html,*/*"})
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert '<a href="/">' in page.text
    document = ask(gated(app), "/nothing", headers={"Accept": "application/json"})
    assert (document.status_code, document.headers["content-type"]) == (404, "application/problem+json")


def test_health_needs_no_credential(app: App) -> None:
    assert ask(gated(app), "/healthz").json()["who"] is None


def test_a_server_that_does_not_report_its_peers_lets_nobody_in(app: App) -> None:
    import asyncio

    import httpx2

    async def send() -> httpx2.Response:
        transport = httpx2.ASGITransport(gated(app))  # type: ignore[arg-type]
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get("/api/v1/me", headers=bearer(new_token(app)))

    assert asyncio.run(send()).status_code == 401


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/jobs/../../etc/passwd",
        "/api/v1/jobs/..%2f..%2fetc%2fpasswd",
        "/api/v1/jobs/%2e%2e/%2e%2e/etc/passwd",
        "/api/v2/jobs",
        "/api/v1/jobs/7/",
        "//api/v1/me",
        "/api/v1/me%00",
        "/docs",
    ],
)
def test_what_is_not_in_the_table_is_not_served(app: App, path: str) -> None:
    assert ask(gated(app), path, headers=bearer(new_token(app, role="admin"))).status_code == 404


def test_another_method_is_refused_with_those_that_are_served(app: App) -> None:
    reply = ask(gated(app), "/api/v1/allow", method="PATCH", headers=bearer(new_token(app)))
    assert (reply.status_code, reply.headers["allow"]) == (405, "GET, POST")


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[", "evil.example:8642"])
def test_a_name_that_another_site_bound_to_our_address_is_refused(app: App, host: str) -> None:
    reply = ask(gated(app, demo=True), headers={"Host": host})
    assert reply.status_code == 403
    assert "Host" in reply.json()["detail"]


def test_a_program_with_a_token_may_use_any_name_of_the_host(app: App) -> None:
    assert ask(gated(app), headers=bearer(new_token(app)) | {"Host": "tocsin.site:8642"}).status_code == 200


def test_the_public_name_is_a_name_of_the_service(make_app: MakeApp) -> None:
    gate = gated(make_app("public_url = 'https://tocsin.site'"), demo=True)
    assert ask(gate, headers={"Host": "tocsin.site"}).status_code == 200
    assert ask(gate, headers={"Host": "localhost:9000"}).status_code == 200


def test_in_the_demo_everybody_on_this_host_is_an_operator_and_nobody_else(app: App) -> None:
    gate = gated(app, demo=True)
    assert who(ask(gate)) == ("demo", "OPERATOR", "demo")
    assert who(ask(gate, peer=Peer(address="::1")))[2] == "demo"
    assert who(ask(gate, peer=Peer(address="::ffff:127.0.0.1")))[2] == "demo"
    assert ask(gate, peer=FAR).status_code == 401
    assert ask(gated(app)).status_code == 401


@pytest.mark.parametrize(
    "header",
    ["X-Forwarded-For", "X-Real-IP", "Forwarded", "X-Forwarded-User", "X-Remote-User", "Remote-User"],
)
def test_a_forged_header_gives_nothing(app: App, header: str) -> None:
    assert ask(gated(app), headers={header: "root"}).status_code == 401
    assert ask(gated(app, demo=True), peer=FAR, headers={header: "127.0.0.1"}).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": f"Bearer {SQL}"},
        {"Authorization": SQL},
        {"Authorization": "Basic cm9vdDpyb290"},
        {"X-SLURM-USER-NAME": SQL, "X-SLURM-USER-TOKEN": SQL},
        {"Cookie": f"tocsin_session={SQL.replace(';', '')}"},
        {"X-Tocsin-Relay-User": SQL},
        {"X-Tocsin-Relay-User": "root", "X-Tocsin-Relay-Signature": "1:00"},
    ],
)
def test_sql_and_forgeries_in_every_credential_are_refused_and_harm_nothing(
    app: App, headers: dict[str, str]
) -> None:
    token = new_token(app)
    assert ask(gated(app), headers=headers).status_code == 401
    assert ask(gated(app), headers=bearer(token)).status_code == 200, "the table of tokens is still there"


def test_a_credential_sent_twice_or_in_two_kinds_is_refused(app: App) -> None:
    token = new_token(app)
    twice = [("Authorization", f"Bearer {token}"), ("Authorization", "Bearer x")]
    assert ask(gated(app), headers=twice).status_code == 401
    both = bearer(token) | {"X-SLURM-USER-NAME": "ann", "X-SLURM-USER-TOKEN": "x"}
    assert "several kinds" in ask(gated(app), headers=both).json()["detail"]


def test_a_client_over_its_rate_is_told_when_to_come_back(make_app: MakeApp) -> None:
    app = make_app("requests_per_minute = 60")
    one, other = bearer(new_token(app, "one")), bearer(new_token(app, "other"))
    gate = gated(app)
    answers = [ask(gate, headers=one).status_code for _ in range(11)]
    assert answers == [200] * 10 + [429]
    assert int(ask(gate, headers=one).headers["retry-after"]) >= 1
    assert ask(gate, headers=other).status_code == 200, "others are not slowed down"


def test_addresses_without_a_credential_are_counted_too(make_app: MakeApp) -> None:
    gate = gated(make_app("requests_per_minute = 60"))
    assert [ask(gate, "/metrics").status_code for _ in range(11)] == [200] * 10 + [429]
    assert ask(gate, "/metrics", peer=FAR).status_code == 200


def test_a_bucket_fills_again_and_memory_is_bounded() -> None:
    now = 0.0
    buckets = Buckets(60, now=lambda: now)
    assert [buckets.take("a") for _ in range(11)] == [0.0] * 10 + [1.0]
    now = 1.0
    assert buckets.take("a") == 0.0
    for number in range(30_000):
        buckets.take(str(number))
    assert len(buckets._left) <= 10_000


def test_every_answer_has_the_headers_that_protect_a_browser(app: App) -> None:
    token = bearer(new_token(app))
    for reply in (
        ask(gated(app)),
        ask(gated(app), headers=token),
        ask(gated(app), "/nothing", headers=token),
    ):
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "same-origin"
        assert reply.headers["cache-control"] == "no-store"
        assert "strict-transport-security" not in reply.headers
    assert "strict-transport-security" in ask(gated(app), peer=Peer(address="127.0.0.1", tls=True)).headers


def test_nodes_are_hidden_from_users_where_slurm_hides_them() -> None:
    from tocsin.serve.identity.gate import Gate
    from tocsin.serve.identity.identification import Identification
    from tocsin.serve.identity.request import Request
    from tocsin.serve.principal import Principal, Role

    class Somebody:
        def __init__(self, role: Role) -> None:
            self.role = role

        def offered(self, request: Request) -> bool:
            return True

        async def principal(self, request: Request) -> Principal:
            return Principal("ann", self.role, "test")

    def status(role: Role, private: set[str]) -> int:
        gate = Gate(echo, Identification([Somebody(role)], []), private_data=lambda: private)
        return ask(gate, "/api/v1/nodes", peer=LOCAL).status_code

    assert status(Role.USER, set()) == 200
    assert status(Role.USER, {"jobs", "nodes"}) == 403
    assert status(Role.OPERATOR, {"nodes"}) == 200
