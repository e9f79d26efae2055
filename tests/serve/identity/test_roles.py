"""Roles by routes by whose job it is: a table that is generated from the description of the application."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest
from fastapi import FastAPI, HTTPException, Request

from tests.serve.identity.kit import ask
from tocsin.core.errors import Forbidden
from tocsin.serve.identity import request as identity_request
from tocsin.serve.identity.gate import Gate
from tocsin.serve.identity.identification import Identification
from tocsin.serve.identity.roles import PERMISSIONS, Permission, authorize, match
from tocsin.serve.principal import Principal, Role

OWNERS = {"7": "ann", "8": "bob"}
"""The jobs of the small application."""
BUILT_IN = {"/login", "/logout", "/openapi.json", "/static", "/api/v1/login-links"}
"""What is served beside the described routes."""


class Case(NamedTuple):
    method: str
    path: str
    template: str
    role: Role
    own: bool


def operations(described: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for template, methods in described["paths"].items():
        for method in methods:
            yield method.upper(), template


def cases(described: Mapping[str, Any]) -> Iterator[Case]:
    """Every operation, asked by every role, for the asker's own job and another's."""
    for (method, template), role, own in itertools.product(operations(described), Role, (True, False)):
        path = template.replace("{job}", "7" if own else "8").replace("{file:path}", "x.css")
        for name in ("case", "entry", "detector", "version", "number", "node", "action"):
            path = path.replace(f"{{{name}}}", "1")
        yield Case(method, path, template, role, own)


def expected(case: Case) -> int:
    """As people were promised: users see their own jobs, operators all; the rest is in the table."""
    permission = PERMISSIONS[case.method, case.template]
    if permission.least is not None and case.role < permission.least:
        return 403
    if "{job}" in case.template and case.role < Role.OPERATOR and not case.own:
        return 404
    return 200


def small_application() -> FastAPI:
    """Serves every route of the table as the real one should: another's job is not there for a user."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)

    def serve(request: Request) -> dict[str, str]:
        principal, job = request.state.principal, request.path_params.get("job")
        if job is not None and not principal.may_see(OWNERS.get(job)):
            raise HTTPException(404)
        return {"path": request.url.path}

    for method, template in PERMISSIONS:
        if not any(template.startswith(prefix) for prefix in BUILT_IN):
            app.add_api_route(template, serve, methods=[method], name=f"{method} {template}")
    return app


class As:
    """Takes everybody for ann, with this role."""

    def __init__(self, role: Role) -> None:
        self._role = role

    def offered(self, request: identity_request.Request) -> bool:
        return True

    async def principal(self, request: identity_request.Request) -> Principal:
        return Principal("ann", self._role, "test")


APP = small_application()


@pytest.mark.parametrize("role", list(Role), ids=lambda role: role.name)
def test_each_role_gets_exactly_what_the_table_gives_it(role: Role) -> None:
    gate = Gate(APP, Identification([As(role)], []))
    tried = 0
    for case in cases(APP.openapi()):
        if case.role is role:
            assert ask(gate, case.path, method=case.method).status_code == expected(case), case
            tried += 1
    assert tried > 60


def test_nothing_is_served_to_nobody_but_what_is_public() -> None:
    gate = Gate(APP, Identification([], []))
    public = {"/healthz", "/readyz", "/metrics"}
    for case in cases(APP.openapi()):
        status = ask(gate, case.path, method=case.method).status_code
        assert status == (200 if case.template in public else 401), case


def test_what_changes_something_is_no_get_and_needs_a_role() -> None:
    for (method, template), permission in PERMISSIONS.items():
        if permission.changes:
            assert method != "GET", template
            assert permission.least is not None, template
        elif method != "GET":
            assert template in {"/login", "/logout", "/api/v1/check", "/api/v1/advice"}, template


def test_every_route_of_a_job_is_for_its_owner() -> None:
    assert all(permission.own for (_, template), permission in PERMISSIONS.items() if "{job}" in template)


def test_every_route_of_the_service_is_in_the_table() -> None:
    factory = pytest.importorskip("tocsin.serve.factory", exc_type=ImportError)
    described = factory.routes(None, None, None).openapi()
    missing = [operation for operation in operations(described) if operation not in PERMISSIONS]
    assert not missing, "add them to serve/identity/roles.py: until then they are answered with 404"


def test_a_parameter_is_one_segment() -> None:
    assert set(match("/api/v1/jobs/lab:17_4@1794775393")) == {"GET"}
    assert match("/api/v1/jobs/a/b") == {}
    assert match("/api/v1/jobs/") == {}
    assert match("/api/v1/jobs/a\n") != {}, "an id is anything; the route itself reads it"
    assert set(match("/static/a/b.css")) == {"GET"}


@pytest.mark.parametrize("word", ["nodes", "usage"])
def test_private_data_hides_from_users_and_not_from_operators(word: str) -> None:
    permission = Permission(Role.USER, private=word)
    authorize(Principal("ann", Role.USER, "test"), permission, "it", {"jobs"})
    with pytest.raises(Forbidden, match="needs the role operator, and ann is user"):
        authorize(Principal("ann", Role.USER, "test"), permission, "it", {word})
    authorize(Principal("olga", Role.OPERATOR, "test"), permission, "it", {word})
