"""The simulation: events in order of time, run up to a given instant."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from heapq import heappop, heappush
from random import Random

from tocsin.core.errors import ClusterError
from tocsin.demo.behaviour import DAY, again, next_attempt_at, session, sessions_of_day
from tocsin.demo.endings import ending_of, usage
from tocsin.demo.faults import BadNode, Outage, bad_nodes, outages
from tocsin.demo.jobs import Ending, Record, Submission
from tocsin.demo.machine import QUEUES, Host, build
from tocsin.demo.mistakes import Cause
from tocsin.demo.people import USERS, User
from tocsin.demo.scheduler import Scheduler

__all__ = ["Simulation"]

FIRST_ID = 1001
PASS_DELAY = 3  # seconds from an event to the scheduler's next pass
REQUEUE_DELAY = 120  # seconds for which Slurm delays a requeued job

_PUT_BACK = {"NODE_FAIL", "REQUEUED", "PREEMPTED"}


class Simulation:
    """Deterministic by its seed and the calls made to it, however long the steps are."""

    def __init__(self, seed: int, start: int) -> None:
        self.seed = seed
        self.start = start
        self.now = start
        self.hosts = build()
        self.scheduler = Scheduler(self.hosts)
        self.records: dict[tuple[int, int | None, int], Record] = {}
        """All records, including arrays whose tasks have all started."""
        self.running: dict[int, Record] = {}
        self.ended: list[Record] = []
        """In order of their ends."""
        self.scripts: dict[str, str] = {}
        self._host = {host.name: host for hosts in self.hosts.values() for host in hosts}
        self._events: list[tuple[int, int, Callable[[], object]]] = []
        self._count = 0
        self._next_id = FIRST_ID
        self._pass_due = False
        self._outage: Outage | None = None
        self._people = {name: self._random("user", name) for name in USERS}
        self._outages = outages(start, self._random("outages"))
        self._bad_nodes = bad_nodes(
            start, [host.name for host in self.hosts["cpu"][:10]], self._random("nodes")
        )
        self._at(start, self._day)
        self._next_outage()
        self._next_bad_node()

    def advance(self, until: int) -> None:
        """Process all events up to and including this instant."""
        while self._events and self._events[0][0] <= until:
            self.now, _, action = heappop(self._events)
            action()
        self.now = max(self.now, until)

    def submit(self, submission: Submission) -> Record:
        request = submission.request
        record = Record(
            job_id=self._next_id,
            raw_id=self._next_id,
            task=None,
            submit=self.now,
            eligible=self.now,
            submission=submission,
            request=request,
            priority=1000 * (1 + QUEUES[request.partition].tier),
            waiting=list(request.tasks),
        )
        self._next_id += 1
        if submission.script is not None and submission.sha is not None:
            self.scripts[submission.sha] = submission.script
        self._enqueue(record)
        self._at(self.now + submission.patience, partial(self._give_up, record))
        return record

    def hold(self, record: Record, reason: str) -> None:
        self._pending(record).held = reason

    def release(self, record: Record) -> None:
        self._pending(record).held = None
        self._soon()

    def alive(self) -> Iterator[Record]:
        """Pending and running records."""
        yield from self.scheduler.waiting
        yield from self.running.values()

    def _pending(self, record: Record) -> Record:
        if record.state != "PENDING":
            raise ClusterError(
                f"job {record.job_id} is {record.state}, not pending; it can no longer be held"
            )
        return record

    # events

    def _at(self, instant: int, action: Callable[[], object]) -> None:
        self._count += 1
        heappush(self._events, (instant, self._count, action))

    def _random(self, *what: object) -> Random:
        """A separate random stream for each user, job and purpose, so that none affects another."""
        return Random("/".join(map(str, (self.seed, *what))))  # noqa: S311  # a simulation, not a secret

    def _day(self) -> None:
        day = (self.now - self.start) // DAY
        weekday = (self.now // DAY + 3) % 7  # 1 January 1970 was a Thursday
        for name, user in USERS.items():
            if day >= user.joins:
                for seconds in sessions_of_day(user, weekday, self._people[name]):
                    self._at(self.now + seconds, partial(self._session, user))
        self._at(self.now + DAY, self._day)

    def _session(self, user: User) -> None:
        for seconds, submission in session(user, self._people[user.name]):
            self._at(self.now + seconds, partial(self.submit, submission))

    def _soon(self) -> None:
        """Schedule the next scheduler pass, unless one is scheduled."""
        if not self._pass_due:
            self._pass_due = True
            self._at(self.now + PASS_DELAY, self._pass)

    def _pass(self) -> None:
        self._pass_due = False
        for record, hosts, victims in self.scheduler.starts(self.now):
            for victim in victims:
                self._finish(victim, Ending(0, "PREEMPTED", Cause.PREEMPTED))
            if record.waiting:
                self._begin(self._task(record), hosts)
            else:
                self.scheduler.remove(record)
                self._begin(record, hosts)

    # the life of a record

    def _enqueue(self, record: Record) -> None:
        self.records[record.job_id, record.task, record.submit] = record
        self.scheduler.add(record)
        self._soon()

    def _task(self, array: Record) -> Record:
        """The next task of an array as its own record; the last task takes the array's record."""
        number = array.waiting.pop(0)
        array.alive += 1
        raw_id = array.raw_id
        if array.waiting:
            raw_id = self._next_id
            self._next_id += 1
        else:
            array.state = "RUNNING"
            self.scheduler.remove(array)
        task = array.successor(raw_id=raw_id, task=number, parent=array)
        self.records[task.job_id, task.task, task.submit] = task
        return task

    def _begin(self, record: Record, hosts: list[Host]) -> None:
        record.state, record.start = "RUNNING", self.now
        record.nodes = tuple(host.name for host in hosts)
        for host in hosts:
            host.allocate(record)
        self.running[record.raw_id] = record
        rng = self._rng(record)
        self._end_by(record, ending_of(record, hosts[0], rng))
        if self._outage:
            self._end_by(record, Ending(rng.randrange(2, 40), "FAILED", Cause.OUTAGE, exit_code=1))

    def _rng(self, record: Record) -> Random:
        return self._random(record.job_id, record.task, record.submit, record.end)

    def _end_by(self, record: Record, ending: Ending) -> None:
        """Schedule this end, unless something else ends it first."""
        self._at(self.now + ending.seconds, partial(self._finish, record, ending))

    def _finish(self, record: Record, ending: Ending) -> None:
        if record.end is not None or record.start is None:
            return
        del self.running[record.raw_id]
        hosts = [self._host[name] for name in record.nodes]
        for host in hosts:
            host.release(record)
        self._close(record, ending)
        record.usage = usage(record, hosts, self.now - record.start, rng := self._rng(record))
        if record.state in _PUT_BACK and record.request.requeue:
            self._requeue(record)
        elif record.parent is None:
            self._react([record], rng)
        else:
            array = record.parent
            array.alive -= 1
            if record.cause is not Cause.NONE:
                array.failed.append(record)
            if not array.alive and not array.waiting and array.failed:
                self._react(array.failed, rng)
        self._soon()

    def _close(self, record: Record, ending: Ending) -> None:
        record.end, record.state, record.cause = self.now, ending.state, ending.cause
        record.exit_code, record.exit_signal = ending.exit_code, ending.exit_signal
        record.cancelled_by = record.submission.user.uid if ending.by_user else None
        self.ended.append(record)

    def _requeue(self, record: Record) -> None:
        """The same id again, with a new submit instant."""
        record.requeued = True
        eligible = self.now + REQUEUE_DELAY
        self._enqueue(record.successor(submit=self.now, eligible=eligible))
        self._at(eligible, self._soon)

    def _give_up(self, record: Record) -> None:
        """The user cancels it; for an array, the tasks that have not started."""
        if record.state == "PENDING":
            self.scheduler.remove(record)
            self._close(record, Ending(0, "CANCELLED", Cause.GAVE_UP_WAITING, by_user=True))
            record.usage = {"elapsed": 0}

    def _react(self, records: Sequence[Record], rng: Random) -> None:
        submission = again(records, rng)
        if submission:
            at = next_attempt_at(self.now, submission.user, rng)
            self._at(at, partial(self.submit, submission))

    # the machine

    def _next_outage(self) -> None:
        outage = next(self._outages)
        self._at(outage.begins, partial(self._outage_begins, outage))
        self._at(outage.noticed, self._outage_noticed)
        self._at(outage.ends, self._outage_ends)

    def _outage_begins(self, outage: Outage) -> None:
        """Jobs that access the file system during the outage fail."""
        self._outage = outage
        for record in self.running.values():
            seconds = self._rng(record).randint(1, record.submission.application.checkpoint)
            if self.now + seconds < outage.ends:
                self._end_by(record, Ending(seconds, "FAILED", Cause.OUTAGE, exit_code=1))

    def _outage_noticed(self) -> None:
        self.scheduler.open = False
        for record in list(self.running.values()):
            if record.request.requeue:
                self._finish(record, Ending(0, "REQUEUED", Cause.OUTAGE))

    def _outage_ends(self) -> None:
        self._outage = None
        self.scheduler.open = True
        self._soon()
        self._next_outage()

    def _next_bad_node(self) -> None:
        bad = next(self._bad_nodes)
        for fault in bad.faults:
            self._at(fault.at, partial(self._fault, bad, fault.down))
        self._at(bad.faults[-1].at + 1, self._next_bad_node)

    def _fault(self, bad: BadNode, down: int) -> None:
        """Its disk gives errors, or the node goes down with all its jobs."""
        host = self._host[bad.node]
        crash = Ending(0, "NODE_FAIL", Cause.BAD_NODE, exit_code=1)
        error = Ending(0, "FAILED", Cause.BAD_NODE, exit_code=135)
        for record in list(host.jobs.values()):
            self._finish(record, crash if down else error)
        if down:
            host.up, host.reason = False, "Not responding"
            self._at(self.now + down, partial(self._node_returns, host))

    def _node_returns(self, host: Host) -> None:
        host.up, host.reason = True, None
        self._soon()
