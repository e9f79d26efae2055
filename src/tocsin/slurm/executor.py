"""Carries out planned actions, renews leases, and releases actions that have expired or lost their reason.

The process may be killed at any point. What will be changed is stored before it is changed, every step asks Slurm for
the state of the job, and repeating a step changes nothing. A lease ends by itself; a hold is released by the service,
`tocsin expire` or a person, whichever comes first.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf

from tocsin.core.actions import IN_FORCE, INTERVENTIONS, ActionKind, ActionStatus
from tocsin.core.errors import ClusterError, InputError, NotFound
from tocsin.core.ports import Actuator, QueueState
from tocsin.slurm.leases import Leases, begin_without_lease, start_not_moved, why_ending, with_previous_state
from tocsin.store import actions
from tocsin.store.actions import BY_POLICY, Action
from tocsin.store.database import Store

__all__ = ["Executor"]

_TRIES_FOR = 600
"""Seconds for which an action that Slurm refuses is retried."""
_TASKS_FOR = 7 * 86400
"""Seconds for which tasks delayed by an action on their array are looked for."""
_GONE = "the job has left the queue"
_STARTED = "the job was no longer pending"


@dataclass(frozen=True, slots=True)
class Executor:
    """The actions of one cluster. `act`: whether planned actions are carried out; releases always are."""

    store: Store
    actuator: Actuator
    lease: int
    """Seconds by which a lease delays a start."""
    act: bool
    seconds: Callable[[], float] = time.monotonic
    uncommented: list[Action] = field(default_factory=list)
    """Leases whose jobs have no comment yet: that can wait, unlike everything else."""

    @property
    def _leases(self) -> Leases:
        return Leases(self.store, self.actuator, self.lease)

    def step(self, now: int, *, within: float = inf, tasks: bool = True) -> list[str]:
        """Advance every open action; returns what went wrong, to be retried.

        After `within` seconds, what can wait is left for the next step. `tasks`: whether any task of an array may have
        got a record of its own since the last one.
        """
        deadline = self.seconds() + within
        problems = self._advance_all(actions.open_actions(self.store, self.actuator.name), now, deadline)
        self._write_comments(deadline)
        if tasks:
            actions.mark_tasks(self.store, self.actuator.name, now - _TASKS_FOR)
        return problems

    def carry_out_planned(self, jobs: Collection[str], now: int, *, within: float = inf) -> list[str]:
        """Carry out at once what is planned on the jobs with these keys; returns what went wrong.

        The next step adds comments to the jobs that say why they were delayed.
        """
        return self._advance_all(actions.planned_on(self.store, jobs), now, self.seconds() + within)

    def _advance_all(self, wanted: Iterable[Action], now: int, deadline: float) -> list[str]:
        problems, tried = list[str](), False

        def can_wait(action: Action) -> bool:
            return tried and not _is_urgent(action) and self.seconds() > deadline

        for few in self._batches(self._due(wanted, now)):
            if can_wait(few[0]):
                break
            self._look_up(few)
            others = self._leases.renew_together(few, now)
            tried = tried or len(others) < len(few)
            for action in others:
                if can_wait(action):
                    break
                problems += self._try(action, now)
                tried = True
        return problems

    def _batches(self, wanted: Sequence[Action]) -> Iterator[Sequence[Action]]:
        few = self.actuator.batch_size
        return (wanted[first : first + few] for first in range(0, len(wanted), few))

    def _look_up(self, few: Sequence[Action]) -> None:
        with suppress(ClusterError, NotFound):  # then each is queried separately
            self.actuator.look_up([action.job for action in few])

    def _due(self, wanted: Iterable[Action], now: int) -> list[Action]:
        """The actions with something to do, in the order in which it must be done.

        The most severe planned ones come first: a job that is to be held may start at any second.
        """
        open_ones = list(wanted)
        in_force = [action.job for action in open_ones if action.status is ActionStatus.DONE]
        started = actions.started(self.store, in_force) if in_force else set()
        found = []
        for action in open_ones:
            if action.status is not ActionStatus.DONE:
                found.append((0, -action.kind.severity, action))
            elif action.job in started:
                self._end(action, ActionStatus.OVER, now, _STARTED)
            elif why_ending(action, now):
                found.append((1, 0, action))
            elif action.kind is ActionKind.LEASE and self._leases.needs_renewal(action, now):
                found.append((2, action.before["until"], action))
        return [action for *_, action in sorted(found, key=lambda one: one[:2])]

    def _try(self, action: Action, now: int) -> list[str]:
        try:
            self._advance(action, now)
        except NotFound:  # it has just left the queue
            self._end(action, ActionStatus.OVER, now, _GONE)
        except ClusterError as error:
            actions.note(self.store, action, str(error))
            if action.status is ActionStatus.PLANNED and now - action.at > _TRIES_FOR:
                self._end(action, ActionStatus.FAILED, now, str(error))
            return [f"action {action.id} ({action.kind} of {action.job}): {error}"]
        return []

    def expire(self, now: int) -> tuple[int, list[str]]:
        """Release what has expired, or whose case was dismissed, and nothing else; returns how many, and what failed."""
        released, problems = 0, []
        for action in actions.open_actions(self.store, self.actuator.name):
            if action.status is ActionStatus.DONE and (ending := why_ending(action, now)):
                try:
                    self._release(action, *ending, now, BY_POLICY)
                    released += 1
                except ClusterError as error:
                    problems.append(f"action {action.id} ({action.kind} of {action.job}): {error}")
        return released, problems

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
                f"action {action.id} is a {action.kind}, which cannot be undone"
                + ("; submit the job again" if action.kind is ActionKind.CANCEL else "")
            )

    # --- forward ---------------------------------------------------------------------------------

    def _advance(self, action: Action, now: int) -> None:
        if ending := why_ending(action, now):
            self._release(action, *ending, now, BY_POLICY)
        elif action.status is ActionStatus.DONE:
            self._renew(action, now)
        elif not self.act:
            self._release(action, ActionStatus.UNDONE, "policy.mode is not act any more", now, BY_POLICY)
        else:
            self._carry_out(action, now)

    def carry_out(self, action: Action, now: int, *, who: str) -> None:
        """Carry out a planned action, whatever the policy."""
        self._carry_out(action, now, who)
        self._write_comments()

    def _carry_out(self, action: Action, now: int, who: str = BY_POLICY) -> None:
        queue_state = self._queue_state(action)
        if queue_state is None:
            return self._end(action, ActionStatus.OVER, now, _GONE)
        if action.kind in IN_FORCE and not queue_state.pending:
            return self._end(action, ActionStatus.OVER, now, _STARTED)
        if action.kind is ActionKind.HOLD:
            if queue_state.held == "admin" and not action.before:
                return self._end(action, ActionStatus.OVER, now, "an administrator holds the job already")
            action = with_previous_state(self.store, action, {"held": queue_state.held})
            if queue_state.held != "admin":
                self.actuator.hold(action.job, action.reason)
        elif action.kind is ActionKind.LEASE:
            action = with_previous_state(
                self.store, action, {"begin": queue_state.begin, "set": [], "until": 0}
            )
            self._leases.delay_start(action, queue_state, now)
            self.uncommented.append(action)
        elif action.kind is ActionKind.CANCEL:
            self.actuator.cancel(action.job)
        else:
            self.actuator.comment(action.job, action.reason)
        marked = action.kind in INTERVENTIONS
        actions.settle(self.store, action, ActionStatus.DONE, at=now, who=who, intervened=marked)
        return None

    def _renew(self, action: Action, now: int) -> None:
        """If the owner has moved the start meanwhile, that stays."""
        queue_state = self._queue_state(action)
        if queue_state is None or not queue_state.pending:
            self._end(action, ActionStatus.OVER, now, _STARTED if queue_state else _GONE)
        elif not self._leases.renew(action, queue_state, now):
            self._end(action, ActionStatus.UNDONE, now, "the owner of the job moved its start")

    # --- back ------------------------------------------------------------------------------------

    def _release(self, action: Action, status: ActionStatus, text: str, now: int, who: str) -> None:
        """Restore the previous state, as far as it is still ours to restore."""
        if action.before:
            queue_state = self._queue_state(action)
            if queue_state is None or not queue_state.pending:
                return self._end(action, ActionStatus.OVER, now, _STARTED if queue_state else _GONE, who)
            if action.kind is ActionKind.HOLD and queue_state.held == "admin":
                self.actuator.release(action.job, to_owner=action.before["held"] == "user")
            elif (
                action.kind is ActionKind.LEASE
                and action.before["set"]
                and start_not_moved(action, queue_state)
            ):
                self.actuator.delay(action.job, begin_without_lease(action, now))
            self._comment(action, "")
        return self._end(action, status, now, text, who)

    def _write_comments(self, deadline: float = inf) -> None:
        """Write comments that say why jobs were delayed."""
        while self.uncommented and self.seconds() <= deadline:
            number = self.actuator.batch_size
            few, self.uncommented[:number] = self.uncommented[:number], []
            self._look_up(few)
            for action in few:
                if actions.find(self.store, action.id).status is ActionStatus.DONE:  # not undone meanwhile
                    self._comment(action, action.reason)

    def _comment(self, action: Action, text: str) -> None:
        """On Slurm 22.05, only administrators may write it; the action works without."""
        with suppress(ClusterError, NotFound):
            self.actuator.comment(action.job, text)

    def _queue_state(self, action: Action) -> QueueState | None:
        try:
            return self.actuator.queue_state(action.job)
        except NotFound:
            return None

    def _end(self, action: Action, status: ActionStatus, now: int, text: str, who: str = BY_POLICY) -> None:
        actions.settle(self.store, action, status, at=now, text=text, who=who)


def _is_urgent(action: Action) -> bool:
    """Whether its job could start, or continue, at any second."""
    return action.status is ActionStatus.PLANNED and action.kind in (ActionKind.HOLD, ActionKind.CANCEL)
