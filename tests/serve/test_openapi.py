"""The API keeps what its description promises, whatever is sent."""

import time
import uuid
from typing import Any

import hypothesis
import pytest

from tests.kits.service import OPERATOR, As, Served
from tocsin.app.tasks import Kind, Task

schemathesis = pytest.importorskip("schemathesis")

ENDLESS = "/api/v1/events"
EXAMPLES = 20
KNOWN = {"case": 1, "detector": "workload", "version": "builtin"}
"""Requests per operation and phase: some forty operations in less than a minute."""


def test_every_operation_has_an_example_and_a_summary(served: Served) -> None:
    described = served.client().get("/openapi.json").json()
    assert described["openapi"].startswith("3.1")
    operations = [
        (path, method, operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]
    assert len(operations) > 35
    for path, method, operation in operations:
        assert operation["summary"], path
        good = next(reply for status, reply in operation["responses"].items() if status.startswith("2"))
        if path.startswith("/api/"):
            [content] = good["content"].values()
            assert "example" in content, f"{method} {path}"
            assert "application/problem+json" in operation["responses"]["default"]["content"]
        if "application/json" in operation.get("requestBody", {}).get("content", {}):
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            name = schema["$ref"].rpartition("/")[2]
            assert "example" in described["components"]["schemas"][name], f"{method} {path}"


def test_no_request_is_a_server_error(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(kind: Kind, request: dict[str, Any], *, who: str) -> Task:
        """A fake start: the children of hundreds of requests would compute for an hour."""
        return Task(id=uuid.uuid4().hex, kind=kind, request=request, who=who, created=int(time.time()))

    monkeypatch.setattr(served.service.tasks, "start", refuse)
    app = As(served.inner, OPERATOR)
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    job = served.client().get("/api/v1/verdicts").json()["verdicts"][0]["job"]
    tried: dict[str, set[int]] = {}
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.path == ENDLESS:
            continue
        _try(operation, {**KNOWN, "job": job}, tried)
    assert len(tried) > 35
    assert {200, 202, 400, 404, 409, 422} <= set().union(*tried.values())


def _try(operation: Any, known: dict[str, Any], tried: dict[str, set[int]]) -> None:
    name = f"{operation.method} {operation.path}"
    there = {each: value for each, value in known.items() if f"{{{each}}}" in operation.path}
    modes = schemathesis.GenerationMode
    cases = operation.as_strategy() | operation.as_strategy(generation_mode=modes.NEGATIVE)
    if there:
        cases |= operation.as_strategy(path_parameters=there)

    @hypothesis.settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
    )
    @hypothesis.given(case=cases)
    def attempt(case: Any) -> None:
        reply = case.call()
        tried.setdefault(name, set()).add(reply.status_code)
        case.validate_response(
            reply,
            checks=[
                schemathesis.checks.not_a_server_error,
                schemathesis.checks.response_schema_conformance,
                schemathesis.checks.content_type_conformance,
                schemathesis.checks.status_code_conformance,
            ],
        )

    attempt()
