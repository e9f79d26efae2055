"""The service: a process that follows clusters, keeps their history, and answers from it."""

import gc
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from tocsin.app.app import App
from tocsin.app.check import Explained, ScriptQuestion, check_stored, explain
from tocsin.app.checker_process import CheckerProcess
from tocsin.app.clusters import MISREAD
from tocsin.app.judge import untrained
from tocsin.app.learner import Learner
from tocsin.app.ledger import open_history, past_jobs
from tocsin.app.loop import Output
from tocsin.app.tasks import Tasks
from tocsin.app.watch import Followed, Observer, WatchRequest, follow
from tocsin.core.errors import NotFound, TocsinError
from tocsin.core.stages import Stage
from tocsin.core.units import format_instant
from tocsin.core.verdict import Verdict

if TYPE_CHECKING:
    from tocsin.core.detector import Detector
    from tocsin.store.outbox import SinkState
    from tocsin.watch.loop import Stop
    from tocsin.watch.watcher import Round

__all__ = ["ClusterState", "Reason", "Service", "ServiceRequest"]

_Written = TypeVar("_Written")

LONGEST_ROUND = 120
"""Seconds after which a round that was due counts as hanging."""
LONGEST_ANSWER = 12.0
"""Seconds beyond the usual time after which slurmctld counts as hanging. Slurm's own limit is 10 (MessageTimeout), whose
error says more; this is for a limit that is longer, and for a slurmrestd that hangs itself."""
AGAIN = 15.0
"""Seconds until a watch that could not start is retried."""
READ_EVERY = 10.0
"""Seconds between two readings of the store by a service that does not watch."""
OVERLAP = 3600
"""Seconds: records that reach the store this late are still learned."""
_DOCTOR = "run `tocsin doctor`, which tests each link to Slurm and the store"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceRequest:
    watch: bool = True
    """Follow the clusters; otherwise, another process does, and their history is read from the store."""
    demo: bool = False
    speed: float = 60.0
    """Demo speed: simulated seconds per real second."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why the service is not fully functional."""

    part: str
    ready: bool
    """Whether it still answers, with reduced function."""
    text: str
    remedy: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class ClusterState(Observer):
    """What the service knows of one cluster, as reported by its watch."""

    def __init__(
        self,
        name: str | None,
        changed: "Callable[[ClusterState, Round | None], None]",
        stored: Callable[[], None] = lambda: None,
    ) -> None:
        self.name = name
        self.followed: Followed | None = None
        self.checker: CheckerProcess | None = None
        self.problem: str | None = None
        self.last: float | None = None
        """When the last round ended."""
        self.due = time.time()
        self.queued: int | None = None
        """Jobs in the queue that have not ended; None if unknown."""
        self.notes: Sequence[str] = ()
        """What the last round could not read; the rest of it succeeded."""
        self._changed, self._stored = changed, stored

    def stored(self) -> None:
        self._stored()

    def began(self, followed: Followed) -> None:
        self.name, self.followed, self.problem = followed.name, followed, None
        self.due = time.time()
        self._changed(self, None)

    def finished(self, done: "Round") -> None:
        self.queued, self.notes = done.queued, tuple(done.problems)
        self._changed(self, done)

    def waiting(self, pause: float, problem: str | None) -> None:
        now = time.time()
        self.problem, self.due = problem, now + pause
        if problem is None:
            self.last = now

    def failed(self, error: Exception) -> None:
        self.problem, self.due = str(error), time.time() + AGAIN

    def reason(self) -> Reason | None:
        """Why the cluster is not followed as it should be."""
        part = f"cluster {self.name or 'of this host'}"
        if self.problem:
            without = "" if self.name else "; where there is no Slurm, use --no-watch"
            return Reason(part, False, self.problem, _DOCTOR + without)
        if self.checker is not None and (problem := self.checker.problem):
            return Reason(
                part, False, f"its models cannot be loaded: {problem}", "run `tocsin models verify`"
            )
        if self.followed is None or self.checker is None or not self.checker.is_ready:
            return Reason(part, False, "its history is being loaded", "wait; this takes seconds to minutes")
        if (overdue := self.followed.overdue()) > LONGEST_ANSWER:
            return Reason(part, False, f"slurmctld has not answered for {overdue:.0f} s", _DOCTOR)
        if time.time() > self.due + LONGEST_ROUND:
            return Reason(part, False, f"no answer for {time.time() - self.due:.0f} s", _DOCTOR)
        return None


