"""The minimum role for each route. A route that is not in this table is not served."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache

from tocsin.core.errors import Forbidden
from tocsin.serve.identity.authenticators import Method
from tocsin.serve.principal import Principal, Role

__all__ = ["PERMISSIONS", "Permission", "authorize", "match"]


@dataclass(frozen=True, slots=True)
class Permission:
    """Who may use a route; `least` is None if no credential is needed."""

    least: Role | None
    changes: bool = False
    """Whether it changes something, which a read-only token may not do."""
    own: bool = False
    """Whether users see or change only their own jobs; the route itself compares the owner (`Principal.may_see`)."""
    private: str = ""
    """The word of Slurm's PrivateData that hides it from users."""
    stream: bool = False
    """Whether its reply lasts until the client leaves."""


_PUBLIC = Permission(None)
_USER, _OPERATOR = Permission(Role.USER), Permission(Role.OPERATOR)
_OWN = Permission(Role.USER, own=True)
_STREAM = Permission(Role.USER, own=True, stream=True)
_CHANGES_OWN = Permission(Role.USER, changes=True, own=True)
_NODES = Permission(Role.USER, private="nodes")
_USAGE = Permission(Role.USER, private="usage")
_OPERATOR_CHANGES, _ADMIN_CHANGES = (Permission(role, changes=True) for role in (Role.OPERATOR, Role.ADMIN))

_API = "/api/v1"


def _tasks(name: str, least: Role) -> dict[tuple[str, str], Permission]:
    """The routes that start, show and cancel long-running work."""
    begin = Permission(least, changes=True)
    return {
        ("GET", f"{_API}/{name}"): _OPERATOR,
        ("POST", f"{_API}/{name}"): begin,
        ("GET", f"{_API}/{name}/{{number}}"): _OPERATOR,
        ("DELETE", f"{_API}/{name}/{{number}}"): begin,
    }


PERMISSIONS: Mapping[tuple[str, str], Permission] = {
    ("GET", "/"): _USER,
    ("GET", "/jobs/{job}"): _OWN,
    ("GET", "/healthz"): _PUBLIC,
    ("GET", "/readyz"): _PUBLIC,
    ("GET", "/metrics"): _PUBLIC,
    ("GET", "/openapi.json"): _PUBLIC,
    ("GET", "/static/{file:path}"): _PUBLIC,
    ("GET", "/login"): _PUBLIC,
    ("POST", "/login"): _PUBLIC,
    ("GET", "/login/oidc"): _PUBLIC,
    ("GET", "/login/oidc/callback"): _PUBLIC,
    ("POST", "/logout"): _USER,
    ("POST", f"{_API}/login-links"): Permission(Role.USER, changes=True),
    ("GET", f"{_API}/me"): _USER,
    ("GET", f"{_API}/health"): _USER,
    ("GET", f"{_API}/clusters"): _USER,
    ("GET", f"{_API}/jobs"): _OWN,
    ("GET", f"{_API}/jobs/{{job}}"): _OWN,
    ("GET", f"{_API}/jobs/{{job}}/timeline"): _OWN,
    ("GET", f"{_API}/jobs/{{job}}/verdicts"): _OWN,
    ("GET", f"{_API}/jobs/{{job}}/explanation"): _OWN,
    ("GET", f"{_API}/jobs/{{job}}/script"): _OWN,
    ("GET", f"{_API}/jobs/{{job}}/traces"): _OWN,
    ("GET", f"{_API}/jobs/{{job}}/embeddings"): _OWN,
    ("GET", f"{_API}/jobs/{{job}}/actions"): _OWN,
    ("POST", f"{_API}/jobs/{{job}}/actions"): _CHANGES_OWN,
    ("POST", f"{_API}/check"): _USER,
    ("POST", f"{_API}/advice"): _USER,
    ("GET", f"{_API}/verdicts"): _OWN,
    ("GET", f"{_API}/events"): _STREAM,
    ("GET", f"{_API}/cases"): _OPERATOR,
    ("GET", f"{_API}/cases/{{case}}"): _OPERATOR,
    ("POST", f"{_API}/cases/{{case}}/feedback"): _OPERATOR_CHANGES,
    ("GET", f"{_API}/allow"): _OPERATOR,
    ("POST", f"{_API}/allow"): _OPERATOR_CHANGES,
    ("DELETE", f"{_API}/allow/{{entry}}"): _OPERATOR_CHANGES,
    ("GET", f"{_API}/models"): _USER,
    ("GET", f"{_API}/models/{{detector}}/{{version}}"): _USER,
    ("POST", f"{_API}/models/{{detector}}/{{version}}/promote"): _ADMIN_CHANGES,
    ("POST", f"{_API}/models/{{detector}}/rollback"): _ADMIN_CHANGES,
    ("POST", f"{_API}/models/{{detector}}/{{version}}/challenge"): _ADMIN_CHANGES,
    ("DELETE", f"{_API}/models/{{detector}}/challenger"): _ADMIN_CHANGES,
    ("GET", f"{_API}/learning"): _OPERATOR,
    ("GET", f"{_API}/thresholds"): _USER,
    ("PUT", f"{_API}/thresholds/{{detector}}"): _ADMIN_CHANGES,
    **_tasks("backtests", Role.OPERATOR),
    **_tasks("profiles", Role.OPERATOR),
    **_tasks("trainings", Role.ADMIN),
    **_tasks("contests", Role.ADMIN),
    ("GET", f"{_API}/nodes"): _NODES,
    ("GET", f"{_API}/nodes/{{node}}"): _NODES,
    ("GET", f"{_API}/statistics"): _USAGE,
    ("GET", f"{_API}/actions"): _OPERATOR,
    ("POST", f"{_API}/actions/{{action}}/undo"): _OPERATOR_CHANGES,
}


def authorize(
    principal: Principal, permission: Permission, what: str, private_data: Collection[str] = ()
) -> None:
    """Raise Forbidden unless this principal may use the route; `what` names it for the message."""
    least = permission.least or Role.USER
    if permission.private and permission.private in private_data:
        least = max(least, Role.OPERATOR)
    if principal.role < least:
        raise Forbidden(f"{what} needs the role {least.name.lower()}, and {principal.user} is "
                        f"{principal.role.name.lower()} here")  # fmt: skip
    if permission.changes and principal.method == Method.READ_ONLY:
        raise Forbidden(f"{what} changes something, and this token is read-only")


def match(path: str) -> dict[str, tuple[str, Permission]]:
    """For each method of the route at this path: its template and permission; empty if there is no route."""
    found = _FIXED.get(path)
    return _matched(path) if found is None else found


def _matched(path: str) -> dict[str, tuple[str, Permission]]:
    found: dict[str, tuple[str, Permission]] = {}
    for (method, template), permission in PERMISSIONS.items():
        if method not in found and (path == template or _pattern(template).fullmatch(path)):
            found[method] = (template, permission)
    return found


@cache
def _pattern(template: str) -> re.Pattern[str]:
    """As in Starlette: a parameter is one segment, `{name:path}` any number."""
    parts = re.split(r"(\{[^}]*\})", template)
    return re.compile("".join(map(_part, parts)), re.DOTALL)


def _part(part: str) -> str:
    if not part.startswith("{"):
        return re.escape(part)
    return ".*" if part.endswith(":path}") else "[^/]+"


_FIXED = {template: _matched(template) for _, template in PERMISSIONS if "{" not in template}
"""Paths without parameters, such as that of checks, matched in advance."""
