"""Actions on jobs: carried out while a cluster is followed, listed, undone, and released when they expire."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tocsin.app.app import App
from tocsin.app.clusters import live_cluster
from tocsin.app.policy import action_policy
from tocsin.core.actions import Mode
from tocsin.core.errors import ClusterError, InputError
from tocsin.core.ids import parse_key
from tocsin.core.stages import Stage
from tocsin.core.verdict import ALARMS
from tocsin.store.home import user_name

if TYPE_CHECKING:
    from tocsin.core.ports import Actuator
    from tocsin.core.verdict import Verdict
    from tocsin.slurm.executor import Executor
    from tocsin.store.actions import Action
    from tocsin.store.outbox import Subscriptions

__all__ = [
    "Acting",
    "ActionRequest",
    "Expired",
    "actions_on",
    "expire",
    "list_actions",
    "mode_text",
    "show_action",
    "undo",
]

_SECONDS = 1.0
"""Time limit per call for actions that can wait; no new jobs are examined meanwhile."""


class Acting:
    """Acts on jobs of a followed cluster as policy says: on alarms at once, on everything else after each round."""

    def __init__(self, app: App, actuator: "Actuator", sinks: "Subscriptions | None" = None) -> None:
        self._app = app
        self._sinks = sinks
        self._policy = action_policy(app)
        self._executor = open_executor(app, actuator, act=self._policy.mode is Mode.ACT)
        self._first = True

    def on_verdicts(self, verdicts: Sequence["Verdict"], now: int) -> None:
        """Carry out the actions planned with these verdicts; failed ones are retried after the round."""
        jobs = [v.job for v in verdicts if any(finding.level in ALARMS for finding in v.findings)]
        if jobs and self._policy.mode is Mode.ACT:
            self._executor.carry_out_planned(jobs, now, within=_SECONDS)

    def after_round(self, verdicts: Sequence["Verdict"], now: int) -> list[str]:
        """Plan actions that follow from ended tasks, and advance all actions; returns what went wrong."""
        if self._policy.mode is not Mode.ADVISE:
            self._plan_for_arrays(verdicts, now)
        # The first round finishes actions that another process left unfinished.
        tasks = self._first or any(parse_key(verdict.job).task is not None for verdict in verdicts)
        problems = self._executor.step(now, within=_SECONDS, tasks=tasks)
        self._first = False
        return problems

    def _plan_for_arrays(self, verdicts: Sequence["Verdict"], now: int) -> None:
        """Arrays whose first tasks have failed for one cause."""
        ended = [parse_key(verdict.job) for verdict in verdicts if verdict.stage is Stage.END]
        for cluster, array in sorted({(key.cluster, key.job_id) for key in ended if key.task is not None}):
            self._plan_for_array(cluster, array, now)

    def _plan_for_array(self, cluster: str, array: int, now: int) -> None:
        import polars as pl

        from tocsin.core.frames import key_text
        from tocsin.judge.actions import HOUR, failing_array, planned_actions
        from tocsin.store import actions, watching

        store = self._app.store
        jobs = watching.jobs_named(store, watching.arrays(store, cluster, [array])).sort("submit")
        tasks = (
            watching.tasks(store, cluster, array).filter(pl.col("outcome").is_not_null()).sort("end", "task")
        )
        if jobs.is_empty():
            return
        [row] = jobs.tail(1).with_columns(key_text()).to_dicts()
        verdict = failing_array(row["job"], row, tasks["outcome"].to_list(), self._policy, now)
        if verdict is None:
            return
        with store.writing() as connection:
            recent = actions.planned_since(connection, now - HOUR)
            for action in planned_actions([verdict], [row], self._policy, recent):
                actions.plan(connection, action, self._sinks)


def open_executor(app: App, actuator: "Actuator", *, act: bool) -> "Executor":
    from tocsin.slurm.executor import Executor

    return Executor(app.store, actuator, lease=app.settings.policy.lease_seconds, act=act)


def mode_text(app: App) -> str:
    """The actions of a process that follows a cluster."""
    return {
        Mode.ADVISE: "no job is held or changed",
        Mode.SHADOW: "no job is held or changed; `tocsin actions` lists what would be done",
        Mode.ACT: "jobs are delayed, held or cancelled as the policy says; `tocsin actions` lists them",
    }[action_policy(app).mode]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRequest:
    """Which actions to list."""

    everything: bool = False
    """Include actions that are neither planned nor in force."""
    user: str | None = None
    """The owner of the job."""
    job: str | None = None
    """The job's id or key."""
    limit: int | None = None


def list_actions(app: App, request: ActionRequest) -> "list[Action]":
    """Oldest first; with a limit, only the newest."""
    from tocsin.store import actions
    from tocsin.store.tables import actions as table

    wanted = [
        *([] if request.everything else [actions.can_be_undone()]),
        *([table.c.user == request.user] if request.user else []),
    ]
    keys = _keys(app, request.job) if request.job else None
    return actions.list_actions(app.store, *wanted, keys=keys, limit=request.limit)


def actions_on(app: App, jobs: Iterable[str]) -> "list[Action]":
    """All actions on the jobs with these keys, oldest first."""
    from tocsin.store import actions

    return actions.list_actions(app.store, keys=_with_arrays(jobs))


def _keys(app: App, job: str) -> list[str]:
    """The keys of the matching jobs."""
    from tocsin.app.jobs import find_jobs
    from tocsin.core.frames import key_text

    return _with_arrays(find_jobs(app, job, None).select(key_text()).to_series())


def _with_arrays(jobs: Iterable[str]) -> list[str]:
    """These keys and those of their arrays: an action on an array also applies to its tasks."""
    keys = [parse_key(job) for job in jobs]
    return sorted({str(each) for key in keys for each in (key, key._replace(task=None))})


def show_action(app: App, number: int) -> "Action":
    from tocsin.store import actions

    return actions.find(app.store, number)


def undo(
    app: App, numbers: Sequence[int] = (), *, everything: bool = False, note: str = "", who: str | None = None
) -> "list[Action]":
    """Undo these actions, or all that can be undone; returns them as they stand afterwards.

    If one fails, the error is raised only after the others were tried.
    """
    from tocsin.store import actions

    if everything:
        wanted = list_actions(app, ActionRequest())
    else:
        wanted = [actions.find(app.store, number) for number in numbers]
    problems = []
    for cluster, group in _by_cluster(wanted):
        with live_cluster(app, cluster) as live:
            executor = open_executor(app, live, act=False)
            for action in group:
                try:
                    executor.undo(action, who=who or user_name(), now=int(time.time()), note=note)
                except (ClusterError, InputError) as error:
                    problems.append(error)
    if problems:
        raise problems[0]
    return [actions.find(app.store, action.id) for action in wanted]


@dataclass(frozen=True, slots=True)
class Expired:
    cluster: str
    released: int
    problem: str = ""


def expire(app: App) -> list[Expired]:
    """Release expired actions on every cluster. This needs the store and Slurm, but not the service."""
    from tocsin.store import actions

    done = []
    for cluster in actions.open_clusters(app.store):
        try:
            with live_cluster(app, cluster) as live:
                released, problems = open_executor(app, live, act=False).expire(int(time.time()))
                done.append(Expired(cluster, released, "; ".join(problems)))
        except ClusterError as error:
            done.append(Expired(cluster, 0, str(error)))
    return done


def _by_cluster(wanted: "Sequence[Action]") -> "Iterator[tuple[str, list[Action]]]":
    for cluster in sorted({action.job.cluster for action in wanted}):
        yield cluster, [action for action in wanted if action.job.cluster == cluster]
