"""Leases: the start of a job is delayed a few minutes at a time, for as long as the lease is renewed.

What will be set is stored before it is set, so that after a kill it is never mistaken for the owner's own setting.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from tocsin.core.actions import ActionKind, ActionStatus
from tocsin.core.errors import ClusterError, NotFound
from tocsin.core.ports import Actuator, QueueState
from tocsin.store import actions
from tocsin.store.actions import Action
from tocsin.store.database import Store

__all__ = ["Leases", "begin_without_lease", "start_not_moved", "why_ending", "with_previous_state"]


@dataclass(frozen=True, slots=True)
class Leases:
    """The leases of one cluster, each `seconds` long."""

    store: Store
    actuator: Actuator
    seconds: int

    def needs_renewal(self, lease: Action, now: int) -> bool:
        """Whether half of it is over, so that it should be renewed."""
        return bool(lease.before["until"] - now <= self.seconds / 2)

    def delay_start(self, lease: Action, queue_state: QueueState, now: int) -> None:
        """Delay the start, but never to an earlier one than the user's own."""
        begin = max(now + self.seconds, queue_state.begin or 0)
        if begin != queue_state.begin:
            # Every instant that we may have set is stored until one is confirmed: a kill in between may leave any of them.
            lease = _with(lease, set=[*lease.before["set"], begin])
            actions.prepare_all(self.store, [lease])
            self.actuator.delay(lease.job, begin)
            lease = _with(lease, set=[begin])
        actions.prepare_all(self.store, [_with(lease, until=begin)])

    def renew(self, lease: Action, queue_state: QueueState, now: int) -> bool:
        """Whether it was renewed; it is not if the owner has moved the start."""
        if not start_not_moved(lease, queue_state):
            if (queue_state.begin or 0) <= lease.before["until"]:
                return False
            lease = _with(lease, begin=queue_state.begin)
            actions.prepare_all(self.store, [lease])
        self.delay_start(lease, queue_state, now)
        if actions.find(self.store, lease.id).status is not ActionStatus.DONE:  # undone meanwhile
            self.actuator.delay(lease.job, begin_without_lease(lease, now))
        return True

    def renew_together(self, few: Sequence[Action], now: int) -> Sequence[Action]:
        """Renew the leases of jobs whose state is as we left it, by one change for all; returns the other actions."""
        begin = now + self.seconds
        alike = [action for action in few if self._can_renew_together(action, begin, now)]
        if len(alike) < 2:
            return few
        wanted = [_with(lease, set=[*lease.before["set"], begin]) for lease in alike]
        actions.prepare_all(self.store, wanted)
        failed = self.actuator.delay_all([lease.job for lease in wanted], begin)
        done = [_with(lease, set=[begin], until=begin) for lease in wanted if lease.job not in failed]
        actions.prepare_all(self.store, done)
        in_force = {action.id for action in actions.open_actions(self.store, self.actuator.name)}
        for lease in done:
            if lease.id not in in_force:  # undone meanwhile
                with suppress(ClusterError, NotFound):
                    self.actuator.delay(lease.job, begin_without_lease(lease, now))
        left = {lease.id: lease for lease in wanted if lease.job in failed}
        renewed = {lease.id for lease in done}
        return [left.get(action.id, action) for action in few if action.id not in renewed]

    def _can_renew_together(self, action: Action, begin: int, now: int) -> bool:
        """Whether it is a lease in force, on a job whose start is ours and earlier than `begin`."""
        in_force = action.kind is ActionKind.LEASE and action.status is ActionStatus.DONE
        if not in_force or why_ending(action, now):
            return False
        with suppress(ClusterError, NotFound):
            queue_state = self.actuator.queue_state(action.job)
            return (
                queue_state.pending
                and start_not_moved(action, queue_state)
                and (queue_state.begin or 0) < begin
            )
        return False


def with_previous_state(store: Store, action: Action, before: dict[str, Any]) -> Action:
    """The action with the stored previous state; one stored by an earlier attempt takes precedence."""
    if action.before:
        return action
    action = replace(action, before=before)
    actions.prepare_all(store, [action])
    return action


def why_ending(action: Action, now: int) -> tuple[ActionStatus, str] | None:
    """Why an action must end."""
    if action.dismissed:
        return ActionStatus.UNDONE, f"case {action.case} was dismissed"
    if action.expires is not None and now >= action.expires:
        return ActionStatus.EXPIRED, "its time is over"
    return None


def start_not_moved(lease: Action, queue_state: QueueState) -> bool:
    """Whether the job's earliest start is the original one, or one that we set."""
    return queue_state.begin in (None, lease.before["begin"], *lease.before["set"])


def begin_without_lease(lease: Action, now: int) -> int:
    """The earliest start without the lease."""
    return max(lease.before["begin"] or 0, now)


def _with(action: Action, **before: Any) -> Action:
    return replace(action, before={**action.before, **before})
