"""Carry out planned actions, renew leases, and release what has expired or lost its reason.

The process may be killed at any point. What will be changed is stored before it is changed, every step asks Slurm how the
job stands, and a step that was done already changes nothing. A lease ends by itself; a hold is released by whoever comes
first: the service, `tocsin expire` or a person.
"""

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from tocsin.core.actions import IN_FORCE, INTERVENTIONS, ActionKind, ActionStatus
from tocsin.core.errors import ClusterError, InputError, NotFound
from tocsin.core.ports import Actuator, Standing
from tocsin.store import actions
from tocsin.store.actions import BY_POLICY, Action
from tocsin.store.database import Store

__all__ = ["Executor"]

_TRIES_FOR = 600
"""Seconds for which an action is tried that Slurm refuses."""
_TASKS_FOR = 7 * 86400
"""Seconds for which tasks of an array are looked for that an action on it has put off."""
_GONE = "the job has left the queue"
_STARTED = "the job was no longer pending"


@dataclass(frozen=True, slots=True)
class Executor:
    """The actions of one cluster. `act`: whether planned actions are carried out; releases always are."""

    store: Store
    actuator: Actuator
    lease: int
    """Seconds by which a lease puts a start off."""
    act: bool

    def step(self, now: int) -> list[str]:
        """Bring every open action forward; returns what went wrong, to be tried again."""
        troubles = self._advance_all(actions.open_actions(self.store, self.actuator.name), now)
        actions.mark_tasks(self.store, self.actuator.name, now - _TASKS_FOR)
        return troubles

    def carry_out_planned(self, jobs: Collection[str], now: int) -> list[str]:
        """Carry out at once what is planned on these jobs, named by their keys, as `step` would; returns what went wrong."""
        return self._advance_all(actions.planned_on(self.store, jobs), now)

    def _advance_all(self, wanted: Iterable[Action], now: int) -> list[str]:
        """The gravest of those that are planned first: a job that is to be held may start at any second."""
        troubles = []
        for action in sorted(
            wanted, key=lambda one: (one.status is not ActionStatus.PLANNED, -one.kind.gravity)
        ):
            try:
                self._advance(action, now)
            except NotFound:  # it left the queue in this moment
                self._end(action, ActionStatus.OVER, now, _GONE)
            except ClusterError as error:
                actions.note(self.store, action, str(error))
                troubles.append(f"action {action.id} ({action.kind} of {action.job}): {error}")
                if action.status is ActionStatus.PLANNED and now - action.at > _TRIES_FOR:
                    self._end(action, ActionStatus.FAILED, now, str(error))
        return troubles

    def expire(self, now: int) -> tuple[int, list[str]]:
        """Release what has expired, or whose case was dismissed, and nothing else; returns how many, and what failed."""
        released, troubles = 0, []
        for action in actions.open_actions(self.store, self.actuator.name):
            if action.status is ActionStatus.DONE and (ending := _ending(action, now)):
                try:
                    self._release(action, *ending, now, BY_POLICY)
                    released += 1
                except ClusterError as error:
                    troubles.append(f"action {action.id} ({action.kind} of {action.job}): {error}")
        return released, troubles

    def undo(self, action: Action, *, who: str, now: int, note: str = "") -> None:
        """Release it, whoever planned it."""
        text = f"undone by {who}" + (f": {note}" if note else "")
        if not action.status.open:
            raise InputError(f"action {action.id} is {action.status}; there is nothing to undo")
        if action.status is ActionStatus.PLANNED and not action.before:
            self._end(action, ActionStatus.UNDONE, now, text, who)
        elif action.kind in IN_FORCE:
            self._release(action, ActionStatus.UNDONE, text, now, who)
        elif action.kind is ActionKind.COMMENT:
            self.actuator.comment(action.job, "")
            self._end(action, ActionStatus.UNDONE, now, text, who)
        else:
            raise InputError(
                f"action {action.id} was to {action.kind}, which cannot be undone"
                + ("; submit the job again" if action.kind is ActionKind.CANCEL else "")
            )

    # --- forward ---------------------------------------------------------------------------------

    def _advance(self, action: Action, now: int) -> None:
        if action.status is ActionStatus.DONE:
            if actions.has_started(self.store, action.job):
                self._end(action, ActionStatus.OVER, now, _STARTED)
            elif ending := _ending(action, now):
                self._release(action, *ending, now, BY_POLICY)
            elif action.kind is ActionKind.LEASE:
                self._renew(action, now)
            return
        if ending := _ending(action, now):
            self._release(action, *ending, now, BY_POLICY)
        elif not self.act:
            self._release(action, ActionStatus.UNDONE, "policy.mode is not act any more", now, BY_POLICY)
        else:
            self.carry_out(action, now)

    def carry_out(self, action: Action, now: int, *, who: str = BY_POLICY) -> None:
        """A planned action, whatever the policy."""
        standing = self._standing(action)
        if standing is None:
            return self._end(action, ActionStatus.OVER, now, _GONE)
        if action.kind in IN_FORCE and not standing.pending:
            return self._end(action, ActionStatus.OVER, now, _STARTED)
        if action.kind is ActionKind.HOLD:
            if standing.held == "admin" and not action.before:
                return self._end(action, ActionStatus.OVER, now, "an administrator holds the job already")
            action = self._prepared(action, {"held": standing.held})
            if standing.held != "admin":
                self.actuator.hold(action.job, action.reason)
        elif action.kind is ActionKind.LEASE:
            action = self._prepared(action, {"begin": standing.begin, "set": [], "until": 0})
            self._put_off(action, standing, now)
            self._remark(action, action.reason)
        elif action.kind is ActionKind.CANCEL:
            self.actuator.cancel(action.job)
        else:
            self.actuator.comment(action.job, action.reason)
        marked = action.kind in INTERVENTIONS
        actions.settle(self.store, action, ActionStatus.DONE, at=now, who=who, intervened=marked)
        return None

    def _renew(self, action: Action, now: int) -> None:
        """Half a lease before it ends. An owner who has moved the start meanwhile has the last word."""
        until = action.before["until"]
        if until - now > self.lease / 2:
            return None
        standing = self._standing(action)
        if standing is None or not standing.pending:
            return self._end(action, ActionStatus.OVER, now, _STARTED if standing else _GONE)
        if not _is_ours(action, standing):
            if (standing.begin or 0) <= until:
                return self._end(action, ActionStatus.UNDONE, now, "the owner of the job moved its start")
            action = self._prepared(action, {**action.before, "begin": standing.begin}, again=True)
        self._put_off(action, standing, now)
        if actions.find(self.store, action.id).status is not ActionStatus.DONE:  # undone meanwhile
            self.actuator.delay(action.job, _restored(action, now))
        return None

    def _put_off(self, action: Action, standing: Standing, now: int) -> None:
        """Never to an earlier start than the user's own."""
        begin = max(now + self.lease, standing.begin or 0)
        if begin != standing.begin:
            # Every instant that we may have set is kept until one is known to be: a kill in between leaves any of them.
            wanted = [*action.before["set"], begin]
            action = self._prepared(action, {**action.before, "set": wanted}, again=True)
            self.actuator.delay(action.job, begin)
            action = replace(action, before={**action.before, "set": [begin]})
        self._prepared(action, {**action.before, "until": begin}, again=True)

    def _prepared(self, action: Action, before: dict[str, Any], *, again: bool = False) -> Action:
        if action.before and not again:
            return action
        actions.prepare(self.store, action, before)
        return replace(action, before=before)

    # --- back ------------------------------------------------------------------------------------

    def _release(self, action: Action, status: ActionStatus, text: str, now: int, who: str) -> None:
        """Restore what was before, as far as it is still ours to restore."""
        if action.before:
            standing = self._standing(action)
            if standing is None or not standing.pending:
                return self._end(action, ActionStatus.OVER, now, _STARTED if standing else _GONE, who)
            if action.kind is ActionKind.HOLD and standing.held == "admin":
                self.actuator.release(action.job, to_owner=action.before["held"] == "user")
            elif action.kind is ActionKind.LEASE and action.before["set"] and _is_ours(action, standing):
                self.actuator.delay(action.job, _restored(action, now))
            self._remark(action, "")
        return self._end(action, status, now, text, who)

    def _remark(self, action: Action, text: str) -> None:
        """On Slurm 22.05 only administrators may write it; the action works without."""
        with suppress(ClusterError):
            self.actuator.comment(action.job, text)

    def _standing(self, action: Action) -> Standing | None:
        try:
            return self.actuator.standing(action.job)
        except NotFound:
            return None

    def _end(self, action: Action, status: ActionStatus, now: int, text: str, who: str = BY_POLICY) -> None:
        actions.settle(self.store, action, status, at=now, text=text, who=who)


def _ending(action: Action, now: int) -> tuple[ActionStatus, str] | None:
    """Why an action must not go on."""
    if action.dismissed:
        return ActionStatus.UNDONE, f"case {action.case} was dismissed"
    if action.expires is not None and now >= action.expires:
        return ActionStatus.EXPIRED, "its time is over"
    return None


def _is_ours(action: Action, standing: Standing) -> bool:
    """Whether the job's earliest start is the one that was there before, or one that we set."""
    return standing.begin in (None, action.before["begin"], *action.before["set"])


def _restored(action: Action, now: int) -> int:
    return max(action.before["begin"] or 0, now)
