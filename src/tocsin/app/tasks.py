"""Long-running work in child processes: start it, follow it, and get its result."""

import threading
import time
import uuid
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, fields
from enum import StrEnum
from multiprocessing.connection import Connection
from typing import Any

from tocsin.app.app import App
from tocsin.app.children import BACKGROUND, Child, start
from tocsin.app.logs import LogRequest
from tocsin.app.task_files import TaskFiles
from tocsin.core.errors import InputError, NotFound, TocsinError
from tocsin.core.outcomes import Target
from tocsin.core.stages import Stage
from tocsin.core.units import format_instant

__all__ = ["Kind", "Task", "TaskState", "Tasks"]

MOST_KEPT = 100
MOST_WAITING = 10


class Kind(StrEnum):
    BACKTEST = "backtest"
    PROFILES = "profiles"
    TRAINING = "training"
    CONTEST = "contest"


class TaskState(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


_LIVING = (TaskState.WAITING, TaskState.RUNNING)


@dataclass(slots=True, kw_only=True)
class Task:
    """A piece of work; its values change while it runs."""

    id: str
    kind: Kind
    request: dict[str, Any]
    who: str
    created: int
    state: TaskState = TaskState.WAITING
    ended: int | None = None
    progress: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    error: str | None = None
    child: Child | None = field(default=None, repr=False)

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "kind": str(self.kind),
            "state": str(self.state),
            "request": self.request,
            "who": self.who,
            "created": format_instant(self.created),
            "ended": None if self.ended is None else format_instant(self.ended),
            "progress": self.progress,
            "error": self.error,
            "result": self.result,
        }


class Tasks:
    """The tasks of a service. The last ones are kept in the home folder; a restart marks running ones as failed."""

    def __init__(self, app: App, workers: int) -> None:
        self._app = app
        self._threads = ThreadPoolExecutor(max(1, workers), "task")
        self._files = TaskFiles(app.home.cache / "tasks")
        self._tasks = OrderedDict((task.id, task) for task in map(_restored, self._files.read()) if task)
        self._lock = threading.Lock()

    def start(self, kind: Kind, request: dict[str, Any], *, who: str) -> Task:
        """Start as soon as a worker is free; invalid requests are refused here."""
        _arguments(kind, request)
        with self._lock:
            if sum(task.state is TaskState.WAITING for task in self._tasks.values()) >= MOST_WAITING:
                raise InputError(f"{MOST_WAITING} tasks are waiting already; try again when some have ended")
            task = Task(id=uuid.uuid4().hex, kind=kind, request=request, who=who, created=int(time.time()))
            self._tasks[task.id] = task
            self._files.write(_stored(task))
            over = [each.id for each in self._tasks.values() if each.state not in _LIVING]
            for old in over[: max(0, len(self._tasks) - MOST_KEPT)]:
                del self._tasks[old]
                self._files.remove(old)
        self._threads.submit(self._supervise, task)
        return task

    def get(self, kind: Kind, number: str) -> Task:
        task = self._tasks.get(number)
        if task is None or task.kind is not kind:
            raise NotFound(f"no {kind} {number[:60]}; the service keeps the last {MOST_KEPT} tasks")
        return task

    def list(self, kind: Kind) -> list[Task]:
        """Newest first."""
        return [task for task in reversed(self._tasks.values()) if task.kind is kind]

    def running(self, kind: Kind) -> bool:
        """Whether one is running or waits for a worker."""
        return any(task.kind is kind and task.state in _LIVING for task in list(self._tasks.values()))

    def cancel(self, kind: Kind, number: str) -> Task:
        """Stop it, unless it has ended."""
        task = self.get(kind, number)
        with self._lock:
            if task.state in _LIVING:
                self._end(task, TaskState.CANCELLED)
                if task.child:
                    task.child.process.terminate()
        return task

    def close(self) -> None:
        for task in list(self._tasks.values()):
            self.cancel(task.kind, task.id)
        self._threads.shutdown(cancel_futures=True)

    def _supervise(self, task: Task) -> None:
        with self._lock:
            if task.state is not TaskState.WAITING:
                return
            task.state = TaskState.RUNNING
            app = App(self._app.config_file, self._app.folder, dict(self._app.environ))
            task.child = start(_work, app, task.kind, task.request, task.who, nice=BACKGROUND)
        state: TaskState = TaskState.FAILED
        value: Any = "its process died (out of memory?)"
        with suppress(EOFError, OSError):
            while True:
                what, sent = task.child.pipe.recv()
                if what != "progress":
                    state, value = TaskState(what), sent
                    break
                task.progress = sent
        task.child.pipe.close()
        task.child.process.join()
        with self._lock:
            if task.state is TaskState.RUNNING:
                task.result = value if state is TaskState.DONE else None
                task.error = None if state is TaskState.DONE else str(value)
                self._end(task, state)
            task.child = None

    def _end(self, task: Task, state: TaskState) -> None:
        task.state, task.ended = state, int(time.time())
        self._files.write(_stored(task))