class Service:
    """Start it, call it from any thread, and stop it."""

    def __init__(
        self,
        app: App,
        request: ServiceRequest,
        output: Output,
        *,
        on_round: Callable[[str, Sequence[Verdict]], None] = lambda _name, _verdicts: None,
        on_stored: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_stored` is called during a round, once some of its verdicts are stored."""
        self.app, self.request = app, request
        self.tasks = Tasks(app, app.settings.service.workers)
        # there is nothing to learn from simulated jobs
        self.learner = Learner(app, self.tasks, retrains=not request.demo)
        self.states: list[ClusterState] = []
        self._output, self._on_round, self._on_stored = output, on_round, on_stored
        self._slow = ThreadPoolExecutor(2, "ask")
        """For answers that may take seconds."""
        self._threads: list[threading.Thread] = []
        self._stop: Stop | None = None

    @cached_property
    def _detectors(self) -> "dict[str, Detector]":
        from tocsin.judge.plugins import find_detectors

        return find_detectors()

    # --- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start following clusters; what takes seconds happens in threads."""
        from tocsin.watch.loop import Stop

        self._stop = Stop()
        app = self.app
        # Opened here, once: several threads would each open their own.
        app.home.prepare(), app.store, app.registry, app.settings
        for name in self._clusters():
            state = ClusterState(name, self._changed, self._on_stored)
            self.states.append(state)
            thread = threading.Thread(
                target=self._run, args=(state,), name=f"watch {name or ''}", daemon=True
            )
            self._threads.append(thread)
            thread.start()
        thread = threading.Thread(target=self.learner.run, args=(self._stop,), name="learn", daemon=True)
        self._threads.append(thread)
        thread.start()

    def stop(self) -> None:
        """End all threads and child processes, and save histories."""
        self.tasks.close()
        if self._stop:
            self._stop.set()
        for thread in self._threads:
            thread.join()
        for state in self.states:
            if state.checker is not None:
                state.checker.close()
        self._slow.shutdown(cancel_futures=True)
        if self._stop:
            self._stop.__exit__()
            self._stop = None

    def _clusters(self) -> Sequence[str | None]:
        from tocsin.store.jobs import cluster_names

        if self.request.demo:
            return ["demo"]
        configured = list(self.app.settings.cluster)
        if not self.request.watch:
            return sorted({*configured, *cluster_names(self.app.store)})
        return configured or [None]

    def _run(self, state: ClusterState) -> None:
        """Follow one cluster until the service ends; an error is shown in `/readyz`, and the watch is restarted."""
        assert self._stop, "it was started"
        reported = ""
        while True:
            try:
                self._follow(state) if self.request.watch else self._read(state)
            except Exception as error:  # no error may end the watch for good
                state.failed(error)
                if not isinstance(error, TocsinError | OSError):
                    logging.getLogger("tocsin.service").exception("the watch of %s failed", state.name)
                if str(error) != reported:
                    self.app.notify(f"tocsin: {state.name or 'this host'}: {error} (trying again)")
                    reported = str(error)
            if self._stop.wait(AGAIN if state.problem else 0):
                return

    def _follow(self, state: ClusterState) -> None:
        assert self._stop, "it was started"
        demo = self.request.demo
        asked = WatchRequest(cluster=state.name, demo=demo, speed=self.request.speed)
        follow(self.app, asked, self._output, self._stop, state, scripted_jobs=demo)

    def _read(self, state: ClusterState) -> None:
        """Keep the history of a cluster that another process follows up to date."""
        assert self._stop, "it was started"
        assert state.name, "named by the store or the settings"
        with open_history(self.app, state.name) as (ledger, _):
            state.began(Followed(state.name, ledger, time.time, live=state.name != "demo"))
            while True:
                ledger.advance(int(time.time()))
                state.waiting(READ_EVERY, None)
                if self._stop.wait(READ_EVERY):
                    return
                ledger.learn(past_jobs(self.app.store, state.name, ledger.known_until - OVERLAP))

    def _changed(self, state: ClusterState, done: "Round | None") -> None:
        if state.followed and done is None:
            if state.checker is not None:  # from a watch that failed and restarted with a history of its own
                state.checker.close()
            # The history stays, so the garbage collector need not scan it again, which would stop all threads for
            # tenths of a second each time.
            gc.collect()
            gc.freeze()
            state.checker = CheckerProcess(self.app, state.followed)
        if done is not None and state.name:
            self._on_round(state.name, done.verdicts)

    # --- answers ---------------------------------------------------------------------------------

    def check(
        self, asked: ScriptQuestion, cluster: str | None, write: Callable[[Verdict], _Written]
    ) -> "Future[_Written]":
        """The verdict on a script as if it were submitted now, rendered where it is computed: `write` is a module-level
        function with picklable values. Does not block."""
        state = self.state_of(cluster)
        if state is None or state.checker is None:
            return self._slow.submit(lambda: write(check_stored(self.app, asked, cluster=cluster)))
        return state.checker.check(asked, write)

    def explain(self, job: str, *, cluster: str | None = None, stage: Stage = Stage.SUBMIT) -> Explained:
        """The verdict on a job in the store, from what was known at the stage."""
        return self._slow.submit(explain, self.app, job, cluster=cluster, stage=stage).result()

    def state_of(self, cluster: str | None) -> ClusterState | None:
        """The named cluster, or the only one, if it is followed."""
        if cluster is None:
            return self.states[0] if len(self.states) == 1 else None
        return next((state for state in self.states if state.name == cluster), None)

    def reasons(self) -> Iterator[Reason]:
        """Why the service is not ready, or not fully functional."""
        from tocsin.store.jobs import cluster_names

        try:
            cluster_names(self.app.store)
        except TocsinError as error:
            yield Reason("store", False, str(error), "wait for the import or backup, or check the disk")
            return
        for state in self.states:
            if reason := state.reason():
                yield reason
            elif state.followed:
                for note in state.notes:
                    yield Reason(f"cluster {state.name}", True, note, _DOCTOR)
                for concern in state.followed.concerns():
                    yield Reason(f"cluster {state.name}", True, concern, MISREAD)
        yield from self._missing_models()
        for name, sink in self.sinks().items():
            if sink.problem:
                text = f"it has taken no message since {format_instant(sink.since)}; {sink.waiting:,} are waiting"
                yield Reason(f"sink {name}", True, text, "run `tocsin doctor`, which names the reason")

    def sinks(self) -> "dict[str, SinkState]":
        """Delivery by each sink in the settings; none while the store does not answer."""
        from tocsin.store.outbox import states

        try:
            return states(self.app.store, self.app.settings.sinks)
        except TocsinError:
            return {}

    def _missing_models(self) -> Iterator[Reason]:
        names = [state.name for state in self.states] or [None]
        for name, detector in self._detectors.items():
            if detector.learns and Stage.SUBMIT in detector.stages:
                for cluster in names:
                    if self.app.registry.champion(name, Stage.SUBMIT, cluster) is None:
                        text = f"no model of {name} is in use at submission"
                        yield Reason(
                            f"model {name}",
                            True,
                            text,
                            untrained(name, Stage.SUBMIT, self.app.registry.folder),
                        )
                        break

    def machine_of(self, cluster: str | None) -> Any:
        """Nodes and partitions, as the watch last read them."""
        state = self.state_of(cluster)
        machine = state.followed.ledger.machine if state and state.followed else None
        if machine is None:
            named = f' of cluster "{cluster}"' if cluster else ""
            raise NotFound(f"the nodes{named} are not known; the service follows them only while it watches")
        return machine
