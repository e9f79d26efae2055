"""User behaviour: sessions of submissions, and new attempts after failures."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from random import Random

from tocsin.demo.applications import APPLICATIONS, Application, Shape
from tocsin.demo.jobs import Record, Request, Submission
from tocsin.demo.machine import NODE_TYPES, QUEUES
from tocsin.demo.mistakes import MISTAKES, Cause, Mistake
from tocsin.demo.people import DAY_WEIGHTS, GROUPS, HABITS, HOUR_WEIGHTS, User
from tocsin.demo.script import write

__all__ = ["again", "compose", "next_attempt_at", "session", "sessions_of_day"]

GIB = 1024**3
HOUR = 3600
DAY = 24 * HOUR

# Amounts that users write: nobody requests 13.7 GiB or 97 minutes.
_MEMORY = [1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 120, 180, 256, 384, 512, 750, 1000]
_MINUTES = [10, 15, 30, 60, 120, 180, 240, 360, 480, 720, 1080, 1440, 2160, 2880, 4320]

_AS_IT_WAS = {Cause.BAD_NODE, Cause.OUTAGE, Cause.PREEMPTED}
_NO_NEXT = {Cause.NONE, Cause.CLOSED_BY_HAND, Cause.GAVE_UP_WAITING}


def sessions_of_day(user: User, weekday: int, rng: Random) -> list[int]:
    """Seconds after midnight at which the user's sessions begin."""
    mean = user.sessions * DAY_WEIGHTS[weekday]
    number, waited = 0, rng.expovariate(1)
    while waited < mean:  # a Poisson count, by the gaps between its events
        number += 1
        waited += rng.expovariate(1)
    hours = rng.choices(range(24), HOUR_WEIGHTS, k=number)
    return sorted((hour + user.hours) % 24 * HOUR + rng.randrange(HOUR) for hour in hours)


def session(user: User, rng: Random) -> list[tuple[int, Submission]]:
    """The submissions of one session, each with the seconds after its beginning."""
    habit = HABITS[user.habit]
    name, _, usual = rng.choices(user.runs, [weight for _, weight, _ in user.runs])[0]
    application = APPLICATIONS[name]
    size = usual * rng.lognormvariate(0, 0.35)
    mistake = _slip(habit.mistakes, rng)
    number = 1 + int(rng.expovariate(1 / (application.burst - 1))) if application.burst > 1 else 1
    if mistake:  # a job that fails at once is noticed before the rest is submitted
        number = min(number, 3)
    shape = rng.choice(application.shapes)
    system = rng.choice(application.systems)
    requeue = rng.random() < habit.requeue
    at, found = 0, []
    for _ in range(number):
        own = size * rng.lognormvariate(0, 0.12)
        submission = compose(
            user, application, rng, shape=shape, size=own, system=system, mistake=mistake, requeue=requeue
        )
        found.append((at, submission))
        at += rng.randrange(2, 120)
    return found


def compose(
    user: User,
    application: Application,
    rng: Random,
    *,
    shape: Shape | None = None,
    size: float | None = None,
    system: str | None = None,
    mistake: Mistake | None = None,
    requeue: bool = False,
    memory: int | None = None,
    time_limit: int | None = None,
) -> Submission:
    """One submission as this user would write it; arguments override the user's habits."""
    shape = shape or application.shapes[0]
    usual = next((usual for name, _, usual in user.runs if name == application.name), 1.0)
    size = usual if size is None else size
    system = system or application.systems[0]
    sizes = [size]
    if application.tasks[1]:
        least, most = application.tasks
        number = least if mistake else rng.randint(least, most)
        sizes = [size * rng.lognormvariate(0, 0.3) for _ in range(number)]
    request = _request(user, application, shape, max(sizes), usual, system, rng)
    request = replace(
        request,
        memory=request.memory if memory is None else memory,
        memory_given=request.memory_given or memory is not None,
        time_limit=time_limit or request.time_limit,
        time_given=request.time_given or time_limit is not None,
        requeue=requeue and application.program.script is not None,
        tasks=tuple(range(1, len(sizes) + 1)) if application.tasks[1] else (),
        throttle=rng.choice((0, 5, 10, 20)) if application.tasks[1] else 0,
    )
    return _written(
        Submission(
            user=user,
            application=application,
            request=request,
            system=system,
            needs=tuple(application.need(shape, each, rng) for each in sizes),
            mistake=mistake,
            garble=rng.randrange(100),
            patience=round(HABITS[user.habit].patience * HOUR * rng.lognormvariate(0, 0.5)),
            script=None,
            sha=None,
        )
    )


