"""Roles by routes by whose job it is, on the real application with jobs of several users."""

import time
import uuid
from typing import Any

import httpx2
import pytest

from tests.serve.identity.kit import ask
from tests.serve.identity.test_roles import Case, cases, expected
from tocsin.serve.identity import request as identity_request
from tocsin.serve.identity.gate import Gate
from tocsin.serve.identity.identification import Identification
from tocsin.serve.principal import Principal, Role

service_kit = pytest.importorskip("tests.kits.service", exc_type=ImportError)

USER, OTHER = "linus", "ada"
ENDLESS = "/api/v1/events"


class As:
    """Takes everybody for linus, with this role."""

    def __init__(self, role: Role) -> None:
        self._role = role

    def offered(self, request: identity_request.Request) -> bool:
        return True

    async def principal(self, request: identity_request.Request) -> Principal:
        return Principal(USER, self._role, "test")


@pytest.mark.parametrize("role", list(Role), ids=lambda role: role.name)
def test_each_role_gets_what_the_table_gives_it_and_no_job_of_another(
    served: Any, role: Role, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tocsin.app.tasks import Task

    def start(kind: Any, request: dict[str, Any], *, who: str) -> Task:
        """A fake start: nothing is trained here."""
        return Task(id=uuid.uuid4().hex, kind=kind, request=request, who=who, created=int(time.time()))

    monkeypatch.setattr(served.service.tasks, "start", start)
    operator = served.client()
    jobs = {
        user: operator.get("/api/v1/jobs", params={"user": user, "limit": 1}).json()["jobs"][0]["job"]
        for user in (USER, OTHER)
    }
    gate = Gate(served.inner, Identification([As(role)], []))
    tried = 0
    for case in cases(served.inner.openapi()):
        if case.role is not role or case.template == ENDLESS:
            continue
        path = case.path.replace("/jobs/7", f"/jobs/{jobs[USER]}").replace("/jobs/8", f"/jobs/{jobs[OTHER]}")
        _check(case, ask(gate, path, method=case.method))
        tried += 1
    assert tried > 60


def _check(case: Case, reply: httpx2.Response) -> None:
    wanted = expected(case)
    if wanted == 200:  # it got in; what is asked for may be malformed or not exist
        assert reply.status_code not in (401, 403, 405), (case, reply.text)
        assert reply.status_code < 500 or reply.status_code == 503, (case, reply.text)
    else:
        assert reply.status_code == wanted, (case, reply.text)
    if case.role is Role.USER:
        assert f'"user": "{OTHER}"' not in reply.text.replace('":"', '": "'), case
