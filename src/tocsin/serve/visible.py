"""The one place that decides what a person may see."""

from collections.abc import Sequence
from typing import Any

from tocsin.core.errors import Forbidden
from tocsin.serve.principal import Principal, Role

__all__ = ["own_users", "require", "visible", "visible_actions", "visible_points"]

_HIDDEN = frozenset({"open", "habit"})
"""Kinds of findings that would show misusers what gave them away, or thieves that the theft was noticed."""
_ABOUT_MISUSE = frozenset({"rogue", "suspected"})


def require(principal: Principal, least: Role, what: str) -> None:
    """Raise Forbidden for a lower role."""
    if principal.role < least:
        raise Forbidden(
            f"{what} needs the role {least.name.lower()}; {principal.user} is {principal.role.name.lower()}"
        )


def own_users(principal: Principal, asked: Sequence[str]) -> list[str] | None:
    """The users whose jobs are listed; None: none that this person may see."""
    if principal.is_operator:
        return list(asked)
    return [principal.user] if not asked or principal.user in asked else None


def visible(document: dict[str, Any], principal: Principal) -> dict[str, Any]:
    """A verdict as this person may see it: users never see which words revealed a misuse, nor jobs of others."""
    if principal.is_operator:
        return document
    shown = {
        **document,
        "findings": [_finding(each) for each in document["findings"] if each["kind"] not in _HIDDEN],
    }
    if document["failure"]:
        similar = [each for each in document["failure"]["similar"] if principal.may_see(each.get("user"))]
        shown["failure"] = {**document["failure"], "similar": similar}
    if document["workload"]:
        shown["workload"] = {
            name: part and {**part, "evidence": [], "open": [], "signs": []}
            for name, part in document["workload"].items()
        }
    if document["rogue"]:
        shown["rogue"] = {**document["rogue"], "case": None}
    return shown


def visible_points(document: dict[str, Any], principal: Principal) -> dict[str, Any]:
    """Windows of a job among others: of those of others, users see how they behaved, but not where and when."""
    if principal.is_operator:
        return document
    points = [
        each if each["mine"] else {name: each[name] for name in ("x", "y", "mine")}
        for each in document["points"]
    ]
    return {**document, "points": points}


def visible_actions(documents: Sequence[dict[str, Any]], principal: Principal) -> list[dict[str, Any]]:
    """Users see what was done to their jobs, not what was only planned or recorded, and no case numbers."""
    if principal.is_operator:
        return list(documents)
    return [{**each, "case": None} for each in documents if each["done"] is not None]


def _finding(finding: dict[str, Any]) -> dict[str, Any]:
    about = (
        finding["operation"] is not None
        or finding["kind"] in _ABOUT_MISUSE
        or finding["detector"] == "workload"
    )
    return {**finding, "evidence": [], "case": None} if about else finding