def again(records: Sequence[Record], rng: Random) -> Submission | None:
    """The next attempt after these failed (one job, or the failed tasks of an array); None if the user gives up."""
    before = records[0].submission
    habit = HABITS[before.user.habit]
    causes = {record.cause for record in records if record.cause}
    innocent = causes <= _AS_IT_WAS
    if causes <= _NO_NEXT or before.attempt >= habit.attempts or rng.random() >= habit.comes_back:
        return None
    mended = not innocent and rng.random() < habit.mends
    request = before.request
    if request.tasks:
        tasks = tuple(sorted(record.task for record in records if record.task is not None))
        needs = tuple(before.needs[request.tasks.index(task)] for task in tasks)
        request = replace(request, tasks=tasks, throttle=0)
    else:
        needs = before.needs
    if mended and Cause.TOO_LITTLE_MEMORY in causes:
        whole = NODE_TYPES[QUEUES[request.partition].node_type].memory
        request = _with_memory(request, 2 * (request.memory or whole))
    if mended and Cause.TOO_LITTLE_TIME in causes:
        partition = "main" if request.partition == "short" else request.partition
        limit = min(_round_up(2 * request.time_limit / 60, _MINUTES) * 60, QUEUES[partition].max_time)
        request = replace(request, partition=partition, time_limit=limit, time_given=True)
    mistake = None if mended else before.mistake
    return _written(
        replace(before, request=request, needs=needs, mistake=mistake, attempt=before.attempt + 1)
    )


def next_attempt_at(now: int, user: User, rng: Random) -> int:
    """When the user returns: within minutes during the day, else the next morning."""
    at = now + 60 + round(rng.lognormvariate(6.5, 0.8))  # about eleven minutes
    hour = (at % DAY) // HOUR - user.hours
    if 7 <= hour < 21:
        return at
    morning = at - at % DAY + (8 + user.hours) * HOUR + rng.randrange(2 * HOUR)
    return morning if morning > at else morning + DAY


def _request(
    user: User, application: Application, shape: Shape, size: float, usual: float, system: str, rng: Random
) -> Request:
    habit = HABITS[user.habit]
    partition = application.partition
    if partition == "main" and user.partition:
        partition = user.partition
    expected = application.expected(shape, size if habit.asks == "estimate" else usual)
    if application.tasks[1] and habit.asks == "usual":
        expected = application.expected(shape, usual * 1.3)  # an estimate that is enough for most tasks
    queue = QUEUES[partition]
    memory = habit.memory_margin * expected.memory * rng.lognormvariate(0, habit.memory_spread)
    minutes = habit.time_margin * expected.seconds * rng.lognormvariate(0, habit.time_spread) / 60
    limit = min(_round_up(minutes, _MINUTES) * 60, queue.max_time)
    if habit.asks == "estimate" and partition == "main" and limit <= QUEUES["short"].max_time:
        partition = "short"
    cpus = shape.tasks * shape.cpus
    file = application.program.script
    request = Request(
        name=f"{application.name}-{system}" if file else "interactive",
        account=rng.choices(accounts := GROUPS[user.group][1], range(len(accounts), 0, -1))[0],
        partition=partition,
        nodes=shape.nodes,
        tasks_per_node=shape.tasks,
        cpus_per_task=shape.cpus,
        memory=0,
        time_limit=limit,
        gpus_per_node=shape.gpus,
        gpu_type=NODE_TYPES[queue.node_type].gpu_type if shape.gpus else None,
        work_dir=f"/scratch/{user.name}/{system}",
        file=file,
    )
    if habit.asks == "default":
        return replace(
            request,
            memory=queue.memory_per_cpu * cpus,
            memory_given=False,
            time_limit=queue.default_time,
            time_given=False,
        )
    if habit.asks == "everything":
        return replace(request, exclusive=True, time_limit=queue.max_time)
    return _with_memory(request, round(memory))


def _with_memory(request: Request, memory: int) -> Request:
    """The request with this much memory, on a node type with enough memory if one node suffices."""
    amount = _round_up(memory / GIB, _MEMORY) * GIB
    most = NODE_TYPES[QUEUES[request.partition].node_type].memory
    if amount > most and request.nodes == 1 and not request.gpus_per_node:
        most = NODE_TYPES["bigmem"].memory
        request = replace(request, partition="bigmem")
    return replace(request, memory=min(amount, most), memory_given=True)


def _written(submission: Submission) -> Submission:
    size = max(need.size for need in submission.needs)
    script, sha = write(
        submission.request,
        submission.application,
        system=submission.system,
        size=float(f"{size:.2g}"),  # people choose round numbers
        mistake=submission.mistake,
        garble=submission.garble,
        short=submission.user.short_options,
    )
    return replace(submission, script=script, sha=sha)


def _slip(mistakes: tuple[tuple[str, float], ...], rng: Random) -> Mistake | None:
    names: list[str | None] = [name for name, _ in mistakes]
    shares = [share for _, share in mistakes]
    name = rng.choices([*names, None], [*shares, 1 - sum(shares)])[0]
    return MISTAKES[name] if name else None


def _round_up(amount: float, steps: list[int]) -> int:
    return steps[min(bisect_left(steps, amount), len(steps) - 1)]