def _stored(task: Task) -> dict[str, Any]:
    return {
        each.name: getattr(task, each.name) for each in fields(task) if each.name not in ("child", "progress")
    }


def _restored(document: dict[str, Any]) -> Task | None:
    """None if it comes from another version, with other kinds."""
    try:
        task = Task(**{**document, "kind": Kind(document["kind"]), "state": TaskState(document["state"])})
    except (KeyError, ValueError, TypeError):
        return None
    if task.state in _LIVING:
        task.state, task.ended = TaskState.FAILED, int(time.time())
        task.error = "the service was restarted meanwhile; start it again"
    return task


def _arguments(kind: Kind, request: dict[str, Any]) -> Any:
    """The request of `app` that this document describes."""
    from tocsin.app.threshold import parse_rule

    if kind is Kind.CONTEST:
        from tocsin.app.nightly import NightlyRequest

        return NightlyRequest(
            detectors=request.get("detectors", ()),
            cluster=request.get("cluster"),
            dry_run=request.get("dry_run", False),
        )
    log = LogRequest(cluster=request.get("cluster"))
    stage, target = Stage(request.get("stage", "submit")), request.get("target")
    if kind is Kind.PROFILES:
        return log
    rule = request.get("rule", "precision_at_least=0.8")
    parse_rule(rule)
    common: dict[str, Any] = {
        "log": log,
        "stage": stage,
        "target": Target(target) if target else None,
        "engine": "lightgbm",
        "rule": rule,
        "trials": request.get("trials", 4),
        "shortest": 0,
    }
    if kind is Kind.TRAINING:
        from tocsin.app.train import FailureRequest

        return FailureRequest(**common, seed=0, promote=request.get("promote", False))
    from tocsin.app.backtest import BacktestRequest

    return BacktestRequest(
        **common,
        train_days=request.get("train_days"),
        every_days=request.get("every_days", 7.0),
        predictions=None,
        audit=request.get("audit", False),
    )


def _work(app: App, kind: Kind, request: dict[str, Any], who: str, pipe: "Connection[Any, Any]") -> None:
    """Runs in the child."""
    last = 0.0

    def progress(label: str, done: int, of: int) -> None:
        nonlocal last
        if time.monotonic() - last > 0.5:
            last = time.monotonic()
            pipe.send(("progress", {"label": label, "done": done, "of": of}))

    app.progress = progress
    try:
        with app:
            pipe.send((str(TaskState.DONE), _result(app, kind, _arguments(kind, request), request, who)))
    except TocsinError as error:
        pipe.send((str(TaskState.FAILED), str(error)))


def _result(app: App, kind: Kind, arguments: Any, request: dict[str, Any], who: str) -> dict[str, Any]:
    if kind is Kind.BACKTEST:
        from tocsin.app.backtest import backtest

        return backtest(app, arguments)
    if kind is Kind.TRAINING:
        from tocsin.app.train import train_failure

        return train_failure(app, arguments)
    if kind is Kind.CONTEST:
        from tocsin.app.nightly import nightly

        return {"outcomes": [outcome.to_json() for outcome in nightly(app, arguments, who=who)]}
    from tocsin.app.profiles import profiles

    kind_of_profile, method = request.get("kind", "request"), request.get("method", "mixture")
    return profiles(app, arguments, kind_of_profile, method, request.get("k"))[0]
