"""The OpenAPI description: schemas derived from the classes of the documents, and an example for each reply."""

import json
from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from tocsin import __version__
from tocsin.core.fields import FIELDS, ValueType
from tocsin.core.schema import verdict_schema
from tocsin.serve.problems import ANY_PROBLEM, PROBLEM_SCHEMA

__all__ = ["JOB", "VERDICT", "array_of", "describe", "page_of", "ref", "reply"]

_ANY: dict[str, Any] = {"type": "object"}
_TYPES: dict[ValueType, dict[str, Any]] = {
    ValueType.TEXT: {"type": "string"},
    ValueType.COUNT: {"type": "integer"},
    ValueType.NUMBER: {"type": "number"},
    ValueType.FLAG: {"type": "boolean"},
    ValueType.INSTANT: {"type": "string", "format": "date-time"},
    ValueType.SECONDS: {"anyOf": [{"type": "integer"}, {"const": "UNLIMITED"}]},
    ValueType.BYTES: {"type": "integer"},
}

VERDICT: dict[str, Any] = {
    "schema": 1,
    "id": "4f0c4a3e-6f43-5c5e-9a55-0c3a2d3f7b11",
    "job": "lab:4711@1794775393",
    "stage": "submit",
    "at": "2026-11-15T20:43:13Z",
    "known_until": "2026-11-15T20:43:13Z",
    "level": "warning",
    "seq": 0,
    "late": False,
    "user": "ann",
    "account": "chem",
    "name": "relax",
    "findings": [
        {
            "detector": "failure",
            "kind": "failure",
            "level": "warning",
            "text": "will probably fail (84 %), most likely out of memory",
            "score": 0.84,
            "threshold": 0.7,
            "evidence": [],
            "operation": None,
            "group": None,
            "case": None,
        }
    ],
    "failure": None,
    "workload": None,
    "rogue": None,
    "resources": None,
    "nodes": None,
    "anomalies": [],
    "advice": [],
    "models": {"failure": "20261101T020000-1"},
    "missing": {},
}
JOB: dict[str, Any] = {
    "job": "lab:4711@1794775393",
    "cluster": "lab",
    "job_id": 4711,
    "task": None,
    "submit": "2026-11-15T20:43:13Z",
    "user": "ann",
    "state": "RUNNING",
}


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def array_of(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema}


def page_of(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """A list with this name, and the cursor of the next page."""
    return {
        "type": "object",
        "properties": {name: array_of(schema), "next": {"type": ["string", "null"]}},
        "required": [name, "next"],
    }


def reply(
    example: Any, schema: dict[str, Any] | None = None, *, status: int = 200, text: str = "The answer"
) -> dict[int | str, dict[str, Any]]:
    """The `responses` argument of a FastAPI route."""
    content = {"application/json": {"schema": schema or _ANY, "example": example}}
    replies: dict[int | str, dict[str, Any]] = {
        status: {"description": text, "content": content},
        **ANY_PROBLEM,
    }
    if status == 200:
        replies[304] = {"description": "Unchanged since the reply with this ETag"}
    return replies


@cache
def _schemas() -> dict[str, Any]:
    verdict = json.loads(json.dumps(verdict_schema()).replace("#/$defs/", "#/components/schemas/"))
    parts = verdict.pop("$defs")
    del verdict["$schema"]
    fields = {
        name: {"anyOf": [_TYPES[field.type], {"type": "null"}], "description": field.doc}
        for name, field in FIELDS.items()
    }
    job = {
        "type": "object",
        "properties": {"job": {"type": "string"}, **fields},
        "required": ["job", *fields],
    }
    return {"Verdict": verdict, "Job": job, "Problem": PROBLEM_SCHEMA, **parts}


def describe(app: FastAPI) -> None:
    """Let the application describe itself with these schemas."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            found = get_openapi(
                title="tocsin",
                version=__version__,
                summary="Early warning for HPC jobs",
                description="Verdicts on jobs before, while and after they run. Errors are problem documents (RFC 9457). "
                "Lists have a cursor `next`; GET replies have an ETag.",
                routes=app.routes,
            )
            schemas = found.setdefault("components", {}).setdefault("schemas", {})
            for name in ("HTTPValidationError", "ValidationError"):
                schemas.pop(name, None)
            schemas.update(_schemas())
            app.openapi_schema = found
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # as FastAPI's documentation does
