"""The policy of the settings: sections [policy] and [rule.NAME], checked."""

from collections.abc import Collection
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from tocsin.app.app import App
from tocsin.core.actions import ActionKind, Mode
from tocsin.core.errors import SettingsError
from tocsin.core.settings import RuleSettings
from tocsin.core.verdict import Level

if TYPE_CHECKING:
    from tocsin.judge.policy import ActionPolicy, ActionRule, Policy

__all__ = ["action_policy", "live_policy"]

_EXCLUDED = {"user": "exclude_users", "account": "exclude_accounts", "partition": "exclude_partitions", "qos": "exclude_qos"}  # fmt: skip
_LONGEST_LEASE = 3600

E = TypeVar("E", bound=StrEnum)


def live_policy(app: App, *, simulated: bool = False) -> "Policy":
    """For a process that follows a live cluster: opens cases and plans actions; in a simulation, only records them."""
    from tocsin.judge.policy import ROGUE_CASES

    actions = action_policy(app)
    if simulated and actions.mode is Mode.ACT:
        actions = replace(actions, mode=Mode.SHADOW)
    return replace(ROGUE_CASES, actions=actions)


def action_policy(app: App) -> "ActionPolicy":
    """SettingsError names the invalid setting, its value and the valid ones."""
    from tocsin.judge.policy import DEFAULT_RULES, ActionPolicy

    settings = app.settings.policy
    if not 10 <= settings.lease_seconds <= _LONGEST_LEASE:
        raise SettingsError(
            f"policy.lease_seconds is {settings.lease_seconds}; it must be 10 to {_LONGEST_LEASE}: a lease must end soon "
            "after tocsin has died"
        )
    if settings.control_percent > 100:
        raise SettingsError(f"policy.control_percent is {settings.control_percent}; it must be 0 to 100")
    if settings.hold_hours == 0:
        raise SettingsError("policy.hold_hours is 0; a hold needs an expiry of at least an hour")
    rules = [_rule(name, rule) for name, rule in app.settings.rule.items()]
    return ActionPolicy(
        mode=_member(Mode, settings.mode, "policy.mode"),
        rules=rules or DEFAULT_RULES,
        lease=settings.lease_minutes * 60,
        hold=settings.hold_hours * 3600,
        per_hour=settings.per_hour,
        per_user_hour=settings.per_user_hour,
        control=settings.control_percent / 100,
        array_failures=settings.array_failures,
        excluded={
            field: words for field, name in _EXCLUDED.items() if (words := _words(getattr(settings, name)))
        },
    )


def _rule(name: str, rule: RuleSettings) -> "ActionRule":
    from tocsin.judge.policy import ActionRule

    if rule.score_percent > 100:
        raise SettingsError(f"rule.{name}.score_percent is {rule.score_percent}; it must be 0 to 100")
    return ActionRule(
        name=name,
        detector=rule.detector,
        kind=rule.kind,
        level=_member(Level, rule.level, f"rule.{name}.level"),
        score=rule.score_percent / 100,
        action=_member(ActionKind, rule.action, f"rule.{name}.action"),
    )


def _member(kind: type[E], value: str, name: str) -> E:
    try:
        return kind(value)
    except ValueError:
        raise SettingsError(f'{name} is "{value}"; it must be one of {", ".join(kind)}') from None


def _words(text: str) -> Collection[str]:
    return frozenset(word.strip() for word in text.split(",") if word.strip())
